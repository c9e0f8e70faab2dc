"""Gives a port the spelling of its source: imported names, literals, and the project's formatter.

A draft names everything in full and writes literals as Python prints them. The source's author wrote
`nn.Linear`, "same" and 1e-6, and perhaps formats the project with ruff or black; then so does the port.
"""

import ast
import io
import shutil
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reprod_align.explain.code import Code, Edit, dotted, list_imports
from reprod_align.porting.calls.names import exists, find_object, list_bound

_FORMATTERS: Final[Mapping[str, Sequence[str]]] = {
    "ruff": ("ruff", "format", "--quiet", "--stdin-filename"),
    "black": ("black", "--quiet", "--stdin-filename"),
}
"""table of pyproject.toml -> the command; the path of the source and "-" follow"""
_SECONDS: Final = 30  # for a formatter; it takes a tenth of one


def spell_as_source(port: str, source: str, path: Path) -> str:
    """Return the port's text, spelled as its source is; path: of the source, whose project is asked."""
    try:
        text = _shorten_names(Code(port), Code(source))
        spelled = _spell_literals(text, source)
    except (SyntaxError, tokenize.TokenError):  # it is reported where the port is imported
        return port
    return _format(spelled, path)


# ------------------------------------------------------------------------------- imported names


def _shorten_names(port: Code, source: Code) -> str:
    """Return the port with what the source imports under names of its own, such as `nn`, `F`, `Tensor`."""
    first = next((one for one in port.tree.body if _is_import(one)), None)
    if first is None:
        return port.text
    held = list_imports(port.tree)
    shared = sorted(_list_shared(source).items(), key=lambda one: -len(one[0]))
    short = {  # of several names for one thing the shortest, which comes last
        full: alias
        for alias, full in shared
        if held.get(alias) == full or not _is_bound(port, alias)
    }
    edits, lacking, covered = [], set[str](), set[ast.AST]()
    for node in port.nodes:  # parents first: paddle.nn.functional before the paddle.nn in it
        full = dotted(node) if isinstance(node, ast.Attribute) and node not in covered else ""
        alias = short.get(full, "")
        if alias and not _is_hidden(port, node, alias):
            edits.append(port.replace(node, alias))  # type: ignore[arg-type]
            covered.update(ast.walk(node))
            lacking |= {full} if held.get(alias) != full else set()
    text = "\n".join([port.source(first), *_write_imports(lacking, short)])
    return port.splice([port.replace(first, text), *edits])


def _list_shared(source: Code) -> dict[str, str]:
    """Return the source's names for what both frameworks call the same: {"F": "paddle.nn.functional"}."""
    found = {}
    for alias, full in list_imports(source.tree).items():
        root, _, rest = full.partition(".")
        if root == "torch" and rest and exists(f"paddle.{rest}"):
            found[alias] = f"paddle.{rest}"
    return found


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and any(one.name == "paddle" for one in node.names)


def _write_imports(names: Iterable[str], short: Mapping[str, str]) -> list[str]:
    """Return the lines that import names of Paddle's, each under its short name."""
    plain, grouped = [], dict[str, list[str]]()
    for name in sorted(names):
        module, _, last = name.rpartition(".")
        if last == short[name]:
            grouped.setdefault(module, []).append(last)
        elif isinstance(find_object(name), ModuleType):
            plain.append(f"import {name} as {short[name]}")
        else:
            grouped.setdefault(module, []).append(f"{last} as {short[name]}")
    return plain + [f"from {module} import {', '.join(held)}" for module, held in grouped.items()]


def _is_bound(port: Code, name: str) -> bool:
    """Tell whether a name is taken outside of functions: by an import, a definition, a variable."""
    inside = {
        id(held)
        for node in port.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for held in ast.walk(node)
    }
    for node in port.nodes:
        if isinstance(node, ast.alias) and (node.asname or node.name.partition(".")[0]) == name:
            return True
        if getattr(node, "name", None) == name:  # a definition, or what an `except` holds
            return True
        stored = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        if stored and node.id == name and id(node) not in inside:  # type: ignore[attr-defined]
            return True
    return False


def _is_hidden(port: Code, node: ast.AST, name: str) -> bool:
    """Tell whether a function around a node has a variable of this name."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    around = (one for one in port.parents(node) if isinstance(one, kinds))
    return any(name in list_bound(one) for one in around)


# ------------------------------------------------------------------------------- literals


def _spell_literals(port: str, source: str) -> str:
    """Return the port with its numbers and texts written as the source writes them."""
    known: dict[tuple[type, Any], Counter[str]] = {}
    for _, text, value in _list_literals(source):
        known.setdefault((type(value), value), Counter())[text] += 1
    quotes = Counter(text[0] for spelled in known.values() for text in spelled if text[0] in "'\"")
    preferred = max(quotes, key=quotes.__getitem__, default="")
    code = Code(port)
    edits = []
    for (line, column), text, value in _list_literals(port):
        spelled = known.get((type(value), value), Counter())
        better = max(spelled, key=spelled.__getitem__, default=_quote(text, preferred))
        if better != text and text not in spelled and "\n" not in better:
            start = code.offset(line, column + 1)
            edits.append(Edit(start, start + len(text.encode()), better))
    return code.splice(edits)


def _quote(text: str, quote: str) -> str:
    """Return a plain text in other quotes, if any are preferred; anything else as it is."""
    inner = text[1:-1]
    is_plain = text[0] in "'\"" and len(text) > 1 and not set(inner) & {"'", '"', "\\"}
    return f"{quote}{inner}{quote}" if is_plain and quote else text


def _list_literals(text: str) -> Iterator[tuple[tuple[int, int], str, Any]]:
    """Yield where a number or a text stands, how it is written and its value; those of f-strings stay."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        depth += (name == "FSTRING_START") - (name == "FSTRING_END")
        if token.type not in (tokenize.NUMBER, tokenize.STRING) or depth:
            continue
        try:
            yield token.start, token.string, ast.literal_eval(token.string)
        except (SyntaxError, ValueError):  # an f-string of Python 3.11 is one token
            continue


# ------------------------------------------------------------------------------- the formatter


def _format(text: str, path: Path) -> str:
    """Return the text as the formatter of the source's project has it; as it is where there is none."""
    command = _find_formatter(path)
    if not command:
        return text
    words = [*command, str(path.resolve()), "-"]
    try:
        made = subprocess.run(
            words, input=text.encode(), capture_output=True, timeout=_SECONDS, cwd=path.parent
        )
    except (OSError, subprocess.TimeoutExpired):
        return text
    return made.stdout.decode() if made.returncode == 0 and made.stdout else text


def _find_formatter(path: Path) -> Sequence[str]:
    """Return the command of the formatter that the project sets, if it is installed; () without one."""
    for folder in path.resolve().parents:
        if (folder / "ruff.toml").is_file() or (folder / ".ruff.toml").is_file():
            tools = {"ruff"}
        elif (folder / "pyproject.toml").is_file():
            tools = _read_tools(folder / "pyproject.toml")
        else:
            continue
        return next(
            (words for tool, words in _FORMATTERS.items() if tool in tools and shutil.which(tool)),
            (),
        )
    return ()


def _read_tools(path: Path) -> set[str]:
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    tools = held.get("tool", {})
    return set(tools) if isinstance(tools, dict) else set()
