"""The lines that no call of the forward pass makes: where a layer, a setting or an optimizer is made.

It is the line of the argument that sets a layer, not the first of the call.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from reprod_align import api
from reprod_align.alignment.findings import Findings, give_lines
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.text import ancestors, count, last_part, parent
from reprod_align.model.local import find_local
from reprod_align.model.settings import SYNONYMS
from reprod_align.model.side import ModelInfo, Side
from reprod_align.model.source import Operation, SourceLine
from reprod_align.model.source.making import (
    Making,
    Trail,
    find_choice,
    find_guard,
    find_held,
    find_if_around,
    find_making,
    find_only_naming,
    find_other_branch,
    is_handed_in,
    read_attributes,
    trace_argument,
    trace_attribute,
)
from reprod_align.model.source.parsing import (
    find_decision,
    find_forward,
    find_late_settings,
    find_measure,
    place_of,
    read_number,
)
from reprod_align.report import Finding

_SIZES = frozenset(
    {"d_model", "embed_dim", "in_features", "out_features", "hidden_size", "kdim", "vdim"}
)
"""parameters that shape the weights: those fit, so that another one is at fault"""


def find_argument(
    side: Side,
    info: ModelInfo,
    path: str,
    names: Sequence[str],
    handed: bool = False,
    due: object = None,
) -> SourceLine | None:
    """Return where the user's code sets a module; None if nothing tells.

    names: of an attribute of the module or of a parameter of its constructor, one of which is right.
    The value is followed out of constructors of the framework's and of the user's as long as it is
    handed in as it is. handed: the names are of parameters alone. due: what the module should be set to;
    an argument that says so is not what sets it otherwise.
    """
    classes, own = side.find_classes(path, anywhere=True), list_files(side, path)
    trail = Trail(None, tuple(names)) if handed else trace_attribute(classes, names, own)
    found = _keep_own(trail, own)
    while trail is not None and trail.parameters:
        step = next(find_makings(side, info, path), None)
        if step is None:
            break
        owner, making = step
        own = list_files(side, owner)
        classes, parameters = side.find_classes(path, anywhere=True), trail.parameters
        ordered = sorted(parameters, key=lambda name: name in _SIZES)
        trail = trace_argument(making, ordered, classes, own)
        place = _keep_own(trail, own)
        if found is not None and trail is not None and _is_due(trail.value, due):
            break
        found = place or found
        path = owner
    return found


def _is_due(value: object, due: object) -> bool:
    return value is not None and type(value) is type(due) and value == due


def find_deciding(
    side: Side, info: ModelInfo, operation: Operation | None, line: SourceLine | None
) -> SourceLine | None:
    """Return the user's line that decides what a call does.

    line: at which the call, or what is behind it, is written. In a layer of the framework's, or in a
    constructor, it leads to the argument that it takes its value from.
    """
    if operation is None or line is None:
        return line
    if operation.user is not None and line.file == operation.user.file:
        return line
    names = [
        name for name in read_attributes(line) if f"{operation.module}.{name}" not in info.modules
    ]
    if operation.user is not None:
        return find_argument(side, info, operation.module, names)
    set_here = [name for name in names if line.text.startswith((f"self.{name} =", f"self.{name}:"))]
    if line.line == operation.source.line or not set_here:
        return line
    return find_argument(side, info, operation.module, set_here) or line


def find_makings(side: Side, info: ModelInfo, path: str) -> Iterator[tuple[str, Making]]:
    """Yield the modules around one that make it, the nearest first, each with where it does so.

    A module that is handed the layer comes after those further out that call the layer's class.
    """
    kind, owner = info.modules[path].class_name if path in info.modules else "", path
    handed: list[tuple[str, Making]] = []
    alike = [name for name, one in info.modules.items()
             if name and one.class_name == kind and parent(name) == parent(path)]  # fmt: skip
    nth = (alike.index(path), len(alike)) if path in alike else (0, 1)
    while owner:
        owner = parent(owner)
        steps = path[len(owner) :].lstrip(".").split(".")
        classes = side.find_classes(owner, anywhere=True)
        making = find_making(classes, steps, kind, nth)
        if making is None:
            continue
        if making.is_call_of(kind):
            yield owner, making
        elif making.file in list_files(side, owner):
            if making.place is not None and is_handed_in(making.place):
                handed.append((owner, making))
            elif not handed:
                yield owner, making
    yield from handed


def list_files(side: Side, path: str) -> set[str]:
    """Return the user's files in which a module's class is written."""
    return {line.file for line in side.find_classes(path)}


def _keep_own(trail: Trail | None, own: Collection[str]) -> SourceLine | None:
    """Return the place of a trail if it is in one of the user's files."""
    place = None if trail is None else trail.place
    return place if place is not None and place.file in own else None


