"""Two traces are compared offline: what differs is named first.

No element hides behind a norm or a large number.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pipeline  # noqa: F401
from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import torch as torch_backend
from reprod_align.backends.paddle import trace as paddle_trace
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.commands import main
from reprod_align.errors import ReprodError
from reprod_align.traces import RecordedTrace, load_trace, save_trace
from reprod_align.traces.diff import Floors, compare_traces, measure
from reprod_align.traces.sketch import sketch
from tests.traces.bert import (
    LAYER,
    bert_pair,
    compared,
    record,
)
from tests.traces.made import tensor, trace

import numpy as np
import paddle
import pytest
import torch


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("modes", [("whole", "whole"), ("sketch", "sketch"), ("whole", "sketch")])
def test_a_faithful_pair_agrees(tmp_path: Path, dtype: str, modes: tuple[str, str]) -> None:
    paths = record(tmp_path, *bert_pair(dtype), *modes)
    result = compared(paths)
    assert result.passed, result.summary()
    phases = {row.phase for row in result.rows}
    assert phases == {"input", "output", "gradient", "parameter gradient"}
    assert not result.only_expected and not result.only_actual
    if dtype == "float64":
        worst = max(row.relative for row in result.rows if "rounding" not in row.words)
        assert worst < 1e-12


@pytest.mark.parametrize("modes", [("whole", "whole"), ("sketch", "sketch"), ("whole", "sketch")])
def test_the_command_names_the_planted_fault(
    tmp_path: Path, modes: tuple[str, str], capsys: Any
) -> None:
    ours, theirs = bert_pair()
    theirs.bert.encoder.layer[1].attention.output.LayerNorm._epsilon = 1e-3
    paths = record(tmp_path, ours, theirs, *modes)
    assert main(["diff", *map(str, paths), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["first"]["module"] == f"{LAYER}.attention.output.LayerNorm"
    assert result["first"]["phase"] == "output" and result["first"]["estimated"] == (
        modes != ("whole", "whole")
    )
    assert main(["diff", *map(str, paths)]) == 1
    assert "its inputs agree, so the difference is made there" in capsys.readouterr().out


def test_a_fault_in_the_backward_pass_alone_is_named(tmp_path: Path) -> None:
    class Doubled(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    ours, theirs = bert_pair()
    dense = theirs.bert.encoder.layer[1].intermediate.dense
    handle = dense.register_forward_pre_hook(lambda layer, args: (Doubled.apply(args[0]),))
    paths = record(tmp_path, ours, theirs)
    handle.remove()
    first = compared(paths).first
    assert first is not None and (first.phase, first.module) == ("gradient", f"{LAYER}.attention")


def test_a_detached_tensor_has_no_gradient_and_fails(tmp_path: Path) -> None:
    ours, theirs = bert_pair()
    key = theirs.bert.encoder.layer[1].attention.self.key
    handle = key.register_forward_post_hook(lambda layer, args, out: out.detach())
    result = compared(record(tmp_path, ours, theirs))
    handle.remove()
    assert not result.passed
    assert any(f"{LAYER}.attention.self.key" in words for words in result.only_expected)


def test_linear_gradients_are_compared_in_one_layout(tmp_path: Path) -> None:
    paths = record(tmp_path, *bert_pair())
    name = f"{LAYER}.intermediate.dense"
    shapes = [
        (one.shape, one.transposed)
        for path in paths
        for one in load_trace(path).tensors
        if (one.phase, one.module, one.leaf) == ("parameter gradient", name, "weight")
    ]
    assert shapes == [((96, 48), False), ((48, 96), True)]


def test_names_are_mapped(tmp_path: Path, capsys: Any) -> None:
    ours, theirs = torch.nn.Sequential(torch.nn.Linear(3, 3)), paddle.nn.Sequential()
    theirs.add_sublayer("fc", paddle.nn.Linear(3, 3))
    weights = torch_backend.weights_of(ours)
    paddle_backend.load_weights(
        theirs, {"fc.weight": weights["0.weight"].T, "fc.bias": weights["0.bias"]}
    )
    values = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    with torch_trace.record_trace(ours, tmp_path / "a.trace"):
        ours(torch.tensor(values)).sum().backward()
    with paddle_trace.record_trace(theirs, tmp_path / "b.trace"):
        theirs(paddle.to_tensor(values)).sum().backward()
    words = ["diff", str(tmp_path / "a.trace"), str(tmp_path / "b.trace")]
    assert main(words) == 1
    assert "only in the actual trace" in capsys.readouterr().out
    assert main([*words, "--allow-unpaired"]) == 0
    (tmp_path / "names.json").write_text('{"0": "fc"}')
    assert main([*words, "--name-map", str(tmp_path / "names.json")]) == 0
    for bad in ("[1]", '{"0": 1}', "{", "[" * 100_000):
        (tmp_path / "names.json").write_text(bad)
        assert main([*words, "--name-map", str(tmp_path / "names.json")]) == 2
    assert main([*words, "--name-map", str(tmp_path / "none.json")]) == 2


def test_traces_of_different_models_cannot_be_compared() -> None:
    with pytest.raises(ReprodError, match="name map"):
        compare_traces(trace(np.ones(3)), trace(np.ones(3), leaf="x", phase="gradient"))


VALUES = np.random.default_rng(5).standard_normal((40, 40))
DIFFERENT = {
    "NaN on one side": np.where(VALUES > 2, np.nan, VALUES),
    "another shape": VALUES.reshape(-1),
    "a transposed square": VALUES.T,
    "an integer": np.rint(VALUES).astype(np.int64),
    "all zero": np.zeros_like(VALUES),
    "one element": VALUES + np.eye(40)[:, :1] * np.eye(40)[:1] * 1e-6,
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("whole", [True, False])
def test_differences_fail(name: str, whole: bool) -> None:
    def made(values: np.ndarray) -> RecordedTrace:
        kept = values if whole else sketch(values)
        changed = replace(tensor(values), whole=whole, values=kept)
        return RecordedTrace("PyTorch", "whole", (changed,))

    assert compare_traces(made(VALUES), made(VALUES)).passed
    result = compare_traces(made(VALUES), made(DIFFERENT[name]))
    assert not result.passed and result.first is not None
    json.dumps(result.to_json(), allow_nan=False)


def test_the_same_nan_on_both_sides_agrees() -> None:
    values = np.where(VALUES > 2, np.nan, VALUES)
    assert compare_traces(trace(values), trace(values.copy())).passed


def test_names_in_a_file_cannot_forge_lines(tmp_path: Path, capsys: Any) -> None:
    forged = RecordedTrace("x", "whole", (tensor(VALUES, module="a\naligned: all"),))
    other = RecordedTrace("x", "whole", (tensor(VALUES + 1, module="a\naligned: all"),))
    save_trace(tmp_path / "a", forged)
    save_trace(tmp_path / "b", other)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "\naligned" not in capsys.readouterr().out


SOURCE = np.random.default_rng(0)
MASK = np.triu(np.full((40, 40), -np.inf), 1)
NANS = np.where(SOURCE.standard_normal((40, 40)) > 2, np.nan, 1.0)


def recorded(values: np.ndarray, whole: bool) -> RecordedTrace:
    kept = values if whole else sketch(values)
    return RecordedTrace("PyTorch", "whole", (replace(tensor(values), whole=whole, values=kept),))


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return pairs that differ, although each differs little by a norm, or in places alone."""
    million = SOURCE.standard_normal((1000, 1000)).astype(np.float32)
    one_off = million.copy()
    one_off[5, 5] += 0.08
    column = SOURCE.standard_normal((400, 3))
    column[:, 1] = -1e9
    beside = column.copy()
    beside[0, 0] += 1.0
    ids = np.full(1000, 2**53 + 2**40)
    next_id = ids.copy()
    next_id[3] += 1
    rows = SOURCE.standard_normal((4, 200)) * np.array([[1e-4], [10], [10], [10]])
    negated = rows * np.array([[-1], [1], [1], [1]])
    return {
        "one element of a million": (million, one_off),
        "an error of 1 beside -1e9": (column, beside),
        "ids above 2**53": (ids, next_id),
        "a negated row of 1e-4 beside rows of 10": (rows, negated),
        "a causal mask, upper and lower": (MASK, MASK.T),
        "-inf and +inf": (MASK, -MASK),
        "-inf and NaN": (MASK, np.where(MASK == 0, 0, np.nan)),
        "NaN and inf": (NANS, np.where(np.isnan(NANS), np.inf, 1.0)),
        "inf and finfo.max": (-MASK, np.minimum(-MASK, np.finfo(float).max)),
    }


