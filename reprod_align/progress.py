"""Tells what is being done, in one line that is written over: for a person at a terminal."""

import sys
from collections.abc import Callable
from typing import Any, cast

from reprod_align.errors import one_line
from reprod_align.side import Side

Tell = Callable[[str], None]
_START_OF_LINE = "\r\x1b[K"


def tell(text: str) -> None:
    """Show `text` in place of what was shown before, "" nothing; only if stderr is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():  # None: closed from the start
        sys.stderr.write(_START_OF_LINE + one_line(text)[:100])
        sys.stderr.flush()


def told(side: Side, tell: Tell) -> Side:
    """Return the side, telling each time what it is about to do."""
    return cast(Side, _Told(side, tell))


class _Told:
    def __init__(self, side: Side, tell: Tell) -> None:
        self._side, self._tell = side, tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._side, name)

    def describe(self) -> Any:
        self._tell(f"{self._side.name}: weights and settings")
        return self._side.describe()

    def run(self, inputs: Any, training: bool, *rest: Any, **options: Any) -> Any:
        mode = "train" if training else "eval"
        self._tell(f"{self._side.name}: forward and backward, {mode} mode")
        return self._side.run(inputs, training, *rest, **options)

    def train(self, inputs: Any, steps: int, *rest: Any, **options: Any) -> Any:
        self._tell(f"{self._side.name}: optimizer, {steps} step(s)")
        return self._side.train(inputs, steps, *rest, **options)

    def rates(self, steps: int) -> Any:
        self._tell(f"{self._side.name}: schedule, {steps} steps")
        return self._side.rates(steps)