_MADE = {"optimizer": "optimizer", "schedule": "scheduler"}
"""stage -> what is made there by a function of the user's"""
_TOLD = {"number of heads": "num_heads", "epsilon": "eps", "dropout": "p", "momentum": "momentum"}
"""words of a cause -> the setting of a layer that they are about"""


def add_lines(findings: Findings, runner: Runner) -> None:
    """Give every finding without lines those where its layer, optimizer or schedule is made."""
    pairing = runner.pairing
    for finding in list(findings.report.findings):
        ours = theirs = None
        settings = _list_settings(finding, pairing)
        if finding.torch_line is None:
            ours = find_torch_line(finding, runner.reference, pairing)
        if finding.paddle_line is None:
            chosen = _find_choice(finding, runner) or _find_set_late(finding, runner)
            due = _find_due(finding, pairing)
            theirs = chosen or _find(
                finding, runner.port, pairing.paddle, finding.paddle_name, settings, due
            )
            theirs = _find_only_naming(finding, runner, theirs) or theirs
            theirs = _find_factor(finding, runner, theirs) or theirs
            # where no setting differs, a condition at the line of a layer need not be what decides
            settled = due is not None or find_settings(
                pairing, finding.torch_name, finding.paddle_name
            )
            is_shown = chosen or settled
            finding = _tell_choice(findings, finding, theirs if is_shown else None, pairing)
        findings.replace(finding, give_lines(finding, ours, theirs))


def _tell_choice(
    findings: Findings, finding: Finding, line: SourceLine | None, pairing: Pairing
) -> Finding:
    """Return a finding with what the line decides that makes what differs: which layer, or how many."""
    decided = _count_layers(finding, pairing)
    if not decided and line is not None and (condition := find_decision(line)):
        decided = f"`{condition}` decides it"
    if not decided:
        return finding
    if finding.settings and not finding.cause:
        shown = replace(finding, settings=f"{finding.settings}. {decided}")
    else:
        shown = replace(finding, cause=". ".join(filter(None, [finding.cause, decided])))
    findings.replace(finding, shown)
    return shown


def _count_layers(finding: Finding, pairing: Pairing) -> str:
    """Say how many layers a list holds on either side, where PyTorch's parameter is of one too many."""
    path = finding.torch_name if finding.stage == "weights" else ""
    while path and _find_counterpart(parent(path), pairing) not in pairing.paddle.modules:
        path = parent(path)
    around, held = parent(path), _find_counterpart(parent(path), pairing)
    if not last_part(path).isdigit() or path in pairing.modules:
        return ""
    counts = [
        sum(bool(name) and parent(name) == owner for name in side.modules)
        for owner, side in ((held, pairing.paddle), (around, pairing.torch))
    ]
    if counts[0] >= counts[1]:
        return ""
    layers = count(counts[0], "layer")
    return f"{held} holds {layers} in {PORT} and {counts[1]} in {REFERENCE}"


def _find_counterpart(path: str, pairing: Pairing) -> str:
    """Return the port's module that stands for PyTorch's; an empty list is known by its name alone."""
    return pairing.modules.get(path, path)


def _find_set_late(finding: Finding, runner: Runner) -> SourceLine | None:
    """Return where the port sets a layer from outside, or the condition that keeps it from doing so."""
    ours, theirs, pairing = finding.torch_name, finding.paddle_name, runner.pairing
    if finding.stage != "forward" or theirs not in pairing.paddle.stock:
        return None
    files = {line.file for around in ancestors(theirs) for line in runner.port.find_classes(around)}
    for one in pairing.compare_settings(ours, theirs) if ours in pairing.torch.modules else ():
        names = list_names([one.name], pairing.paddle.modules[theirs].kind)
        for file in sorted(files):
            for statement, guard in find_late_settings(file, names):
                value = read_number(statement.value)
                if value is not None and value == one.paddle_value:
                    return place_of(file, statement)
                asked = _read_held(runner.port, statement.value) if value is None else value
                if asked is not None and asked == one.torch_value and guard is not None:
                    return place_of(file, guard.test)
    return None


def _read_held(port: Side, value: ast.expr) -> object:
    """Return the number that the model holds under a name such as `self.config.eps`; None if it is none."""
    local, (first, *names) = find_local(port), ast.unparse(value).split(".")
    held = local.model if local is not None and first == "self" else None
    for name in names:
        held = getattr(held, name, None)
    return held if isinstance(held, (int, float)) else None


