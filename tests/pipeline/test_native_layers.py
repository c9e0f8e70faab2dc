"""The native layers equal the plain ones, draw their own dropout fairly, and refuse in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pipeline  # noqa: F401  (quietens what follows)
from models import pd_bert, pt_bert
from models.bert_config import BertConfig
from pipeline.pd import native_layers
from pipeline.pd.native_layers import (
    NativeDropout,
    NativeGELU,
    NativeLayerNorm,
    NativeLinear,
    native,
)
from reprod_align import ReprodError, align

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import torch
from paddle import nn

pytestmark = pytest.mark.usefixtures("float64_by_default")
TINY = BertConfig(
    vocab_size=101,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=40,
    max_position_embeddings=20,
    initializer_range=0.2,
)
IDS = np.random.default_rng(0).integers(1, 101, (3, 11))
MASK = (np.arange(11) < np.array([[11], [7], [9]])).astype(np.int64)
LABELS = np.array([0, 1, 1])

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


def run_step(model: nn.Layer) -> dict[str, np.ndarray]:
    """Return the logits and all gradients of one step."""
    model.clear_gradients(set_to_zero=False)
    logits = model(paddle.to_tensor(IDS * MASK), attention_mask=paddle.to_tensor(MASK))
    F.cross_entropy(logits, paddle.to_tensor(LABELS)).backward()
    found = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return {name: tensor.numpy() for name, tensor in ({"logits": logits} | found).items()}


@needs_compiler
def test_native_equals_plain_up_to_rounding() -> None:
    model = pd_bert.BertForSequenceClassification(TINY)
    model.eval()
    plain = run_step(model)
    undo = native(model)
    fast = run_step(model)
    undo()
    assert plain.keys() == fast.keys() and len(plain) > 30
    for name, array in plain.items():
        rounding = 1e-12 * np.abs(array).max() + 1e-15  # a key's bias has the gradient 0
        assert np.abs(array - fast[name]).max() <= rounding, name
    kinds = {type(layer) for layer in model.sublayers()}
    assert not kinds & {NativeLinear, NativeGELU, NativeLayerNorm, NativeDropout}


@needs_compiler
def test_align_finds_the_native_model_faithful_in_train_mode_too() -> None:
    ours = pd_bert.BertForSequenceClassification(TINY)
    native(ours)
    report = align(
        pt_bert.BertForSequenceClassification(TINY),
        ours,
        {"input_ids": IDS * MASK, "attention_mask": MASK},
        torch_loss=lambda logits: torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS)),
        paddle_loss=lambda logits: F.cross_entropy(logits, paddle.to_tensor(LABELS)),
    )
    assert report.passed, str(report)


@needs_compiler
def test_align_sees_a_fault_in_a_native_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativeLayerNorm, "_epsilon", 1e-3, raising=False)
    ours = pd_bert.BertForSequenceClassification(TINY)
    native(ours)
    for layer in ours.sublayers():
        layer.__dict__.pop("_epsilon", None)
    theirs = pt_bert.BertForSequenceClassification(TINY)
    report = align(theirs, ours, {"input_ids": IDS * MASK, "attention_mask": MASK})
    assert not report.passed and "LayerNorm" in str(report.findings[0])


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dropout_keeps_its_share_and_scales_the_rest(dtype: str) -> None:
    paddle.seed(3)
    layer, x = NativeDropout(0.3), paddle.ones([1000, 300], dtype)
    x.stop_gradient = False
    y = layer(x)
    y.sum().backward()
    kept = y.numpy() != 0
    assert np.allclose(y.numpy()[kept], 1 / 0.7, rtol=1e-6)
    assert np.array_equal(y.numpy(), x.grad.numpy())  # the same mask going backward
    spread = np.sqrt(0.3 * 0.7 / np.array([3e5, 1000, 300]))
    for share, sigma in zip((kept.mean(), kept.mean(0), kept.mean(1)), spread, strict=True):
        assert np.abs(share - 0.7).max() < 6 * sigma  # of all, of each column, of each row


@needs_compiler
def test_dropout_masks_of_two_calls_and_of_neighbours_are_independent() -> None:
    paddle.seed(4)
    layer, x = NativeDropout(0.5), paddle.ones([2**18])
    signs = [2.0 * (layer(x).numpy() > 0) - 1 for _ in range(3)]
    bound = 6 / np.sqrt(2**18)
    assert max(abs(np.mean(signs[0] * signs[i])) for i in (1, 2)) < bound
    for shift in (1, 2, 64, 384, 2**16, 2**17):
        assert abs(np.mean(signs[0][shift:] * signs[0][:-shift])) < 1.5 * bound


@needs_compiler
def test_the_seed_decides_the_masks() -> None:
    layer, x = NativeDropout(0.5), paddle.ones([4096])
    drawn = []
    for seed in (7, 7, 8):
        paddle.seed(seed)
        drawn.append(layer(x).numpy())
    assert np.array_equal(drawn[0], drawn[1]) and not np.array_equal(drawn[0], drawn[2])


@needs_compiler
def test_a_frozen_weight_gives_the_input_its_gradient() -> None:
    """Paddle 3.3.1's own layer norm gives a wrong one on a CPU."""
    layer, theirs = NativeLayerNorm(16, epsilon=1e-5), torch.nn.LayerNorm(16, eps=1e-5)
    weight = np.random.default_rng(1).normal(size=16)
    layer.weight.set_value(paddle.to_tensor(weight))
    theirs.weight.data = torch.tensor(weight)
    layer.weight.stop_gradient = True
    array = np.random.default_rng(2).normal(size=(4, 16))
    x, y = paddle.to_tensor(array, stop_gradient=False), torch.tensor(array, requires_grad=True)
    layer(x).square().sum().backward()
    theirs(y).square().sum().backward()
    assert np.allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-11, atol=1e-12)


