"""Two traces are compared offline: what differs is named first."""

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
from reprod_align.traces.diff import compare_traces
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
