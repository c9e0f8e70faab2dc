"""Parameters drawn with numpy, as a side's samples: shared by the tests of initialisation."""

import math
from collections.abc import Callable

from reprod_align.initialisation.sample import Collector, ParameterSample

import numpy as np

Draw = Callable[[np.random.Generator], np.ndarray]


def normal(std: float, *shape: int, mean: float = 0.0) -> Draw:
    return lambda draw: draw.normal(mean, std, shape)


def uniform(bound: float, *shape: int) -> Draw:
    return lambda draw: draw.uniform(-bound, bound, shape)


def constant(value: float, *shape: int) -> Draw:
    return lambda draw: np.full(shape, value)


def table(row: int | None, *shape: int) -> Draw:
    """An Embedding's weight, its padding row zero unless `row` is None."""

    def drawn(draw: np.random.Generator) -> np.ndarray:
        weight = draw.normal(0.0, 0.02, shape)
        if row is not None:
            weight[row] = 0.0
        return weight

    return drawn


def truncated(std: float, *shape: int) -> Draw:
    """Normal numbers cut at two standard deviations."""

    def drawn(draw: np.random.Generator) -> np.ndarray:
        values = draw.normal(size=(2 * math.prod(shape),))
        return std * values[np.abs(values) < 2][: math.prod(shape)].reshape(shape)

    return drawn


def orthogonal(*shape: int) -> Draw:
    return lambda draw: np.linalg.qr(draw.normal(size=shape))[0]


def sampled(stream: int, seeds: int = 8, **draws: Draw) -> dict[str, ParameterSample]:
    """A side whose parameters are drawn with numpy; `stream` tells the sides apart."""
    collected = Collector(range(seeds))
    for seed in range(seeds):
        generator = np.random.default_rng([stream, seed])
        for name, draw in draws.items():
            array = draw(generator).astype(np.float32)
            collected.add(name, array, array.shape)
    return collected.samples()