@needs_compiler
def test_hidden_keys_and_infinite_inputs_are_as_in_the_plain_layers() -> None:
    scores = paddle.to_tensor(np.random.default_rng(3).normal(size=(2, 2, 3, 4)))
    mask = paddle.zeros([2, 1, 1, 4])
    mask[1, 0, 0, 2:] = -float("inf")
    probs = native_layers.masked_softmax(scores, mask, 9).numpy()
    assert np.allclose(probs, F.softmax(scores / 3 + mask, -1).numpy(), rtol=1e-12, atol=1e-25)
    assert (probs[1, :, :, 2:] == 0).all()
    x = paddle.to_tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    found, plain = NativeGELU()(x).numpy(), nn.GELU()(x).numpy()
    assert np.allclose(found, plain, rtol=1e-15, equal_nan=True)


@needs_compiler
def test_threads_change_no_bit() -> None:
    code = """
import hashlib, numpy as np, paddle
from pipeline.pd.native_layers import NativeDropout, NativeLayerNorm
x = paddle.to_tensor(np.random.default_rng(0).normal(size=(999, 70)).astype("float32"))
x.stop_gradient = False
paddle.seed(1)
norm = NativeLayerNorm(70)
y = NativeDropout(0.2)(norm(x))
y.square().sum().backward()
arrays = (y, x.grad, norm.weight.grad, norm.bias.grad)
print(hashlib.sha256(b"".join(a.numpy().tobytes() for a in arrays)).hexdigest())
"""
    digests = set()
    for threads in ("1", "2"):
        environment = os.environ | {"OMP_NUM_THREADS": threads}
        words = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout.split()[-1])
    assert len(digests) == 1


@pytest.mark.parametrize(
    "layer", [NativeLinear(3, 2), NativeGELU(approximate=True), NativeDropout(0.0)]
)
def test_what_the_operators_do_not_take_is_plain(
    layer: nn.Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_layers, "_operators", lambda: pytest.fail("not the plain layer"))
    layer.to(dtype="float32")
    plain = type(layer).__mro__[1].forward
    x = paddle.ones([0, 3], "float32") if isinstance(layer, NativeLinear) else paddle.ones([2, 3])
    assert np.array_equal(layer(x).numpy(), plain(layer, x).numpy())


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_layers, "_operators", native_layers._operators.__wrapped__)
    monkeypatch.setenv("CXX", "no-such-compiler")
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(ReprodError, match="need a C\\+\\+ compiler"):
        native(model)
    assert type(model[0]) is nn.Linear


@needs_compiler
def test_a_build_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native_layers, "_operators", native_layers._operators.__wrapped__)
    broken = tmp_path / "ops.cc"
    broken.write_text("this is not C++")
    monkeypatch.setattr(native_layers, "_SOURCE", broken)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ReprodError, match="could not be built"):
        native(nn.Linear(2, 2))


@needs_compiler
def test_another_processor_has_another_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A home folder may be shared by machines; a build for one may not run on another."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(native_layers, "_operators", native_layers._operators.__wrapped__)
    monkeypatch.setattr(native_layers, "_build", lambda folder: folder.name)
    here = native_layers._operators()
    monkeypatch.setattr(native_layers, "_FLAGS", ("-march=x86-64",))
    assert native_layers._operators() not in (here, "")
