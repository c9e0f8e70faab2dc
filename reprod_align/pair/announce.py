"""A side that shows on the terminal what it is about to do."""

from typing import Any, cast

from reprod_align.base.console import tell
from reprod_align.base.text import count
from reprod_align.model.side import Side
from reprod_align.pair.remote import RemoteSide


def announce_work(side: Side | RemoteSide) -> Side:
    """Return the side; it shows each time what it is about to do."""
    return cast(Side, _Announcing(side))


class _Announcing:
    def __init__(self, side: Any) -> None:
        self._side = side

    def __getattr__(self, name: str) -> Any:
        return getattr(self._side, name)

    def describe(self) -> Any:
        tell(f"{self._side.name}: weights and settings")
        return self._side.describe()

    def run(self, inputs: Any, training: bool, *rest: Any, **options: Any) -> Any:
        mode = "train" if training else "eval"
        tell(f"{self._side.name}: forward and backward, {mode} mode")
        return self._side.run(inputs, training, *rest, **options)

    def train(self, inputs: Any, steps: int, *rest: Any, **options: Any) -> Any:
        tell(f"{self._side.name}: optimizer, {count(steps, 'step')}")
        return self._side.train(inputs, steps, *rest, **options)

    def rates(self, steps: int) -> Any:
        tell(f"{self._side.name}: schedule, {steps} steps")
        return self._side.rates(steps)
