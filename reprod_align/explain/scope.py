"""Where the edit that mends a finding may stand, and what the reference has there."""

import ast
import builtins
import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import CodeType, MappingProxyType
from typing import Any, Final

from reprod_align.api import find_convention
from reprod_align.base import PORT
from reprod_align.base.text import ancestors, is_within, last_part, parent
from reprod_align.explain.code import Code, covers, dotted, list_imports, parse_code
from reprod_align.explain.donor import (
    PARTS,
    is_text,
    likeness,
    list_statements,
    map_names,
    pair_exchanged,
    pair_statements,
    translate,
    translate_by_table,
)
from reprod_align.explain.edits import Site, stops_gradients, value_of
from reprod_align.explain.executed import LAMBDA, MODULE, Ran, name_function
from reprod_align.model.local import find_local
from reprod_align.model.settings import ModuleSettings
from reprod_align.model.side import ModelInfo, Side
from reprod_align.model.source.parsing import pair_elements
from reprod_align.report import Finding

_LEVELS: Final = 6  # classes of the user's: a module's own, and those of the modules around it
_LONE: Final = 4  # classes of modules without a counterpart
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class Region:
    """A function of the port in which the edit may stand, and the reference's that does the same."""

    file: str
    name: str
    """qualified: "BertSelfAttention.forward" """
    donors: Sequence["Donor"] = ()
    """what the reference could have in its place: one is chosen when it is asked for"""
    level: int = 0
    """how many classes around the module at fault: 0 for its own, and for the finding's line"""
    names: Collection[str] = ()
    """of the module's own code: whose assignments may be edited"""


@dataclass(frozen=True, eq=False)
class Donor:
    """A function of the reference, and what the imports of its file bind."""

    function: Any
    """its tree; of what stands in no function, the module's"""
    imports: Mapping[str, str]
    file: str = ""


@dataclass(frozen=True)
class Scope:
    """The functions that may be edited for a finding, the likeliest first."""

    regions: Sequence[Region]
    place: tuple[str, int]
    """the file and the line that the finding names; ("", 0)"""
    settings: Mapping[str, Any]
    """of PyTorch's module, where Paddle's differ"""
    numbers: Sequence[Any]
    """that PyTorch's module holds"""
    lines: Mapping[str, Collection[int]] | None = None
    """file -> the lines that ran: only there can an edit do anything; None: all"""
    has_own: bool = True
    """whether the place at fault has source of its own"""
    ties: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """file and constructor -> its names of a parameter and of the one that it shares in PyTorch"""
    children: Mapping[str, str] = field(default_factory=dict)
    """PyTorch's names of the modules in the one at fault and in those around it -> the port's: "self.out" """
    takes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """the port's names of those modules -> what their `forward` takes"""
    dropouts: Sequence[str] = ()
    """dropouts in stock layers of the port, for which PyTorch has none"""
    hands_mask: bool = False
    """whether a mask, or an index, is what differs there: it may come from any function"""
    callables: Collection[str] = ()
    """the attributes of the port's modules that can be called: `self.activation = ACT2FN[name]`"""

    def ran(self, file: str, statement: Any) -> bool:
        """Tell whether a statement of a file ran, as far as that is known."""
        if self.lines is None:
            return True
        last = statement.end_lineno or statement.lineno
        if isinstance(
            statement, (ast.If, ast.While, ast.For)
        ):  # what it decides, not what it holds
            last = statement.body[0].lineno - 1
        known = self.lines.get(file, ())
        return any(
            line in known for line in range(statement.lineno, max(last, statement.lineno) + 1)
        )


class Sources:
    """The files of both sides, parsed once."""

    def __init__(self, texts: Mapping[str, str] = MappingProxyType({})) -> None:
        """texts: of files that are read from memory."""
        self._texts = texts
        self._read: dict[str, Code | None] = {}

    def code(self, file: str) -> Code | None:
        """Return a file's code; None if it can't be read or parsed."""
        if file not in self._read:
            try:
                text = self._texts.get(file)
                self._read[file] = parse_code(read_source(file) if text is None else text)
            except (OSError, SyntaxError, ValueError):
                self._read[file] = None
        return self._read[file]


def read_source(file: str) -> str:
    """Return a file's text, its line ends as they stand. Raises OSError or ValueError."""
    return Path(file).read_bytes().decode("utf-8")


