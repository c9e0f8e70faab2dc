"""The arguments of a call, written into what could stand in its place."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reprod_align.porting.calls.rows import Row, fill

Render = Callable[[ast.expr], str]
DROPPED: Final = ("device", "non_blocking", "memory_format", "pin_memory", "layout", "inplace")
RENAMED: Final = {"dim": "axis", "eps": "epsilon", "dims": "axis"}


@dataclass(frozen=True)
class Candidate:
    """A text that could stand in a call's place."""

    text: str
    trial: str
    """the same, with a variable in place of each argument"""
    plain: str = ""
    """the callee alone, where only that changes"""


class Slots:
    """The arguments of a call: their texts, and a variable for each."""

    def __init__(
        self, node: ast.Call, receiver: ast.expr | None, render: Render, close: Render
    ) -> None:
        """Take a call and the expression whose method it is; render, close: return a part's Paddle text."""
        self.node, self.render, self.close = node, render, close
        self.receiver = receiver
        self.starred = any(isinstance(one, ast.Starred) for one in node.args) or any(
            one.arg is None for one in node.keywords
        )
        self.has_dropped = any(one.arg in DROPPED for one in node.keywords)

    @property
    def _self(self) -> str:
        assert self.receiver is not None
        return self.close(self.receiver)

    def _list(self, whole: bool, trial: bool, renamed: bool = False) -> list[str]:
        found = []
        for at, one in enumerate(self.node.args):
            if isinstance(one, ast.Starred):
                found.append("*star" if trial else self.render(one))
            else:
                found.append(f"a{at}" if trial else self.render(one))
        for keyword in self.node.keywords:
            if keyword.arg is None:
                found.append("**rest" if trial else f"**{self.render(keyword.value)}")
            elif whole or keyword.arg not in DROPPED:
                name = RENAMED.get(keyword.arg, keyword.arg) if renamed else keyword.arg
                found.append(
                    f"{name}={f'k_{keyword.arg}' if trial else self.render(keyword.value)}"
                )
        return found

    def call(self, name: str, whole: bool, trial: bool = True, renamed: bool = False) -> str:
        """Return the call of a function by its name."""
        return f"{name}({', '.join(self._list(whole, trial, renamed))})"

    def method(self, name: str, whole: bool, renamed: bool = False, trial: bool = False) -> str:
        """Return the call of a method of the receiver."""
        held = "self" if trial else self._self
        return f"{held}.{name}({', '.join(self._list(whole, trial, renamed))})"

    def function(self, name: str, trial: bool = True) -> str:
        """Return the call of a function with the receiver as its first argument."""
        held = "self" if trial else self._self
        return f"{name}({', '.join([held, *self._list(False, trial)])})"

    def fill(self, row: Row) -> Iterator[Candidate]:
        """Yield a row's code with the arguments."""
        names, positions = list(row.arguments), self.node.args
        if row.star is None and (self.starred or len(positions) > len(names)):
            return
        if not {k.arg for k in self.node.keywords if k.arg not in DROPPED} <= set(names):
            return
        texts, trials = {}, {}
        if row.star is not None:
            positions, rest = positions[: row.star], positions[row.star :]
            if any(isinstance(one, ast.Starred) for one in positions):
                return
            texts[names[row.star]] = "".join(f"{self.render(one)}, " for one in rest)
            trials[names[row.star]] = "".join(
                "*star, " if isinstance(one, ast.Starred) else f"a{at}, "
                for at, one in enumerate(rest, row.star)
            )
        for at, one in enumerate(positions):
            texts[names[at]], trials[names[at]] = self.render(one), f"a{at}"
        for keyword in self.node.keywords:
            if keyword.arg in names:
                texts[keyword.arg] = self.render(keyword.value)
                trials[keyword.arg] = (
                    repr(keyword.value.value)
                    if isinstance(keyword.value, ast.Constant)
                    else f"k_{keyword.arg}"
                )
        trials = {n: (texts[n] if is_literal(texts[n]) else t) for n, t in trials.items()}
        held = self._self if self.receiver is not None else "self"
        try:
            text, trial = fill(row, texts, held), fill(row, trials, "self")
        except SyntaxError:
            return
        if text is not None and trial is not None:
            yield Candidate(text, trial)

    def name_arguments(self, signature: Sequence[str]) -> tuple[str, str] | None:
        """Return the arguments with positions as names, as text and as variables."""
        if len(self.node.args) > len(signature):
            return None
        texts, trials = [], []
        for at, one in enumerate(self.node.args):
            before = "" if at == 0 else f"{RENAMED.get(signature[at], signature[at])}="
            texts.append(before + self.render(one))
            trials.append(f"{before}a{at}")
        for keyword in self.node.keywords:
            if keyword.arg not in DROPPED:
                name = RENAMED.get(keyword.arg or "", keyword.arg)
                texts.append(f"{name}={self.render(keyword.value)}")
                trials.append(f"{name}=k_{keyword.arg}")
        return ", ".join(texts), ", ".join(trials)


def is_literal(text: str) -> bool:
    """Tell whether a text is a number, a word, or a list of such."""
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return False
    return True