@pytest.mark.parametrize("name", pairs())
@pytest.mark.parametrize("modes", [(True, True), (False, False), (True, False)])
def test_what_differs_fails(name: str, modes: tuple[bool, bool]) -> None:
    expected, actual = pairs()[name]
    for first, second in ((expected, actual), (actual, expected)):
        result = compare_traces(recorded(first, modes[0]), recorded(second, modes[1]))
        assert not result.passed and "NOT aligned" in result.summary()
        assert compare_traces(recorded(first, modes[0]), recorded(first, modes[1])).passed


def test_a_row_hides_from_a_sketch_alone_in_float32() -> None:
    rows, negated = (
        one.astype(np.float32) for one in pairs()["a negated row of 1e-4 beside rows of 10"]
    )
    assert not compare_traces(recorded(rows, True), recorded(negated, True)).passed
    assert compare_traces(
        recorded(rows, False), recorded(negated, False)
    ).passed  # docs/align_reference.md


def test_the_words_say_where() -> None:
    million, one_off = pairs()["one element of a million"]
    summary = compare_traces(trace(million), trace(one_off)).summary()
    assert "DIFFERENT  at (5, 5) expected" in summary
    assert summary.splitlines()[-1].startswith(
        "NOT aligned: 1 of 1 pairs of tensors differ, first the output of layer.0: at (5, 5) expected"
    )
    found = compare_traces(recorded(MASK, False), recorded(MASK.T, False))
    assert "-inf in other places" in found.summary()


