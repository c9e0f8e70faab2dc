"""Initial parameters of both frameworks: sampled by seed, the generators left as they were."""

from typing import Any

from reprod_align.backends import paddle as paddle_init
from reprod_align.backends import torch as torch_init
from reprod_align.errors import ReprodError

import numpy as np
import paddle
import pytest
import torch

TWINS = [(torch_init, torch, torch.nn.BatchNorm1d), (paddle_init, paddle, paddle.nn.BatchNorm1D)]


@pytest.mark.parametrize(("init", "framework", "norm"), TWINS)
def test_parameters_are_sampled_without_statistics(init: Any, framework: Any, norm: Any) -> None:
    samples = init.sample_parameters(
        lambda: framework.nn.Sequential(framework.nn.Linear(3, 5), norm(5)), (0, 1, 2)
    )
    assert list(samples) == ["0.weight", "0.bias", "1.weight", "1.bias"]


@pytest.mark.parametrize(("init", "framework", "norm"), TWINS)
def test_the_generators_are_left_as_they_were(init: Any, framework: Any, norm: Any) -> None:
    def draw() -> list[np.ndarray]:
        return [np.random.rand(2), np.asarray(framework.rand([2]))]

    seed = framework.manual_seed if framework is torch else framework.seed
    seed(3)
    np.random.seed(3)
    expected = draw()
    seed(3)
    np.random.seed(3)
    init.sample_parameters(lambda: framework.nn.Linear(3, 5), (0, 1, 2))
    for one, other in zip(expected, draw(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("init", "framework", "norm"), TWINS)
def test_models_with_other_parameters_are_refused(init: Any, framework: Any, norm: Any) -> None:
    sizes = iter([4, 5, 6])
    with pytest.raises(ReprodError, match="with another seed"):
        init.sample_parameters(lambda: framework.nn.Linear(3, next(sizes)), (0, 1, 2))