def _find_only_naming(
    finding: Finding, runner: Runner, place: SourceLine | None
) -> SourceLine | None:
    """Return the only place in the port that makes a layer so, where following constructors says less.

    A layer that is handed in from outside, or another kind of layer than PyTorch's that a function gives.
    place: where following its constructors ends.
    """
    pairing, ours, theirs = runner.pairing, finding.torch_name, finding.paddle_name
    if theirs not in pairing.paddle.stock or ours not in pairing.torch.modules:
        return None
    if finding.stage != "forward":
        return None
    files = {line.file for around in ancestors(theirs) for line in runner.port.find_classes(around)}
    known, differing = pairing.paddle.modules[theirs], pairing.compare_settings(ours, theirs)
    name = known.class_name
    if any(one.name == "kind" for one in differing):
        is_said = place is not None and name in place.text
        return None if is_said else find_only_naming(files, name)
    if place is not None and not is_handed_in(place):
        return None
    found = (find_only_naming(files, name, list_names([one.name], known.kind), one.paddle_value)
             for one in differing)  # fmt: skip
    return next(filter(None, found), None)


def _find_factor(finding: Finding, runner: Runner, place: SourceLine | None) -> SourceLine | None:
    """Return where a layer's size comes from: `span`, handed in from outside, for `Embedding(2 * span + 1)`.

    place: the line that makes the layer. The number stands in it, and a module around the layer keeps it
    under the same name on both sides, with two values. None without such a number.
    """
    pairing, theirs = runner.pairing, finding.paddle_name
    named = read_attributes(place) if place is not None and theirs in pairing.paddle.stock else []
    for around in ancestors(theirs) if named else ():
        ours = pairing.names.get(around)
        differing = find_settings(pairing, ours, around) if ours is not None else []
        if differing := [name for name in differing if name in named]:
            return find_argument(runner.port, pairing.paddle, around, differing)
    return None


def find_torch_line(finding: Finding, side: Side, pairing: Pairing) -> SourceLine | None:
    """Return PyTorch's line of a finding that no call of the forward pass makes."""
    settings = _list_settings(finding, pairing)
    return _find(finding, side, pairing.torch, finding.torch_name, settings)


def find_settings(pairing: Pairing, ours: str, theirs: str) -> list[str]:
    """Return the settings that both modules have and in which they differ."""
    if ours not in pairing.torch.modules or theirs not in pairing.paddle.modules:
        return []
    return [one.name for one in pairing.compare_settings(ours, theirs)
            if None not in (one.torch_value, one.paddle_value)]  # fmt: skip


def _find_choice(finding: Finding, runner: Runner) -> SourceLine | None:
    """Return what makes Paddle's code choose another layer than PyTorch's, or leave one out."""
    pairing, side, info = runner.pairing, runner.port, runner.pairing.paddle
    ours, theirs = finding.torch_name, finding.paddle_name
    if finding.stage == "forward" and ours in pairing.torch.modules and theirs in info.stock:
        kinds = pairing.torch.modules[ours].class_name, info.modules[theirs].class_name
        makings = find_makings(side, info, theirs) if kinds[0] != kinds[1] else ()
        return next(filter(None, (find_other_branch(making) for _, making in makings)), None)
    if finding.stage != "weights":
        return None
    not_handed = (
        _find_not_handed(side, info, parent(theirs)) if finding.kind == "parameter-tied" else None
    )
    if not_handed is not None:
        return not_handed
    known = pairing.names
    path = theirs if theirs in info.modules else parent(theirs)
    if not ours and path in info.modules and path not in known:
        return _find_surplus(side, info, path, known)
    while path:
        other = pairing.torch.modules.get(known.get(path, path))
        for owner, making in find_makings(side, info, path):
            if other is not None and other.class_name != info.modules[path].class_name:
                line = find_choice(making, other.class_name)
                if line is not None:
                    return _find_chooser(side, info, owner, line)
        path = parent(path)
    path = parent(ours)
    while path and _find_counterpart(parent(path), pairing) not in info.modules:
        path = parent(path)
    owner = _find_counterpart(parent(path), pairing)
    missing = path and f"{owner}.{last_part(path)}".lstrip(".") not in info.modules
    classes = side.find_classes(owner) if missing else []
    if missing and owner in info.stock:  # a list of layers, of other lengths
        handed = find_argument(side, info, parent(owner), [last_part(owner)])
        return handed or find_layer(side, info, owner)
    line = find_guard(classes, last_part(path))
    if line is None:  # what is held by that name is no layer: a plain list, say
        return find_held(classes, last_part(path))
    return _find_chooser(side, info, owner, line)


def _find_not_handed(side: Side, info: ModelInfo, path: str) -> SourceLine | None:
    """Return what a class is given, or not given, so that it makes a layer of its own; None if nothing is.

    It decides by a condition on a parameter of its constructor: `if weight is None`.
    """
    owner = parent(path)
    guard = find_guard(side.find_classes(owner), last_part(path)) if owner else None
    names = read_attributes(guard) if guard is not None else []
    return find_argument(side, info, owner, names, handed=True) if names else None


