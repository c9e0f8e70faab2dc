"""A recipe trains both frameworks alike: the same losses, and checkpoints that say what they lack."""

from pathlib import Path
from typing import Any

from reprod_align.backends.paddle import training as ours
from reprod_align.backends.recipes import Recipe, choose_outputs, draw_labels, find_recipes
from reprod_align.backends.torch import training as theirs
from reprod_align.errors import ReprodError

import numpy as np
import paddle
import pytest
import torch

WEIGHT = np.random.default_rng(0).standard_normal((3, 4)) * 0.3
INPUT = np.random.default_rng(1).standard_normal((5, 3))


@pytest.fixture
def models(float64_by_default: None) -> tuple[Any, Any]:
    """A linear layer of each framework with the same weights."""
    one, other = torch.nn.Linear(3, 4, bias=False), paddle.nn.Linear(3, 4, bias_attr=False)
    one.weight.data[:] = torch.tensor(WEIGHT.T)
    other.weight.set_value(WEIGHT)
    return one, other


@pytest.mark.parametrize("loss", ["cross_entropy", "weighted_sum"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_both_train_alike(loss: str, optimizer: str, models: tuple[Any, Any]) -> None:
    made = Recipe(optimizer, 0.1, 0.01, loss, 4, 7)
    seen: list[list[float]] = [[], []]
    for at, (model, recipe, value) in enumerate(
        zip(models, (theirs, ours), (torch.tensor(INPUT), paddle.to_tensor(INPUT)), strict=True)
    ):
        steps = recipe.optimizer(made, model)  # type: ignore[attr-defined]
        for _ in range(3):
            found = recipe.loss(made, {"x": model(value)})  # type: ignore[attr-defined]
            found.backward()
            steps.step()
            steps.zero_grad() if at == 0 else steps.clear_grad()
            seen[at].append(float(found.detach()))
    assert np.allclose(*seen, rtol=1e-9, atol=0) and len(set(seen[0])) == 3


@pytest.mark.filterwarnings("ignore:Skip loading")
def test_checkpoints(models: tuple[Any, Any], tmp_path: Path) -> None:
    bare = torch.nn.Linear(3, 5), paddle.nn.Linear(3, 5)
    for model, other, name in zip(models, bare, ("torch", "paddle"), strict=True):
        recipes, path = find_recipes(name), str(tmp_path / f"{name}.pdparams")
        recipes.save(model, path)
        recipes.restore(model, path)
        with pytest.raises(ReprodError, match="checkpoint"):
            recipes.restore(other, path)


def test_labels_and_outputs() -> None:
    made = Recipe("sgd", 0.1, 0.0, "cross_entropy", 4, 7)
    assert np.array_equal(draw_labels(made, (2, 3)), draw_labels(made, (2, 3)))
    with pytest.raises(ReprodError, match="no float tensor"):
        choose_outputs({"n": 1}, lambda one: isinstance(one, np.ndarray), lambda one: True)
