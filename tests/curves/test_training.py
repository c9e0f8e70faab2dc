"""A user's file with two trainings: what is taken from it, what it lacks, how their data differ.

A training's state goes from PyTorch to Paddle.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pipeline  # noqa: F401  (quietens what follows)
from reprod_align.curves.training import (
    StepDraws,
    TrainingFile,
    convert_to_paddle,
    describe_difference,
)
from reprod_align.errors import ReprodError
from reprod_align.match import TensorPair
from reprod_align.pair.file import open_file
from reprod_align.randomness import SharedRandom

import numpy as np
import pytest

FILE = """
import numpy as np
import torch


def batch(step):
    return (np.full((4, 3), 1.0 / step),), {"y": np.arange(4.0)}


def torch_model():
    return torch.nn.Linear(3, 1)


def torch_loss(output, targets):
    assert output.dtype == targets["y"].dtype == torch.float64
    return ((output[:, 0] - targets["y"]) ** 2).mean()


def torch_optimizer(model):
    return torch.optim.SGD(model.parameters(), 0.1)
"""


@contextmanager
def loaded(folder: Path, text: str) -> Iterator[TrainingFile]:
    (folder / "training.py").write_text(text)
    with open_file(folder / "training.py", TrainingFile) as file:
        yield file


def test_a_step_is_run_with_its_targets_and_draws(tmp_path: Path) -> None:
    with loaded(tmp_path, FILE) as file:
        training = file.make_training("torch")
        assert training.read_batch(2) is training.read_batch(2)
        with training.side.working("float64"):
            values = training.side.values()
            trace = training.run(2, training.read_batch(2))
    output = np.full((4, 3), 0.5) @ values["weight"].T + values["bias"]  # (4, 1)
    assert trace.loss == pytest.approx(((output[:, 0] - np.arange(4.0)) ** 2).mean(), rel=1e-12)
    assert trace.gradients.keys() == {"weight", "bias"}


def test_a_loss_of_the_output_alone(tmp_path: Path) -> None:
    text = FILE.replace("(output, targets):\n    assert output.dtype == targets[\"y\"].dtype == "
                        "torch.float64\n    return ((output[:, 0] - targets[\"y\"]) ** 2).mean()",
                        "(output):\n    return output.sum()")  # fmt: skip
    with loaded(tmp_path, text) as file:
        training = file.make_training("torch")
        with training.side.working("float64"):
            assert training.run(1, training.read_batch(1)).loss is not None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("batch = None", r"defines no function batch\(step\)"),
        ("torch_loss = None", r"no function torch_loss\(output, targets\)"),
        ("torch_optimizer = None", r"no function torch_optimizer\(model\)"),
        ("def batch(step): return [1]", r"batch\(1\) must return \(inputs, targets\)"),
        ("def batch(step): return (3,), 1", r"batch\(1\): "),
        ("checkpoints = [1]", "no function torch_restore"),
    ],
)
def test_what_a_file_lacks(tmp_path: Path, more: str, words: str) -> None:
    with loaded(tmp_path, FILE + more) as file, pytest.raises(ReprodError, match=words):
        file.list_checkpoints()
        file.make_training("torch").read_batch(1)


def test_checkpoints_rise(tmp_path: Path) -> None:
    restore = "\ndef torch_restore(m, o, s): ...\npaddle_restore = torch_restore\n"
    with loaded(tmp_path, f"{FILE}{restore}checkpoints = lambda: [8, 2, 8]") as file:
        assert file.list_checkpoints() == [2, 8]
    with loaded(tmp_path, f"{FILE}{restore}checkpoints = [-1]") as file:
        with pytest.raises(ReprodError, match="checkpoints must be steps from 0"):
            file.list_checkpoints()


def test_a_steps_draws_are_the_streams_own() -> None:
    ours, theirs = StepDraws(SharedRandom(3, 0, 1)), SharedRandom(3, 0, 1)
    for name in ("uniform", "normal"):
        np.testing.assert_array_equal(getattr(ours, name)((2, 3)), getattr(theirs, name)((2, 3)))
    np.testing.assert_array_equal(ours.integers(0, 9, (4,)), theirs.integers(0, 9, (4,)))
    np.testing.assert_array_equal(ours.permutation(7), theirs.permutation(7))


DRAW = np.random.default_rng(0)
X, Y = DRAW.standard_normal((6, 8, 5)), DRAW.integers(0, 3, (6, 8))


def read(step: int) -> Any:
    return (X[step - 1],), Y[step - 1]


def changed(step: int) -> Any:
    inputs = X[step - 1].copy()
    inputs[0, 0] += step == 3
    return (inputs,), Y[step - 1]


def reordered(step: int) -> Any:
    order = np.roll(np.arange(8), 1)
    return (X[step - 1][order],), Y[step - 1][order]


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (read, ""),
        (changed, "step 3: input 0 differs: 1 of 40 elements"),
        (lambda step: read(step + 1), "step 1: Paddle reads what PyTorch reads at step 2"),
        (reordered, "step 1: the same examples in another order within the batch"),
        (lambda step: ((X[step - 1][:4],), Y[step - 1]), "step 1: input 0 differs: shape (8, 5)"),
        (
            lambda step: (read(step)[0], Y[step - 1] + 1.0),
            "targets differs: int64 in PyTorch, float64",
        ),
        (
            lambda step: ({"x": X[step - 1]}, Y[step - 1]),
            "PyTorch reads input 0, targets, Paddle input x",
        ),
        (lambda step: (read(step)[0], {"y": Y[step - 1]}), "Paddle input 0, targets.y"),
    ],
)
def test_the_difference_is_described(theirs: Any, words: str) -> None:
    found = describe_difference(read, theirs, range(1, 5))
    assert words in found and bool(words) == bool(found)


LINEAR = TensorPair(("a",), ("x",), (True,))


def test_adams_averages_and_its_count_are_carried() -> None:
    average = np.arange(18.0).reshape(6, 3)
    kept = {"exp_avg": {"a": average}, "step": {"a": np.array(4.0)}}
    fresh = {kind: {"x": np.ones(1)} for kind in ("moment1", "beta1_pow_acc", "beta2_pow_acc")}
    found = convert_to_paddle(kept, [LINEAR], fresh, (0.5, 0.25))
    np.testing.assert_array_equal(found["moment1"]["x"], average.T)
    assert found["beta1_pow_acc"]["x"].tolist() == [0.5**5]  # of the next step
    assert found["beta2_pow_acc"]["x"].tolist() == [0.25**5]


def test_a_kind_of_unknown_meaning_is_refused() -> None:
    with pytest.raises(
        ReprodError, match=r"the optimizers' state \(mu_product\) cannot be carried"
    ):
        convert_to_paddle({"mu_product": {"a": np.ones(1)}}, [LINEAR], {}, None)
    assert convert_to_paddle({}, [LINEAR], {"mu_product": {"x": np.ones(1)}}, None) == {}
