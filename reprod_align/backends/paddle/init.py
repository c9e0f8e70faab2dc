"""The initial values of a Paddle model's parameters. `backends.torch.init` is the twin."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reprod_align.backends.paddle import parameters
from reprod_align.backends.paddle.private import STATISTICS
from reprod_align.initialisation.sample import SEEDS, Collector, ParameterSample

import numpy as np
import paddle
from paddle import nn


def sample_parameters(
    build: Callable[[], nn.Layer], seeds: Sequence[int] = SEEDS
) -> dict[str, ParameterSample]:
    """Build the model with each seed and return samples of its initial parameters, by name.

    `build` must draw from Paddle's or numpy's global generator, and load no weights. The
    generators are left as they were found. Raises ReprodError if two seeds give different parameters.
    """
    collected = Collector(seeds)
    for seed in seeds:
        with _seed_generators(seed):
            model = build()
        shapes = {name: tuple(held.shape) for name, held in model.named_parameters()}
        for name, array in parameters(model):
            if name.rpartition(".")[2] not in STATISTICS:
                collected.add(name, array, shapes[name])
    return collected.samples()


@contextmanager
def _seed_generators(seed: int) -> Iterator[None]:
    """Seed the generators that a model may draw from, and restore them afterwards."""
    paddle_state, numpy_state = paddle.get_rng_state(), np.random.get_state()
    try:
        paddle.seed(seed)
        np.random.seed(seed)
        yield
    finally:
        paddle.set_rng_state(paddle_state)
        np.random.set_state(numpy_state)