def find_scope(
    finding: Finding,
    reference: Side,
    port: Side,
    modules: Mapping[str, str],
    sources: Sources,
    ran: Ran | None = None,
) -> Scope:
    """Return where the edit for a finding may stand. modules: PyTorch's name -> Paddle's.

    One of the port's that is not among them is code of the module around it.
    ran: what ran of the users' code. Then every function that the port alone ran may be edited, and no
    other; without it, those of the classes around the module at fault.
    """
    theirs, ours = read_place(finding.paddle_line), read_place(finding.torch_line)
    known, described = reference.describe(), port.describe()
    path, other = _find_modules(finding, known, described, modules)
    donors = [*_list_donors(_find_classes(reference, other, sources), sources, ran)]
    regions = [*_find_function(theirs, ours, donors, sources, ran is not None)]
    classes = _find_classes(port, path, sources)
    lone = described.modules.keys() - modules.values()
    own = _find_lone_classes(
        port, path, [one for one in lone if is_within(one, path)], classes, sources
    )
    classes += own
    classes += _find_lone_classes(port, path, lone, classes, sources)
    inside = [name for name in described.modules if path in (parent(name), parent(parent(name)))]
    classes += _find_lone_classes(port, path, inside, classes, sources)
    for level, (file, owner) in enumerate(classes):
        level = 0 if (file, owner) in own else level
        regions += _list_methods(file, owner, donors, level, sources)
    regions += _list_forwards(port, path, donors, sources)
    settings, numbers = _read_settings(known, described, other, path)
    has_own = bool(regions)
    if ran is not None:
        files = {one.file for one in regions} or {file for file, _ in ran.port}
        inner = ran.list_reached((one.file, one.name) for one in regions if one.level == 0)
        regions += _list_further(ran, donors, files, inner, len(classes), sources)
    unique = {(one.file, one.name): one for one in reversed(regions)}
    ordered = sorted(unique.values(), key=lambda one: regions.index(one))
    if ran is not None:
        ordered = [one for one in ordered if (one.file, one.name) in ran.port or one.names]
    if finding.stage == "backward":  # a function with a backward pass of its own
        custom = [replace(one, level=0) for one in ordered if last_part(one.name) == "backward"]
        ordered = custom + [one for one in ordered if last_part(one.name) != "backward"]
    ties = dict(_find_ties(finding, reference, port, modules, sources))
    lines = None if ran is None else ran.lines
    children, takes = _name_children(other, modules), _list_parameters(port, path)
    dropouts = [*_list_stock_dropouts(port, lone)]
    return Scope(
        ordered,
        theirs,
        settings,
        numbers,
        lines,
        has_own,
        ties,
        children,
        takes,
        dropouts,
        finding.kind == "mask" or "mask" in finding.evidence,
        _list_callables(port),
    )


def _list_callables(port: Side) -> set[str]:
    """Return the attributes of the port's modules that hold a module or a function, as `self.name`."""
    local = find_local(port)
    modules = dict(local.fw.modules(local.model)) if local is not None else {}
    held = (
        name for one in modules.values() for name, value in vars(one).items() if callable(value)
    )
    names = [*map(last_part, modules), *(name for name in held if not name.startswith("_"))]
    return {f"self.{name}" for name in names}


def _list_stock_dropouts(port: Side, lone: Collection[str]) -> Iterator[str]:
    """Yield the dropouts without a counterpart in layers of the framework, of a list the first one's."""
    local = find_local(port)
    modules = dict(local.fw.modules(local.model)) if local is not None else {}
    known: set[str] = set()
    for name in sorted(lone):
        layer: Any = modules.get(name)
        home = type(modules.get(parent(name))).__module__
        is_stock = home.startswith(f"{PORT.framework}.")
        form = ".".join("0" if part.isdigit() else part for part in name.split("."))
        rate = getattr(layer, "p", None)
        if rate and "Dropout" in type(layer).__name__ and is_stock and form not in known:
            known.add(form)
            yield name


def _list_parameters(port: Side, path: str) -> dict[str, list[str]]:
    """Return what the `forward` of each module takes that one of the port's, or one around it, holds.

    A list of modules, `self.layers`, takes what its modules take.
    """
    local = find_local(port)
    held: dict[str, list[str]] = {}
    for name, module in local.fw.modules(local.model) if local is not None else ():
        if name and is_within(path, parent(name)):
            with suppress(TypeError, ValueError):
                held[name] = [*inspect.signature(type(module).forward).parameters][1:]
    inner = sorted(held, key=lambda name: name.count("."))  # of one name, the nearest counts
    listed = [name for name in inner if last_part(name).isdigit()]
    return {
        **{f"self.{last_part(name)}": held[name] for name in inner},
        **{f"self.{last_part(parent(name))}": held[name] for name in listed},
    }


def _follow_loops(takes: Mapping[str, Sequence[str]], function: Any) -> dict[str, Sequence[str]]:
    """Return what the layers take that a function calls, those of a list by the variable of its loop too."""
    loops = [one for one in ast.walk(function) if isinstance(one, (ast.For, ast.comprehension))]
    found = dict(takes)
    for loop in loops:
        lists = (dotted(one) for one in ast.walk(loop.iter) if isinstance(one, ast.Attribute))
        if (held := next((one for one in lists if one in takes), None)) is not None:
            names = (one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name))
            found |= dict.fromkeys(names, takes[held])
    return found


def _name_children(other: str, modules: Mapping[str, str]) -> dict[str, str]:
    """Return what a module of PyTorch's, and those around it, call their children -> what the port does."""
    names: dict[str, str] = {}
    for around in (other, *ancestors(other)):
        for ours, theirs in modules.items():
            if ours and parent(ours) == around and parent(theirs) == modules.get(around, around):
                names.setdefault(f"self.{last_part(ours)}", f"self.{last_part(theirs)}")
    return names


