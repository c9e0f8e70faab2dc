"""An edit that fits the given batch only is no proof, and batches that no search has seen show it."""

from pathlib import Path

from reprod_align.mending.bench import Bench
from reprod_align.mending.proof import ENOUGH, Proof, list_unseen, prove, redraw, refuse
from reprod_align.pair.file import PairFile, open_file
from reprod_align.report import Check, Report
from tests.mending.pairs import open_bench, write_pair

import numpy as np
import pytest

OPTIMIZER = """

def torch_optimizer(model):
    import torch

    return torch.optim.SGD(model.parameters(), 0.125)
"""


def test_a_right_edit_is_proven_on_three_batches_at_least(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "a summand left out")
    with open_bench(path) as bench:
        before = bench.files.read(str(path), {})
        texts = {str(path): before.replace("  # the residual", " + x  # the residual")}
        found = prove(bench, texts)
    assert found.level == "safe" and len(found.batches) >= ENOUGH and not found.refuted


def test_an_edit_that_fits_the_batch_alone_is_refuted(tmp_path: Path) -> None:
    path = write_pair(tmp_path)
    with open_bench(path) as bench:
        total = float(bench.pair.inputs["x"].sum())  # type: ignore[call-overload]
        before = bench.files.read(str(path), {})
        condition = f"abs(float(x.sum()) - {total!r}) < 1e-6"
        after = before.replace("+ x  # the", f"+ x * (1.0 if {condition} else 0.5)  # the")
        assert after != before and bench.judge({str(path): after}).passed
        found = prove(bench, {str(path): after})
    assert found.level == "unproven" and (found.refuted or not found.report.passed)


def test_an_edit_that_mends_nothing_is_unproven(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    with open_bench(path) as bench:
        found = prove(bench, {})
    assert found.level == "unproven" and not found.batches


def test_batches_are_other_lengths_and_other_values(tmp_path: Path) -> None:
    with open_bench(write_pair(tmp_path)) as bench:
        found = [inputs["x"] for _, inputs in list_unseen(bench)]  # type: ignore[call-overload]
        given = bench.pair.inputs["x"]  # type: ignore[call-overload]
    assert len({one.shape for one in found}) > 1
    assert not any(one.shape == given.shape and np.array_equal(one, given) for one in found)


def test_too_few_batches_leave_an_edit_unproven() -> None:
    faithful = Report(checks=[Check("forward", "outputs", 0.0, True)])
    assert Proof(faithful, ("a", "b", "c")).level == "safe"
    assert Proof(faithful, ("a", "b")).level == "unproven"
    assert Proof(faithful, ("a", "b", "c"), "with length 4").level == "unproven"
    assert Proof(faithful, ("a", "b", "c"), refused="it catches an exception").level == "unproven"


@pytest.mark.parametrize("kind", ["ids", "mask", "floats", "scalar"])
def test_values_are_drawn_from_those_that_are_given(kind: str) -> None:
    given = {
        "ids": np.arange(12).reshape(3, 4),
        "mask": np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]]),
        "floats": np.linspace(0, 1, 12).reshape(3, 4),
        "scalar": np.array(3),
    }[kind]
    made = redraw({"x": given}, 5)["x"]  # type: ignore[call-overload]
    assert made.shape == given.shape and made.dtype == given.dtype
    if kind == "ids":
        assert sorted(made.ravel()) == sorted(given.ravel()) and (made != given).any()
    if kind == "mask":
        assert {tuple(row) for row in made} == {tuple(row) for row in given}
    if kind == "floats":
        assert (made != given).all()


def test_an_edit_that_catches_an_exception_is_refused(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "a summand left out")
    with open_bench(path) as bench:
        before = bench.files.read(str(path), {})
        line = "            return paddle.tanh(self.proj(mixed))  # the residual"
        caught = f"            try:\n    {line}\n            except ValueError:\n                return x"
        after = before.replace(line, caught)
        assert after != before
        assert refuse(bench, {str(path): after}) and not refuse(bench, {str(path): before})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.tanh(self.out", "torch.sigmoid(self.out"),  # the reference's forward pass
        ("nn.LayerNorm(6, eps=1e-12)", "nn.LayerNorm(6, eps=1e-3)"),  # and its constructor
        ("torch_loss(output):\n    return (output**2)", "torch_loss(output):\n    return output"),
        ("SGD(model.parameters(), 0.125)", "SGD(model.parameters(), 0.5)"),
        ("size=(3, 5, 6)", "size=(3, 4, 6)"),  # the inputs
    ],
)  # fmt: skip
def test_an_edit_of_the_reference_or_of_the_inputs_is_refused(
    before: str, after: str, tmp_path: Path
) -> None:
    path = write_pair(tmp_path)
    path.write_text(path.read_text() + OPTIMIZER)
    with open_file(path, PairFile) as file:
        bench = Bench(
            file.pair(),
            lambda: file.side("paddle"),
            make_given=lambda: (file.side("torch"), file.inputs()),
        )
        text = bench.files.read(str(path), {})
        assert text.count(before) == 1
        assert refuse(bench, {str(path): text.replace(before, after)})
        port = text.replace("epsilon=1e-12", "epsilon=1e-3")
        assert not refuse(bench, {str(path): port})


def test_a_number_of_the_batch_is_refuted_by_another_batch(tmp_path: Path) -> None:
    path = write_pair(tmp_path)
    with open_bench(path) as bench:
        before = bench.files.read(str(path), {})
        after = before.replace(
            "@ h\n            return paddle", "@ h * (x.shape[1] / 5)\n            return paddle"
        )
        assert after != before and bench.judge({str(path): after}).passed
        found = prove(bench, {str(path): after})
    assert (found.refuted or not found.report.passed) and found.level == "unproven"
