"""A training that the judge defines and both frameworks run: the loss, the optimizer, the checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from reprod_align.base.blocks import Array
from reprod_align.base.tree import leaves
from reprod_align.errors import ReprodError

import numpy as np

OptimizerState = Mapping[str, Mapping[str, Array]]
"""kind ("exp_avg") -> parameter's name -> array"""


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: plain data, the same for both sides."""

    optimizer: str
    """"adamw" or "sgd" """
    rate: float
    weight_decay: float
    loss: str
    """"cross_entropy" of the first float output, its last axis the classes; or "weighted_sum" of all"""
    labels: int
    seed: int
    """of the labels and of the weights of a sum"""


class Recipes(Protocol):
    """What `backends.torch.training` and `backends.paddle.training` offer."""

    def loss(self, recipe: Recipe, output: Any) -> Any:
        """Return a scalar tensor."""

    def optimizer(self, recipe: Recipe, model: Any) -> Any:
        """Return the optimizer of a model."""

    def save(self, model: Any, path: str) -> None:
        """Write the state dict in the framework's own format."""

    def restore(self, model: Any, path: str) -> None:
        """Load what `save` wrote. Raises ReprodError where a name is missing or left over."""


def find_recipes(framework: str) -> Recipes:
    """Import and return the training module of "torch" or "paddle"."""
    return cast(Recipes, import_module(f"reprod_align.backends.{framework}.training"))


def choose_outputs(output: Any, is_tensor: Any, is_float: Any) -> Mapping[str, Any]:
    """Return the float tensors of an output by place. Raises ReprodError without one."""
    found = {at: one for at, one in leaves(output, is_tensor).items() if is_float(one)}
    if not found:
        raise ReprodError("the model returns no float tensor to train on")
    return found


def draw_labels(recipe: Recipe, shape: tuple[int, ...]) -> Any:
    """Return labels of this shape, int64."""
    return np.random.default_rng(recipe.seed).integers(0, recipe.labels, shape)


def draw_weights(recipe: Recipe, number: int, shape: tuple[int, ...]) -> Any:
    """Return the weights of output `number`, float64, so that their sum is of the order of one."""
    drawn = np.random.default_rng([recipe.seed, number]).standard_normal(shape)
    return drawn / max(1.0, float(np.sqrt(drawn.size)))
