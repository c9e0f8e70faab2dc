"""What a case of the suite is: how to build a pair, and what `align` must say of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Inputs = Mapping[str, np.ndarray] | tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Pair:
    """A PyTorch model, its Paddle port, and what else `align` takes, by its own argument names."""

    torch_model: Any
    paddle_model: Any
    inputs: Inputs
    options: Mapping[str, Any] = field(default_factory=dict)
    """torch_loss, paddle_loss, torch_optimizer, ..., steps, name_map, copy_weights"""


@dataclass(frozen=True)
class Case:
    """A pair by name; `culprits` empty: a correct pair, which must pass."""

    name: str
    build: Callable[[], Pair]
    culprits: frozenset[str] = frozenset()
    """dotted torch or paddle names (module or parameter) of which the first finding must name one"""
    stages: frozenset[str] = frozenset()
    """the stages at which that finding may stand; empty: any"""
    words: tuple[str, ...] = ()
    """what the first finding's message must hold (the cause in words), lower case"""
    noted: str = ""
    """the kind of a report's `not_judged` that tells of the bug as well as a finding does; "": none"""


def case(
    name: str,
    build: Callable[[], Pair],
    *culprits: str,
    stages: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
) -> Case:
    """Return a Case; shorter to write in a long list."""
    return Case(name, build, frozenset(culprits), frozenset(stages), words)
