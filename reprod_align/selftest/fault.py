"""A fault that can be planted: its kind, its place, and how it is put there."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from reprod_align.model.local import LocalSide

Plant = Callable[[LocalSide], AbstractContextManager[LocalSide]]


@dataclass(frozen=True)
class Fault:
    """One way in which a port goes wrong, at one place of the user's model."""

    kind: str
    module: str
    """Paddle's dotted name of the module, parameter or input; "" for none"""
    plant: Plant | None
    """gives the side with the fault in it while the block lasts; None: it has no place to be"""
    hint: str = ""
    """why it may stay hidden and what would show it, as far as can be told beforehand"""
    in_steps: bool = False
    """only optimizer steps can show it"""