def _find_surplus(
    side: Side, info: ModelInfo, path: str, known: Collection[str]
) -> SourceLine | None:
    """Return the condition under which the port makes a layer that PyTorch lacks, or where it makes it.

    known: the port's modules that have a counterpart. None where following constructors says it.
    """
    while parent(path) and parent(path) not in known:
        path = parent(path)
    step = next(find_makings(side, info, path), None)
    place = made = step[1].place if step is not None else None
    if place is not None and is_handed_in(place):
        files = {line.file for one in ancestors(path) for line in side.find_classes(one)}
        made = find_only_naming(files, info.modules[path].class_name)
    decided = find_if_around(made) if made is not None else None
    return decided or (made if made is not place else None)


def _find_chooser(side: Side, info: ModelInfo, owner: str, condition: SourceLine) -> SourceLine:
    """Return the argument that a condition asks for, or the condition itself if it is a negation."""
    if "!=" in condition.expression or "not " in condition.expression:
        return condition
    names = read_attributes(condition)
    return (names and find_argument(side, info, owner, names, handed=True)) or condition


def _list_settings(finding: Finding, pairing: Pairing) -> list[str]:
    """Return the settings that the finding is about: those that differ, or the parameter itself."""
    ours, theirs = finding.torch_name, finding.paddle_name
    roles = [last_part(name) for name, info in ((ours, pairing.torch), (theirs, pairing.paddle))
             if name in info.tensors and name not in info.modules]  # fmt: skip
    if ours in pairing.torch.modules and theirs in pairing.paddle.modules:
        found = sorted(pairing.compare_settings(ours, theirs), key=lambda one: not one.conclusive)
        return [*(one.name for one in found), *roles]
    return roles


def _find_due(finding: Finding, pairing: Pairing) -> object:
    """Return PyTorch's value of the one setting in which a finding's modules differ; None for several."""
    sides = (finding.torch_name, pairing.torch), (finding.paddle_name, pairing.paddle)
    ours, theirs = (name if name in side.modules else parent(name) for name, side in sides)
    if ours not in pairing.torch.modules or theirs not in pairing.paddle.modules:
        return None
    found = pairing.compare_settings(ours, theirs)
    return found[0].torch_value if len(found) == 1 else None


def _find(
    finding: Finding,
    side: Side,
    info: ModelInfo,
    name: str,
    settings: Sequence[str],
    due: object = None,
) -> SourceLine | None:
    """Return the line of one side. settings: in which the modules of the finding differ.

    due: what the setting should be, if it is one.
    """
    if finding.stage in _MADE:
        return side.find_maker(_MADE[finding.stage])
    if finding.stage == "loss":
        function = side.find_maker("loss")
        twice = f"{side.name} applies softmax before" in finding.message
        return function and find_measure(function, "softmax" if twice else "")
    tensor = info.tensors.get(name)
    path = tensor.owner if tensor is not None and name not in info.modules else name
    told = [
        name for words, name in _TOLD.items() if words in finding.message and path in info.stock
    ]
    settings = [*settings, *told]
    names = list_names(settings, info.modules[path].kind if path in info.modules else "")
    known = bool(names) and path in info.modules
    made = find_argument(side, info, path, names, due=due) if known else None
    if made is not None:
        return made
    if path in info.stock or (finding.stage == "weights" and tensor is None):
        return find_layer(side, info, path)
    classes = side.find_classes(path) if path in info.modules else []
    if tensor is not None:  # a parameter that the user's own class makes
        making = find_making(classes, [tensor.role], "")
        return making.place if making is not None else find_forward(classes)
    return find_forward(classes) or find_layer(side, info, path)


def list_names(settings: Sequence[str], kind: str) -> list[str]:
    """Return the names that settings of a kind of layer may have in a constructor."""
    names: list[str] = []
    for name in settings:
        convention, _ = api.conventions().get((kind, name), (None, ""))
        argument = [] if convention is None else convention.argument.split("=")  # a bias may be two
        names += [name, *argument, f"{name}_attr", f"has_{name}", *sorted(SYNONYMS.get(name, ()))]
    return list(dict.fromkeys(filter(None, names)))


def find_layer(side: Side, info: ModelInfo, path: str) -> SourceLine | None:
    """Return where the user's code makes a layer."""
    step = next(find_makings(side, info, path), None)
    while step is not None:
        owner, making = step
        if making.file in list_files(side, owner):
            return making.place
        step = next(find_makings(side, info, owner), None)
    return None
