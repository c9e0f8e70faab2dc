"""The arguments of a call, written into what could stand in its place."""

import ast
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final

from reprod_align.api.calls import ApiRow
from reprod_align.api.filling import fill
from reprod_align.porting.calls.names import find_object

Render = Callable[[ast.expr], str]
DROPPED: Final = (
    "device", "non_blocking", "memory_format", "pin_memory", "layout", "inplace", "generator",
)  # fmt: skip
RESERVED_CALLS: Final = ("standardize(", "batch_norm_in_dtype(")
"""what the row of a norm in its input's dtype calls"""
RENAMED: Final = {"dim": "axis", "eps": "epsilon", "dims": "axis", "keepdims": "keepdim"}
_ALIASES: Final = {"keepdims": "keepdim", "axis": "dim", "x": "input", "x2": "other"}
"""NumPy's names of arguments, which PyTorch takes too -> its own"""


@dataclass(frozen=True)
class Candidate:
    """A text that could stand in a call's place."""

    text: str
    trial: str
    """the same, with a variable in place of each argument"""
    plain: str = ""
    """the callee alone, where only that changes"""
    reserved: bool = False
    """whether it serves precision alone: it is for exact drafts, or where nothing else will do"""


Forms = Mapping[int | str, str]
"""an argument's position or name, SELF or STAR -> what is written in its place

{0} is the argument, {1} the receiver, or the first argument of a function.
"""
SELF: Final = "self"
STAR: Final = "*"


