"""A side that tells what it is about to do."""

from typing import Any, cast

from reprod_align.base.progress import Tell
from reprod_align.model.side import Side


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