@pytest.mark.parametrize("whole", [True, False])
def test_nan_on_both_sides_is_reported(whole: bool, tmp_path: Any, capsys: Any) -> None:
    count = int(np.isnan(NANS).sum())
    result = compare_traces(recorded(NANS, whole), recorded(NANS, whole))
    assert result.passed and result.rows[0].nans == count
    summary = result.summary().splitlines()
    assert f"  {count} in the output of layer" in summary
    assert summary[-1].endswith("1 pairs of tensors agree, 1 of them but for NaN on both sides")
    everywhere = NANS * np.nan
    assert not compare_traces(recorded(everywhere, whole), recorded(everywhere, whole)).passed
    save_trace(tmp_path / "a", recorded(NANS, whole))
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "a")]) == 0
    assert "NaN on both sides, not compared (1):" in capsys.readouterr().out


def test_masks_on_both_sides_agree() -> None:
    for values in (MASK, np.triu(np.full((40, 40), -1e9), 1)):
        for whole in (True, False):
            result = compare_traces(recorded(values, whole), recorded(values, whole))
            assert result.passed and "NaN" not in result.summary()


def test_floors_and_limits_are_those_of_the_coarser_side() -> None:
    values = SOURCE.standard_normal((20, 20))
    expected, actual = tensor(values), tensor((values * (1 + 1e-6)).astype(np.float32))
    found = measure(expected, actual, Floors([expected]))
    assert found.passed and found.limit == 1e-4
    again = measure(expected, tensor(values * (1 + 1e-6)), Floors([expected]))
    assert not again.passed and again.limit == 1e-9
    zero = tensor(np.zeros((20, 20)))
    assert (
        measure(zero, tensor(values * 1e-16), Floors([expected, zero])).words
        == "rounding around zero"
    )
