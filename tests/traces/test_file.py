"""Traces on disk: recorded without changing anything, read without trust, compared offline."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pipeline  # noqa: F401
from models import pd_bert, pt_bert
from models.bert_config import BertConfig
from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import torch as torch_backend
from reprod_align.backends.paddle import trace as paddle_trace
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.commands import main
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.traces.diff import TraceDiff, compare_traces
from reprod_align.traces.file import RecordedTrace, TraceTensor, load_trace, save_trace
from reprod_align.traces.sketch import LENGTH, sketch

import numpy as np
import paddle
import pytest
import torch

SMALL = BertConfig(
    vocab_size=120,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=32,
)
IDS = np.random.default_rng(0).integers(1, 120, (4, 16))
LABELS = np.array([0, 1, 1, 1])
LAYER = "bert.encoder.layer.1"


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    yield
    torch_backend.set_precision("float32")
    paddle_backend.set_precision("float32")


def bert_pair(dtype: str = "float64") -> tuple[Any, Any]:
    torch_backend.set_precision(dtype)
    paddle_backend.set_precision(dtype)
    torch.manual_seed(7)
    ours = pt_bert.BertForSequenceClassification(SMALL)
    theirs = pd_bert.BertForSequenceClassification(SMALL)
    turned = paddle_backend.linear_weights(theirs)
    weights = torch_backend.weights_of(ours)
    paddle_backend.load_weights(theirs, {k: v.T if k in turned else v for k, v in weights.items()})
    ours.eval()
    theirs.eval()
    return ours, theirs


def torch_loss(model: Any) -> Any:
    return torch.nn.functional.cross_entropy(model(torch.tensor(IDS)), torch.tensor(LABELS))


def paddle_loss(model: Any) -> Any:
    logits = model(paddle.to_tensor(IDS))
    return paddle.nn.functional.cross_entropy(logits, paddle.to_tensor(LABELS))


def record(folder: Path, ours: Any, theirs: Any, *modes: str) -> tuple[Path, Path]:
    first, second = modes or ("whole", "whole")
    paths = folder / f"torch_{first}.trace", folder / f"paddle_{second}.trace"
    with torch_trace.record_trace(ours, paths[0], mode=first):
        torch_loss(ours).backward()
    with paddle_trace.record_trace(theirs, paths[1], mode=second):
        paddle_loss(theirs).backward()
    return paths


def compared(paths: tuple[Path, Path], **options: Any) -> TraceDiff:
    return compare_traces(load_trace(paths[0]), load_trace(paths[1]), **options)


def tensor(values: np.ndarray, **changes: Any) -> TraceTensor:
    plain = TraceTensor(
        module="layer", call=0, order=0, leaf="", phase="output", dtype=str(values.dtype),
        shape=values.shape, whole=True, transposed=False, passed_on=False, values=values,
    )  # fmt: skip
    return replace(plain, **changes)


def trace(*values: np.ndarray, **changes: Any) -> RecordedTrace:
    tensors = [tensor(v, order=n, module=f"layer.{n}", **changes) for n, v in enumerate(values)]
    return RecordedTrace("PyTorch", "whole", tuple(tensors))


# ---------------------------------------------------------------------- on disk


@pytest.mark.parametrize(
    "dtype", ["bool", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_round_trip(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(math.prod(shape)).reshape(shape) * (1 + 2j)).real.astype(dtype)
    if dtype.startswith("complex"):
        values = (values * (1 - 2j)).astype(dtype)
    written = trace(values, np.asfortranarray(values), phase="gradient", leaf="[0].logits", call=3)
    save_trace(tmp_path / "a.trace", written)
    read = load_trace(tmp_path / "a.trace")
    assert (read.framework, read.mode) == ("PyTorch", "whole")
    for before, after in zip(written.tensors, read.tensors, strict=True):
        assert after.values.dtype == before.values.dtype
        np.testing.assert_array_equal(after.values, before.values)
        assert replace(before, values=0) == replace(after, values=0)  # type: ignore[arg-type]


def test_the_file_is_plain_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    shared = np.arange(6.0)
    save_trace(tmp_path / "a.trace", trace(shared, shared, np.ones(2, np.float32)))
    arrays = load_file(tmp_path / "a.trace")
    assert {name: array.shape for name, array in arrays.items()} == {"0": (6,), "1": (2,)}


def test_an_empty_trace_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(b"old")
    with pytest.raises(ReprodError, match="empty"):
        save_trace(path, RecordedTrace("PyTorch", "whole", ()))
    model = torch.nn.Linear(2, 2)
    with pytest.raises(ReprodError, match="nothing was recorded"):
        with torch_trace.record_trace(model, path):
            pass
    with pytest.raises(RuntimeError):
        with torch_trace.record_trace(model, path):
            model(torch.ones(1, 3))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.trace"]


def packed(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def described(content: object) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content)
    one = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    return packed({"__metadata__": {"reprod_align.trace": text}, "0": one}, bytes(8))


ENTRY = {
    "module": "a", "call": 0, "order": 0, "leaf": "", "phase": "output", "dtype": "float64",
    "shape": [1], "whole": True, "transposed": False, "passed_on": False, "data": 0,
}  # fmt: skip
CONTENT = {"version": 1, "framework": "PyTorch", "mode": "whole", "tensors": [ENTRY]}


def with_entry(**changes: object) -> bytes:
    return described({**CONTENT, "tensors": [{**ENTRY, **changes}]})


F64 = {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 1 << 43]}
HOSTILE = {
    "empty": b"",
    "short": b"\x01",
    "header longer than the file": packed({}, length=1 << 20),
    "header of 2^63 bytes": packed({}, length=1 << 63),
    "no JSON": packed(b"\x80\x04cos\nsystem\n"),
    "a pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93.",
    "declares terabytes": packed({"0": F64}),
    "offsets past the end": packed({"0": {**F64, "shape": [4], "data_offsets": [0, 32]}}, bytes(8)),
    "shape against offsets": packed({"0": {**F64, "shape": [3], "data_offsets": [0, 8]}}, bytes(8)),
    "foreign": packed({"__metadata__": {"format": "pt"}}),
    "metadata no JSON": described("__import__('os').system('true')"),
    "deep metadata": described("[" * 100_000),
    "metadata a list": described([1]),
    "another version": described({**CONTENT, "version": 2}),
    "version true": described({**CONTENT, "version": "1"}),
    "no framework": described({**CONTENT, "framework": None}),
    "no tensors": described({**CONTENT, "tensors": []}),
    "tensors no list": described({**CONTENT, "tensors": {"a": 1}}),
    "entry no object": described({**CONTENT, "tensors": [7]}),
    "entry lacks a field": described({**CONTENT, "tensors": [{"module": "a"}]}),
    "entry has one more": with_entry(code="import os"),
    "module a number": with_entry(module=3),
    "order a text": with_entry(order="0"),
    "call true": with_entry(call=True),
    "huge integer": described(json.dumps(CONTENT).replace('"order": 0', '"order": ' + "9" * 5000)),
    "shape negative": with_entry(shape=[-1]),
    "shape huge": with_entry(shape=[1 << 40, 1 << 40], whole=False),
    "shape a text": with_entry(shape="1"),
    "shape of another tensor": with_entry(shape=[2]),
    "dtype of another tensor": with_entry(dtype="float32"),
    "dtype unknown": with_entry(dtype="object"),
    "phase unknown": with_entry(phase="weights"),
    "data missing": with_entry(data="../../etc/passwd"),
    "no sketch": with_entry(whole=False),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_line(tmp_path: Path, name: str, capsys: Any) -> None:
    path = tmp_path / "bad.trace"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ReprodError) as caught:
        load_trace(path)
    assert "bad.trace" in str(caught.value) and "\n" not in str(caught.value)
    assert main(["diff", str(path), str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1


def test_the_sound_twin_of_the_hostile_files_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_bytes(with_entry())
    assert load_trace(tmp_path / "a.trace").tensors[0].values.tolist() == [0.0]


def test_a_file_cut_anywhere_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    save_trace(path, trace(np.arange(5.0), np.arange(3)))
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(ReprodError, match="a.trace"):
            load_trace(path)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="missing"):
        load_trace(tmp_path / "none")
    with pytest.raises(ReprodError, match="not a file"):
        load_trace(tmp_path)


# ---------------------------------------------------------------------- recording


@pytest.mark.parametrize("mode", ["whole", "sketch"])
def test_recording_changes_no_bit(tmp_path: Path, mode: str) -> None:
    ours, theirs = bert_pair("float32")
    ours.train()
    theirs.train()  # with dropout: the random streams must not move either

    def torch_run() -> list[np.ndarray]:
        torch.manual_seed(3)
        ours.zero_grad()
        loss = torch_loss(ours)
        loss.backward()
        return [loss.detach().numpy(), *(p.grad.numpy().copy() for p in ours.parameters())]

    def paddle_run() -> list[np.ndarray]:
        paddle.seed(3)
        theirs.clear_gradients()
        loss = paddle_loss(theirs)
        loss.backward()
        return [np.array(loss.numpy()), *(np.array(p.grad.numpy()) for p in theirs.parameters())]

    for run, record_trace, model in (
        (torch_run, torch_trace.record_trace, ours),
        (paddle_run, paddle_trace.record_trace, theirs),
    ):
        before = run()
        with record_trace(model, tmp_path / "a.trace", mode=mode):
            during = run()
        for one, other, again in zip(before, during, run(), strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(one, again)


def test_hooks_come_off(tmp_path: Path) -> None:
    ours, theirs = bert_pair()
    record(tmp_path, ours, theirs)
    with pytest.raises(KeyError):
        with torch_trace.record_trace(ours, tmp_path / "none"):
            raise KeyError("a user's")
    with pytest.raises(KeyError):
        with paddle_trace.record_trace(theirs, tmp_path / "none"):
            raise KeyError("a user's")
    for module in ours.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
    for layer in theirs.sublayers(include_self=True):
        assert not layer._forward_post_hooks and not layer._forward_pre_hooks
    assert not any(parameter._backward_hooks for parameter in ours.parameters())
    assert not (tmp_path / "none").exists()


def test_a_parameter_handed_out_keeps_no_hook(tmp_path: Path) -> None:
    class Table(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self) -> torch.Tensor:
            return self.weight

    table = Table()
    with torch_trace.record_trace(table, tmp_path / "a.trace"):
        table().sum().backward()
    assert not table.weight._backward_hooks
    phases = [one.phase for one in load_trace(tmp_path / "a.trace").tensors]
    assert phases == ["output", "gradient", "parameter gradient"]


def test_gradients_are_those_of_the_tensors(tmp_path: Path) -> None:
    ours, _ = bert_pair()
    kept: list[torch.Tensor] = []
    module = ours.get_submodule(f"{LAYER}.attention")
    handle = module.register_forward_hook(
        lambda module, args, out: (out.retain_grad(), kept.append(out))[0]
    )
    with torch_trace.record_trace(ours, tmp_path / "a.trace"):
        torch_loss(ours).backward()
    handle.remove()
    found = {
        (one.phase, one.module, one.leaf): one for one in load_trace(tmp_path / "a.trace").tensors
    }
    gradient = found["gradient", f"{LAYER}.attention", ""].values
    np.testing.assert_array_equal(gradient, kept[0].grad.numpy())
    for name, parameter in ours.named_parameters():
        owner, _, role = name.rpartition(".")
        if parameter.grad is not None:
            values = found["parameter gradient", owner, role].values
            np.testing.assert_array_equal(values, parameter.grad.numpy())


def test_a_tensor_changed_in_place_is_another(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True))
    with torch_trace.record_trace(model, tmp_path / "a.trace"):
        model(torch.randn(8, 4)).sum().backward()
    kept = load_trace(tmp_path / "a.trace").tensors
    found = {
        (one.phase, one.module): one.values for one in kept if one.phase != "parameter gradient"
    }
    before, after = found["output", "0"], found["output", "1"]
    assert before.min() < 0
    np.testing.assert_array_equal(found["input", "1"], before)
    np.testing.assert_array_equal(after, np.maximum(before, 0))
    np.testing.assert_array_equal(found["gradient", "0"], before > 0)
    np.testing.assert_array_equal(found["gradient", "1"], np.ones((8, 4)))


def test_forward_or_backward_alone(tmp_path: Path) -> None:
    ours, _ = bert_pair()
    path = tmp_path / "a.trace"
    with torch_trace.record_trace(ours, path, backward=False):
        torch_loss(ours)
    assert {one.phase for one in load_trace(path).tensors} == {"input", "output"}
    with torch_trace.record_trace(ours, path, forward=False):
        torch_loss(ours).backward()
    assert {one.phase for one in load_trace(path).tensors} == {"gradient", "parameter gradient"}
    ours.zero_grad()
    with pytest.raises(ReprodError, match="run the backward pass inside the block"):
        with torch_trace.record_trace(ours, path):
            torch_loss(ours)


@pytest.mark.parametrize("record_trace", [torch_trace.record_trace, paddle_trace.record_trace])
def test_wrong_arguments_are_said(tmp_path: Path, record_trace: Any) -> None:
    with pytest.raises(ReprodError, match='"whole" or "sketch" expected'):
        with record_trace(torch.nn.Linear(2, 2), tmp_path / "a", mode="all"):
            pass
    with pytest.raises(ReprodError, match="model expected, got a str"):
        with record_trace("model", tmp_path / "a"):
            pass


def test_a_sketch_stays_small(tmp_path: Path) -> None:
    ours, _ = bert_pair("float32")
    wide = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])
    with torch_trace.record_trace(wide, tmp_path / "a.trace", mode="sketch"):
        wide(torch.randn(64, 512)).sum().backward()
    kept = load_trace(tmp_path / "a.trace").tensors
    assert max(one.values.nbytes for one in kept) <= 8 * LENGTH
    assert (tmp_path / "a.trace").stat().st_size < len(kept) * 4700


# ---------------------------------------------------------------------- comparing


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