class Slots:
    """The arguments of a call: their texts, and a variable for each."""

    def __init__(
        self,
        node: ast.Call,
        receiver: ast.expr | None,
        render: Render,
        close: Render,
        forms: Forms = MappingProxyType({}),
    ) -> None:
        """Take a call and the expression whose method it is; render, close: return a part's Paddle text.

        forms: arguments that are written otherwise than they stand there.
        """
        self.node, self.render, self.close = node, render, close
        self.receiver, self.forms = receiver, forms
        self.starred = is_starred(node)
        self.has_dropped = any(one.arg in DROPPED for one in node.keywords)

    def _write(self, key: int | str, node: ast.expr, trial: bool, variable: str) -> str:
        """Return an argument's text, or its variable, in the form that is asked for."""
        form = self.forms.get(key)
        if form is None:
            return variable if trial else self.render(node)
        return form.format(variable if trial else self.close(node), self._lead(trial))

    def _lead(self, trial: bool) -> str:
        """Return the receiver, or the first argument of a function, as it stands there."""
        if self.receiver is not None:
            return "self" if trial else self.close(self.receiver)
        return "a0" if trial else self.close(self.node.args[0]) if self.node.args else ""

    def _hold(self, trial: bool) -> str:
        """Return the receiver."""
        if self.receiver is None:
            return "self"
        form = self.forms.get(SELF)
        if form is None:
            return "self" if trial else self.close(self.receiver)
        return form.format("self" if trial else self.close(self.receiver))

    def _place(self, at: int, trial: bool) -> str:
        """Return the argument at a position."""
        node = self.node.args[at]
        if isinstance(node, ast.Starred):
            return f"*{self._write(STAR, node.value, trial, 'star')}"
        return self._write(at, node, trial, f"a{at}")

    def _list(self, whole: bool, trial: bool, renamed: bool = False) -> list[str]:
        found = [self._place(at, trial) for at in range(len(self.node.args))]
        for keyword in self.node.keywords:
            if keyword.arg is None:
                found.append("**rest" if trial else f"**{self.render(keyword.value)}")
            elif whole or keyword.arg not in DROPPED:
                name = RENAMED.get(keyword.arg, keyword.arg) if renamed else keyword.arg
                value = self._write(keyword.arg, keyword.value, trial, f"k_{keyword.arg}")
                found.append(f"{name}={value}")
        return found

    def write_call(self, name: str, whole: bool, trial: bool = True, renamed: bool = False) -> str:
        """Return the call of a function by its name."""
        return f"{name}({', '.join(self._list(whole, trial, renamed))})"

    def write_method(
        self, name: str, whole: bool, renamed: bool = False, trial: bool = False
    ) -> str:
        """Return the call of a method of the receiver."""
        return f"{self._hold(trial)}.{name}({', '.join(self._list(whole, trial, renamed))})"

    def write_listed(self, callee: str, trial: bool) -> str:
        """Return the call with the arguments by position as one list; callee: ".flip" is a method's."""
        held, count = self._hold(trial) if callee.startswith(".") else "", len(self.node.args)
        texts = self._list(False, trial)
        placed = f"[{', '.join(texts[:count])}]"
        return f"{held}{callee}({', '.join([placed, *texts[count:]])})"

    def write_function(self, name: str, trial: bool = True) -> str:
        """Return the call of a function with the receiver as its first argument."""
        return f"{name}({', '.join([self._hold(trial), *self._list(False, trial)])})"

    def fill(self, row: ApiRow) -> Iterator[Candidate]:
        """Yield a row's code with the arguments."""
        row = _name_placed(row, {one.arg for one in self.node.keywords})
        names, positions = list(row.arguments), self.node.args
        dropped: tuple[str, ...] = DROPPED
        if isinstance(find_object(row.name), type):  # a layer is made in the default dtype
            dropped = (*DROPPED, "dtype")
        if row.star is None:
            further = list_parameters(row.name)[len(names) : len(positions)]
            if self.starred or len(positions) > len(names) + len(further):
                return
            if not set(further) <= set(dropped):
                return
            positions = positions[: len(names)]
        named = {k.arg: k.arg if k.arg in names else _ALIASES.get(k.arg or "", k.arg)
                 for k in self.node.keywords if k.arg not in dropped}  # fmt: skip
        if not set(named.values()) <= set(names):
            return
        texts: dict[str, str] = {}
        trials: dict[str, str] = {}
        if row.star is not None:
            positions = positions[: row.star]
            if any(isinstance(one, ast.Starred) for one in positions):
                return
            for is_trial, found in (False, texts), (True, trials):
                found[names[row.star]] = "".join(
                    f"{self._place(at, is_trial)}, " for at in range(row.star, len(self.node.args))
                )
        for at in range(len(positions)):
            texts[names[at]], trials[names[at]] = self._place(at, False), self._place(at, True)
        for keyword in self.node.keywords:
            name = named.get(keyword.arg, keyword.arg)
            if name in names and keyword.arg is not None:
                variable, value = f"k_{keyword.arg}", keyword.value
                if isinstance(value, ast.Constant):
                    variable = repr(value.value)
                texts[name] = self._write(keyword.arg, value, False, variable)
                trials[name] = self._write(keyword.arg, value, True, variable)
        trials = {n: (texts[n] if is_literal(texts[n]) else t) for n, t in trials.items()}
        held = self._hold(False)
        if held == "super()" and not row.target.startswith("self."):
            held = "self"
        try:
            text, tried = fill(row, texts, held), fill(row, trials, self._hold(True))
        except SyntaxError:
            return
        if text is not None and tried is not None:
            yield Candidate(text, tried, reserved=row.target.startswith(RESERVED_CALLS))

    def name_arguments(self, signature: Sequence[str]) -> tuple[str, str] | None:
        """Return the arguments with positions as names, as text and as variables."""
        if len(self.node.args) > len(signature):
            return None
        texts, trials = [], []
        for at in range(len(self.node.args)):
            before = "" if at == 0 else f"{RENAMED.get(signature[at], signature[at])}="
            texts.append(before + self._place(at, False))
            trials.append(before + self._place(at, True))
        for keyword in self.node.keywords:
            if keyword.arg is not None and keyword.arg not in DROPPED:
                name, variable = RENAMED.get(keyword.arg, keyword.arg), f"k_{keyword.arg}"
                for trial, found in (False, texts), (True, trials):
                    value = self._write(keyword.arg, keyword.value, trial, variable)
                    found.append(f"{name}={value}")
        return ", ".join(texts), ", ".join(trials)


def _name_placed(row: ApiRow, words: Collection[str | None]) -> ApiRow:
    """Return a row whose last positions are named as in the call, where Paddle's names are the same."""
    call = ast.parse(row.target, mode="eval").body
    if not isinstance(call, ast.Call):
        return row
    signature, kept = list_parameters(ast.unparse(call.func)), len(call.args)
    while call.args and isinstance(last := call.args[-1], ast.Name) and last.id in words:
        if signature[len(call.args) - 1 : len(call.args)] != (last.id,):
            break
        call.keywords.insert(0, ast.keyword(last.id, call.args.pop()))
    return row if kept == len(call.args) else replace(row, target=ast.unparse(call))


@cache
def list_parameters(public: str) -> tuple[str, ...]:
    """Return the names of a function's parameters, none where they are not known or of any number."""
    try:
        found = list(inspect.signature(find_object(public)).parameters.values())
    except (TypeError, ValueError):
        return ()
    if any(one.kind is one.VAR_POSITIONAL for one in found):
        return ()
    return tuple(one.name for one in found)


def is_starred(node: ast.Call) -> bool:
    """Tell whether a call hands on a tuple or a dict of arguments."""
    return any(isinstance(one, ast.Starred) for one in node.args) or any(
        one.arg is None for one in node.keywords
    )


def is_literal(text: str) -> bool:
    """Tell whether a text is a number, a word, or a list of such."""
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return False
    return True