def _find_ties(
    finding: Finding, reference: Side, port: Side, modules: Mapping[str, str], sources: Sources
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the constructors that hold a parameter of its own, shared in PyTorch, and both names of it.

    They are what the constructor calls the parameter and its twin, which is another name of it in PyTorch;
    "" for a twin that the constructor does not hold. The finding's own parameter comes last: it counts.
    """
    tensors, shared = port.describe().tensors, dict[Any, list[str]]()
    for one in reference.describe().tensors.values():
        path = parent(one.name)  # a module that is no counterpart may have the same name
        name = f"{modules.get(path, path)}.{last_part(one.name)}".lstrip(".")
        if one.name == finding.torch_name and finding.paddle_name in tensors:
            name = finding.paddle_name  # it may be held by another module than in PyTorch
        if name in tensors:
            shared.setdefault(one.tie, []).append(name)
    pairs = [(name, names[0]) for names in shared.values() for name in names[1:]]
    first = [(other, name) for name, other in pairs if other == finding.paddle_name]
    pairs.sort(key=lambda one: one[0] == finding.paddle_name)
    for theirs, twin in [*pairs, *first[:1]]:
        if tensors[theirs].tie == tensors[twin].tie:
            continue
        path = parent(theirs)
        for around in (path, *ancestors(path)):
            start = len(around) + 1 if around else 0
            held = is_within(twin, around)
            for file, owner in _find_classes(port, around, sources, most=1):
                names = f"self.{theirs[start:]}", f"self.{twin[start:]}" if held else ""
                yield (file, f"{owner}.__init__"), names


def _list_further(
    ran: Ran,
    donors: Sequence[Donor],
    files: Collection[str],
    inner: Sequence[tuple[str, str]],
    level: int,
    sources: Sources,
) -> Iterator[Region]:
    """Yield all that the port ran, and what it read of its modules.

    donors: of the place at fault; files: with its code; inner: what this calls. They come first.
    """
    others = [*donors]
    for file, name in ran.reference:
        code = sources.code(file)
        found = find_named(code, name) if code is not None else None
        if code is not None and isinstance(found, (*Function.__args__, ast.Lambda)):
            others.append(Donor(found, list_imports(code.tree), file))
    order = {one: number for number, one in enumerate(inner)}
    for file, name in sorted(
        ran.port, key=lambda one: (order.get(one, len(order)), one[0] not in files)
    ):
        if name != MODULE and sources.code(file) is not None:
            own = 0 if (file, name) in order else level + (file not in files)
            yield Region(file, name, others, own)
    every = dict.fromkeys([*(file for file, _ in ran.reference), *ran.names])
    modules = [code.tree for code in map(sources.code, every) if code is not None]
    tables = [
        Donor(ast.Module([one for one in tree.body if isinstance(one, ast.Assign)], []), list_imports(tree))
        for tree in modules
    ]  # fmt: skip
    for file, names in ran.names.items():
        if file in files:
            yield Region(file, MODULE, tables, level, names)


def read_place(line: str | None) -> tuple[str, int]:
    """Return the file and the line of "models/pd_bert.py:12"; ("", 0) for None."""
    file, _, number = (line or "").rpartition(":")
    return (str(Path(file).resolve()), int(number)) if number.isdigit() else ("", 0)


def _find_modules(
    finding: Finding, known: ModelInfo, described: ModelInfo, modules: Mapping[str, str]
) -> tuple[str, str]:
    """Return the port's module of a finding, and the reference's: a parameter's owner."""
    path, other = finding.paddle_name, finding.torch_name
    path = path if path in described.modules else parent(path)
    other = other if other in known.modules else parent(other)
    return path, other


def _find_function(
    theirs: tuple[str, int],
    ours: tuple[str, int],
    others: Sequence["Donor"],
    sources: Sources,
    anonymous: bool,
) -> Iterator[Region]:
    """Yield the functions around the line that the finding names, the innermost first.

    others: further donors. anonymous: one without a name too.
    """
    code, donor_code = sources.code(theirs[0]), sources.code(ours[0])
    if code is None:
        return
    donor = find_around(donor_code, ours[1]) if donor_code is not None else None
    donors = [Donor(donor, list_imports(donor_code.tree), ours[0])] if donor and donor_code else []
    lambdas = [
        node for node in code.nodes if isinstance(node, ast.Lambda) and covers(node, theirs[1])
    ]
    for node in lambdas[-1:] if anonymous else ():
        yield Region(theirs[0], f"{LAMBDA}{node.lineno}", [*donors, *others])
    if name := name_around(code, theirs[1]):
        yield Region(theirs[0], name, [*donors, *others])


def _find_classes(
    side: Side, path: str, sources: Sources, most: int = _LEVELS
) -> list[tuple[str, str]]:
    """Return the files and names of the user's classes of a module and of those around it."""
    found: dict[tuple[str, str], None] = {}
    while len(found) < most:
        lines = side.find_classes(path)
        for line in lines:
            if line.file != lines[0].file:
                continue  # a base class that other models share
            code = sources.code(line.file)
            name = name_around(code, line.line + 1) if code is not None else ""
            if name:
                found[line.file, name.rpartition(".")[0]] = None
        if not path:
            break
        path = parent(path)
    return list(found)


def _find_lone_classes(
    side: Side, path: str, lone: Collection[str], known: Sequence[tuple[str, str]], sources: Sources
) -> list[tuple[str, str]]:
    """Return the further classes of modules that no module of PyTorch's stands for.

    What they compute is the own code of a module around them, also of the one at fault. Those nearest
    to `path` come first.
    """
    found: dict[tuple[str, str], None] = {}
    while len(found) < _LONE:
        for name in sorted(lone):
            if is_within(name, path) and len(found) < _LONE:
                lines = side.find_classes(name)[:1]
                code = sources.code(lines[0].file) if lines else None
                inside = name_around(code, lines[0].line + 1) if code is not None else ""
                if inside and (lines[0].file, inside.rpartition(".")[0]) not in known:
                    found[lines[0].file, inside.rpartition(".")[0]] = None
        if not path:
            break
        path = parent(path)
    return list(found)


def _list_methods(
    file: str, owner: str, donors: Sequence[Donor], level: int, sources: Sources
) -> Iterator[Region]:
    """Yield the methods of a class, and the functions of its file that they call."""
    code = sources.code(file)
    held = find_named(code, owner) if code is not None else None
    if code is None or held is None:
        return
    methods = [one for one in held.body if isinstance(one, Function)]
    order = sorted(methods, key=lambda one: (one.name == "__init__", one.name != "forward"))
    called = {dotted(call.func).rpartition(".")[2] for one in methods for call in ast.walk(one)
              if isinstance(call, ast.Call)}  # fmt: skip
    helpers = [one for one in code.tree.body if isinstance(one, Function) and one.name in called]
    for method in [*order, *helpers]:
        name = f"{owner}.{method.name}" if method in methods else method.name
        yield Region(file, name, donors, level)


def _list_forwards(
    side: Side, path: str, donors: Sequence[Donor], sources: Sources
) -> Iterator[Region]:
    """Yield what runs as `forward` of a module and of those around it: a class may take it from elsewhere."""
    for level, (_, file, made) in enumerate(_find_forwards(side, path)):
        code, (_, name) = sources.code(file), name_function(made)
        if code is not None and find_named(code, name) is not None:
            yield Region(file, name, donors, min(level, _LEVELS - 1))


def find_owner(side: Side, path: str, file: str, line: int) -> str | None:
    """Return the module, of one and those around it, whose code has a line; None if none has.

    That is its `forward`, or else another of its methods, or a function of its file that they call.
    """
    for name, own, made in _find_forwards(side, path):
        lines = [at for *_, at in made.co_lines() if at]
        if own == file and min(lines) <= line <= max(lines):
            return name
    sources = Sources()
    code = sources.code(file)
    function = name_around(code, line) if code is not None else ""
    for name in (path, *ancestors(path)) if function else ():
        classes = _find_classes(side, name, sources, most=1) if side.find_classes(name) else []
        for own, owner in classes:
            regions = _list_methods(own, owner, (), 0, sources)
            if own == file and any(one.name == function for one in regions):
                return name
    return None


def _find_forwards(side: Side, path: str) -> Iterator[tuple[str, str, CodeType]]:
    """Yield a module and those around it, with the file and the code of their `forward`, the user's."""
    local = find_local(side)
    modules = {} if local is None else dict(local.fw.modules(local.model))
    for name in (path, *ancestors(path)):
        made = getattr(getattr(type(modules.get(name)), "forward", None), "__code__", None)
        if made is not None and local is not None and local.holds(made.co_filename):
            yield name, str(Path(made.co_filename).resolve()), made


def _list_donors(
    classes: Sequence[tuple[str, str]], sources: Sources, ran: Ran | None
) -> Iterator[Donor]:
    """Yield the methods of the reference's classes, and the functions beside them.

    A file may hold both sides: what names the port's framework is no donor, nor what the reference
    did not run, as far as that is known.
    """
    for file, owner in classes:
        code = sources.code(file)
        held = find_named(code, owner) if code is not None else None
        if code is not None and held is not None:
            imports = list_imports(code.tree)
            for one in held.body:
                if isinstance(one, Function):
                    yield Donor(one, imports, file)
            for one in code.tree.body:
                known = ran is None or (file, getattr(one, "name", "")) in ran.reference
                if isinstance(one, Function) and known and not _names_port(one, imports):
                    yield Donor(one, imports, file)


def _names_port(function: ast.AST, imports: Mapping[str, str]) -> bool:
    """Tell whether a function reads what an import binds to a module of the port's framework."""
    ours = {name for name, bound in imports.items() if bound.split(".")[0] == PORT.framework}
    return any(isinstance(node, ast.Name) and node.id in ours for node in ast.walk(function))


def _choose_donor(file: str, function: Any, donors: Sequence[Donor]) -> Donor | None:
    """Return the reference's function that does what one of the port does: the most alike.

    file: of the port's function. Where both sides are written in one file, that function is none.
    """
    own = _strip_framework(function)
    at = file, getattr(function, "lineno", 0)
    others = [one for one in donors if (one.file, getattr(one.function, "lineno", 0)) != at]
    return max(others, default=None,
               key=lambda one: likeness(function, one.function)
               + bool(own and _strip_framework(one.function) == own))  # fmt: skip


def _strip_framework(function: Any) -> str:
    """Return a function's name without that of the framework; "" of one without a name."""
    name: str = getattr(function, "name", "")
    return name.replace("paddle_", "").replace("torch_", "")


def _read_settings(
    known: ModelInfo, described: ModelInfo, other: str, path: str
) -> tuple[dict[str, Any], list[Any]]:
    """Return what makes the port's settings the reference's, and all plain values around the place."""
    settings: dict[str, Any] = {}
    ours, theirs = known.modules.get(other), described.modules.get(path)
    if ours is not None and theirs is not None:
        settings = dict(
            _write_setting(theirs, name, value)
            for name, value in ours.values.items()
            if theirs.values.get(name) != value and isinstance(value, (bool, int, float, str))
        )
    values: dict[Any, None] = dict.fromkeys(settings.values())
    for name, module in known.modules.items():
        if is_within(name, other):
            values.update(dict.fromkeys(
                value for value in module.values.values() if isinstance(value, (int, float, str))
            ))  # fmt: skip
    return settings, list(values)[:12]


def _write_setting(layer: ModuleSettings, name: str, value: Any) -> tuple[str, Any]:
    """Return the port's argument for a setting, and the reference's value as the port writes it there."""
    convention, _ = find_convention(layer.kind, name)
    if PORT.framework == "torch" or layer.convention:  # written as PyTorch does
        return name, value
    written = value if convention.from_torch is None else convention.from_torch(value)
    if isinstance(written, float):  # 1 - 0.003 as a person writes it
        written = float(f"{written:.12g}")
    return convention.argument or name, written


# ------------------------------------------------------------------- functions by name


def name_around(code: Code, line: int) -> str:
    """Return the qualified name of the innermost function around a line; "" if there is none."""
    names = [name for name, node in _list_named(code.tree) if isinstance(node, Function)
             and node.lineno <= line <= (node.end_lineno or 0)]  # fmt: skip
    return names[-1] if names else ""


def find_around(code: Code, line: int) -> Function | None:
    """Return the innermost function around a line."""
    name = name_around(code, line)
    found = find_named(code, name) if name else None
    return found if isinstance(found, Function) else None


def find_named(code: Code, name: str) -> Any:
    """Return the function or class of a qualified name, the module of MODULE; None if there is none."""
    if name == MODULE:
        return code.tree
    if name.startswith(LAMBDA):
        line = int(name.removeprefix(LAMBDA))
        found = (
            node for node in code.nodes if isinstance(node, ast.Lambda) and node.lineno == line
        )
        return next(found, None)
    return next((node for known, node in _list_named(code.tree) if known == name), None)


def _list_named(node: ast.AST, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield functions and classes with their qualified names, those around before those inside."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (Function, ast.ClassDef)):
            name = f"{before}{child.name}"
            yield name, child
            yield from _list_named(child, f"{name}.")
        else:
            yield from _list_named(child, before)


# ------------------------------------------------------------------- sites


def list_sites(scope: Scope, region: Region, code: Code) -> list[Site]:
    """Return the statements of a region, those beside the finding's line first. code: as it is now."""
    function = find_named(code, region.name)
    if function is None:
        return []
    statements = list_statements(function)
    if region.name == MODULE:
        statements = [one for one in function.body if _assigns(one, region.names)]
    port = list_imports(code.tree)
    donor = _choose_donor(region.file, function, region.donors)
    donors = _list_with_methods(code, function, donor, region.donors)
    bound = donor.imports if donor is not None else {}
    plain = [translate(one, {}, bound, port) for one in donors]
    met = pair_statements(statements, plain, partial(scope.ran, region.file))
    at_hand = _list_names(code, function)
    owned = [*scope.children.values(), *(one for one in at_hand if one.startswith("self."))]
    names = map_names(((statements[i], plain[j]) for i, j in met), owned)
    parameters = _map_parameters(function, donor.function) if donor is not None else {}
    names = {**parameters, **scope.children, **names}
    made = [translate(one, names, bound, port) for one in donors]
    exchanged = pair_exchanged(statements, made, met)
    paired = {i: made[j] for i, j in (*met, *exchanged)}
    raw = {i: donors[j] for i, j in (*met, *exchanged)}
    defined = {one.name for one in code.tree.body if isinstance(one, (Function, ast.ClassDef))}
    called = _list_lacking(function, made, at_hand, {*port, *defined})
    idle, unread = _list_idle(scope, region.file, code, function)
    called += [name for name in idle if name not in called]
    running = [one for one in statements if scope.ran(region.file, one)]
    called += _list_parts(running, donors, bound, port)
    numbers = [*scope.numbers, *_list_constants(donor.function if donor is not None else None)]
    sites = []
    places = dict(met)
    lacking = _list_unmet(statements, made, places, {j for _, j in exchanged})
    defined |= {*port, *vars(builtins), *at_hand}
    given = _list_given(function, statements, made, met, defined)
    fields, switches = _list_fields(function, region.donors), _list_switches(function)
    takes = _follow_loops(scope.takes, function)
    runs = _list_runs(function, donor.function, made, donors) if donor is not None else {}
    stopped = []
    if donor is not None and PORT.choose("torch", "paddle") in port:
        stopped = [
            *_list_stopped(code, donor.function, [(statements[i], donors[j]) for i, j in met])
        ]
    for number, statement in enumerate(statements):
        first = paired.get(number)
        ranked = sorted(made, key=lambda one: -likeness(statement, one))
        others = [one for one in ranked if one is not first]
        missing = lacking.get(number, ())
        following = lacking.get(min((at for at in places if at > number), default=-1), ())
        sites.append(
            Site(
                code,
                statement,
                first,
                partial(translate_by_table, raw[number], names, bound, port) if first else tuple,
                others,
                missing,
                following if first is not None else (),
                numbers,
                names=at_hand,
                unread=unread,
                idle=idle,
                called=called,
                settings=scope.settings,
                takes=takes,
                tie=scope.ties.get((region.file, region.name), ("", "")),
                given=given,
                fields=fields,
                switches=switches,
                dropouts=scope.dropouts,
                stopped=stopped,
                runs=runs,
            )
        )
    inside = scope.place[0] == region.file
    return sorted(
        sites, key=lambda one: abs(one.statement.lineno - scope.place[1]) if inside else 0
    )


def _map_parameters(function: Any, donor: Any) -> dict[str, str]:
    """Return the donor's parameters -> those of the function, of as many, by their places."""
    ours, theirs = (
        [arg.arg for arg in made.args.args] if hasattr(made, "args") else []
        for made in (function, donor)
    )
    if len(ours) != len(theirs):
        return {}
    pairs = zip(theirs, ours, strict=True)
    return {other: own for other, own in pairs if other not in ours and own not in theirs}


def _list_with_methods(
    code: Code, function: Any, donor: Donor | None, donors: Sequence[Donor]
) -> list[Any]:
    """Return a donor's statements, and those of its own methods that it calls and the port's class lacks."""
    if donor is None:
        return []
    owner = next((one for one in code.parents(function) if isinstance(one, ast.ClassDef)), None)
    own = {one.name for one in (owner or code.tree).body if isinstance(one, Function)}
    called = {_name_called(node) for node in ast.walk(donor.function) if isinstance(node, ast.Call)}
    methods = {f"self.{_strip_framework(one.function)}": one.function for one in reversed(donors)}
    inlined = [one for name, one in methods.items() if name in called
               and name.removeprefix("self.") not in own]  # fmt: skip
    return [it for one in (donor.function, *inlined) for it in list_statements(one)]


def _list_given(
    function: Any,
    statements: Sequence[Any],
    donors: Sequence[Any],
    met: Sequence[tuple[int, int]],
    known: Collection[str],
) -> dict[str, tuple[Any, str]]:
    """Return the variables that the reference gives a value and the port lacks, with where and how.

    donors: in the port's words. met: which statements stand for each other. known: names that the port has.
    """
    found: dict[str, tuple[Any, str]] = {}
    body = function.body if isinstance(function, Function) else ()
    for at, one in enumerate(donors):
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id not in known:
            value = _keep_known(one.value, known)
            after = {statements[i] for i, j in met if j > at}
            place = next((it for it in body if after.intersection(ast.walk(it))), None)
            if value is not None and place is not None:
                found.setdefault(target.id, (place, f"{target.id} = {ast.unparse(value)}"))
    return found


def _list_runs(
    function: Any, donor: Any, made: Sequence[Any], donors: Sequence[Any]
) -> dict[Any, list[tuple[Any, Sequence[Any]]]]:
    """Return the runs of a body's statements that the reference says otherwise; see `Site.runs`.

    made: the reference's statements in the port's words; donors: as they stand there.
    """
    if not (isinstance(function, Function) and isinstance(donor, Function)):
        return {}
    words = {id(one): other for one, other in zip(donors, made, strict=True)}
    theirs = [words[id(one)] for one in donor.body if id(one) in words]
    if len(theirs) < len([one for one in donor.body if not isinstance(one, ast.Expr)]):
        return {}  # what holds others, such as `with`, is not in the port's words
    own = [one for one in function.body if not is_text(one)]
    before, after = ([*map(ast.unparse, of)] for of in (own, theirs))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    changed = [code[1:] for code in matcher.get_opcodes() if code[0] != "equal"]
    found: dict[Any, list[tuple[Any, Sequence[Any]]]] = {}
    hulls = [(changed[0][0], changed[-1][1], changed[0][2], changed[-1][3])] if changed else []
    narrow = _list_joined(own, theirs) if changed else ()
    for first, end, start, stop in dict.fromkeys([*narrow, *hulls, *changed]):
        if end > first and stop > start and (end - first, stop - start) != (1, 1):
            found.setdefault(own[first], []).append((own[end - 1], theirs[start:stop]))
    return found


def _list_joined(own: Sequence[Any], theirs: Sequence[Any]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where one side has more statements between two that stand for each other, with one of these.

    What a statement says in one line, as `return a(b(x))`, may stand in the one before on the other side.
    Each is the first of the port's and the end, and the same of the reference's.
    """
    last = (len(own), len(theirs))
    pairs = [(-1, -1), *pair_statements(own, theirs), last]
    for (i, j), (after, beyond) in pairwise(pairs):
        if after - i == beyond - j == 1:
            continue
        if (after, beyond) != last:
            yield i + 1, after + 1, j + 1, beyond + 1
        if i >= 0:
            yield i, after, j, beyond


def _list_stopped(
    code: Code, donor: Any, pairs: Sequence[tuple[Any, Any]]
) -> Iterator[tuple[Any, Any]]:
    """Yield the first and the last of statements of one block that stand for what the donor runs
    without gradients. pairs: the port's statements with the donor's."""
    for node in ast.walk(donor):
        if not isinstance(node, ast.With):
            continue
        if any(stops_gradients(one.context_expr) for one in node.items):
            inside = {id(one) for one in list_statements(node)}
            own = [mine for mine, theirs in pairs if id(theirs) in inside]
            block = _find_block(code, min(own, key=_place), max(own, key=_place)) if own else None
            if block is not None:
                yield block


def _place(statement: Any) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _find_block(code: Code, first: Any, last: Any) -> tuple[Any, Any] | None:
    """Return the statements of one block in which two others stand, the innermost."""
    for one in (first, *code.parents(first)):
        around = next(code.parents(one), None)
        for held in vars(around).values() if around is not None else ():
            for other in (last, *code.parents(last)) if isinstance(held, list) else ():
                if one in held and other in held:
                    return one, other
    return None


def _keep_known(value: ast.expr, known: Collection[str]) -> ast.expr | None:
    """Return an expression if the port knows all its names, or the branch of it that the port knows."""
    names = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    if names <= {*known, "self"}:
        return value
    branches = (value.body, value.orelse) if isinstance(value, ast.IfExp) else ()
    return next(filter(None, (_keep_known(one, known) for one in branches)), None)


def _list_fields(function: Any, donors: Sequence[Donor]) -> dict[str, list[str]]:
    """Return the attributes that the reference reads of objects that a function of the port takes too."""
    given = getattr(function, "args", None)
    names = {one.arg for one in given.args} - {"self"} if given else set()
    found: dict[str, dict[str, None]] = {}
    for donor in donors:
        for node in ast.walk(donor.function):
            holder, _, last = dotted(node).rpartition(".")
            if holder in names:
                found.setdefault(holder, {})[last] = None
    return {holder: [*held] for holder, held in found.items()}


def _list_switches(function: Any) -> list[str]:
    """Return the parameters of a function that are True, False or None unless they are given."""
    given = getattr(function, "args", None)
    pairs = zip(reversed(given.args), reversed(given.defaults), strict=False) if given else ()
    return [
        one.arg
        for one, value in pairs
        if isinstance(value, ast.Constant)
        and (value.value is None or isinstance(value.value, bool))
    ]


def _list_unmet(
    port: Sequence[Any],
    donors: Sequence[Any],
    met: Mapping[int, int],
    exchanged: Collection[int],
) -> dict[int, list[Any]]:
    """Return the reference's plain statements that the port lacks, by the port's one that follows.

    exchanged: those for which the port has one in another place.
    """
    own = {ast.dump(one) for one in port}
    found: dict[int, list[Any]] = {}
    last = -1
    for number in sorted(met):
        between = donors[last + 1 : met[number]]
        found[number] = [
            one
            for at, one in enumerate(between, last + 1)
            if isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr))
            and ast.dump(one) not in own
            and at not in exchanged
        ]
        last = met[number]
    return found


def _assigns(statement: ast.stmt, names: Collection[str]) -> bool:
    """Tell whether a statement of a module gives one of these names its value."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    held = {
        node.id for one in targets if one for node in ast.walk(one) if isinstance(node, ast.Name)
    }
    wanted = {name for name in held if name in names or name.startswith(f"{PORT.framework}_")}
    return bool(wanted and getattr(statement, "value", None))


def _list_names(code: Code, function: Any) -> list[str]:
    """Return the variables of a function, and the attributes that its class gives `self`."""
    given = getattr(function, "args", None)
    arguments = [one.arg for one in (*given.args, *given.kwonlyargs)] if given else []
    stored = [node.id for node in ast.walk(function)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]  # fmt: skip
    owner = next((one for one in code.parents(function) if isinstance(one, ast.ClassDef)), None)
    held = [dotted(node) for node in ast.walk(owner or function)
            if isinstance(node, ast.Attribute) and dotted(node).count(".") == 1]  # fmt: skip
    own = [name for name in held if name.startswith("self.")]
    return [name for name in dict.fromkeys([*arguments, *stored, *own]) if name != "self"]


def _list_lacking(
    function: Any, donors: Sequence[Any], at_hand: Sequence[str], known: Collection[str]
) -> list[str]:
    """Return what the reference calls in its function and the port does not, though it could.

    at_hand: variables and attributes there. known: what the file defines or imports.
    """
    own = {_name_called(node) for node in ast.walk(function) if isinstance(node, ast.Call)}
    theirs = [_name_called(node) for donor in donors for node in ast.walk(donor)
              if isinstance(node, ast.Call)]  # fmt: skip
    return [
        name
        for name in dict.fromkeys(theirs)
        if name and name not in own and (name in at_hand or name.partition(".")[0] in known)
    ]


def _list_parts(
    statements: Sequence[Any],
    donors: Sequence[Any],
    imports: Mapping[str, str],
    port: Mapping[str, str],
) -> list[str]:
    """Return what is inside functions that the reference calls whole and what runs of the port does not."""
    theirs, own = (
        {_name_called(node).rpartition(".")[2] for one in trees for node in ast.walk(value_of(one))
         if isinstance(node, ast.Call)}
        for trees in (donors, statements)
    )  # fmt: skip
    inside = [part for whole, parts in PARTS.items() if whole in theirs - own for part in parts]
    if PORT.framework == "torch":
        return [name for name in inside if name.rpartition(".")[2] not in own]
    return [
        ast.unparse(translate(ast.parse(name, mode="eval").body, {}, {**imports, "torch": "torch"}, port))
        for name in inside
        if name.rpartition(".")[2] not in own
    ]  # fmt: skip


def _list_idle(
    scope: Scope, file: str, code: Code, function: Any
) -> tuple[list[str], dict[str, range]]:
    """Return what no line that ran reads: layers that the class makes ("self.norm"), and variables.

    Variables come with the lines in which they may be lacking: those after the first that gives them a
    value, those that run if they are not None, all of a function that cannot be called without them.
    What the port leaves out of a sum or of a call is often still computed, made or asked for beside it.
    """
    owner = next((one for one in code.parents(function) if isinstance(one, ast.ClassDef)), None)
    lines = None if scope.lines is None else scope.lines.get(file, ())
    inside = [*ast.walk(function)]
    nodes = [*ast.walk(owner)] if owner else inside
    made = {
        dotted(one)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        for one, value in pair_elements(target, node.value)
        if isinstance(value, ast.Call) or dotted(one) in scope.callables
    }
    ran = [one for one in nodes if isinstance(one, (ast.Name, ast.Attribute))
           and (lines is None or one.lineno in lines)]  # fmt: skip
    conditions = [one for one in inside if isinstance(one, ast.If)]
    asked = {name: one for one in reversed(conditions) for name in _list_asked(one.test)
             if lines is None or one.lineno in lines}  # fmt: skip
    tests = {id(part) for one in conditions for part in ast.walk(one.test)}
    read = {dotted(one) for one in ran if isinstance(one.ctx, ast.Load)
            and not (id(one) in tests and dotted(one) in asked)}  # fmt: skip
    layers = sorted(one for one in made - read if one.startswith("self.") and one.count(".") == 1)
    own = {id(node) for node in inside}
    last = max((getattr(node, "lineno", 0) for node in inside), default=0) + 1
    given = dict.fromkeys(_list_required(function), range(getattr(function, "lineno", last), last))
    given |= {name: _find_block_lines(one, last) for name, one in asked.items()}
    for one in reversed(ran):
        if id(one) in own and isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            start = min(one.lineno + 1, given.get(one.id, range(last, last)).start)
            given[one.id] = range(start, last)
    return layers, {name: at for name, at in given.items() if name not in read and name != "_"}


def _list_required(function: Any) -> list[str]:
    """Return the parameters without which a function cannot be called."""
    if not isinstance(function, ast.FunctionDef):
        return []
    named = [*function.args.posonlyargs, *function.args.args]
    names = [one.arg for one in named[: len(named) - len(function.args.defaults)]]
    return [name for name in names if name not in ("self", "cls", "ctx")]


def _list_asked(test: ast.expr) -> list[str]:
    """Return the variables that a condition asks not to be None."""
    return [
        part.left.id
        for part in ast.walk(test)
        if isinstance(part, ast.Compare)
        and isinstance(part.left, ast.Name)
        and isinstance(part.ops[0], ast.IsNot)
        and isinstance(part.comparators[0], ast.Constant)
        and part.comparators[0].value is None
    ]


def _find_block_lines(condition: ast.If, last: int) -> range:
    """Return the lines of a condition's block, or all after it if that gives nothing a value."""
    end = condition.body[-1].end_lineno or last
    gives = any(isinstance(one, ast.Assign) for part in condition.body for one in ast.walk(part))
    return range(condition.lineno + 1, end + 1 if gives else last)


def _name_called(node: ast.Call) -> str:
    return dotted(node.func)


def _list_constants(function: Any) -> list[Any]:
    """Return the numbers, switches and short texts in a function."""
    found = (
        [node.value for node in ast.walk(function) if isinstance(node, ast.Constant)]
        if function
        else []
    )
    return [
        one
        for one in dict.fromkeys(found)
        if isinstance(one, (bool, int, float, str)) and len(str(one)) < 20
    ]
