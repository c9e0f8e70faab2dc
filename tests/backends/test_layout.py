"""The rules by layer type, which conversion and matching share."""

import json
from pathlib import Path

from reprod_align.backends import TRANSPOSED_LAYERS, matrix_axes
from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.backends import torch as torch_backend
from tests.conftest import one_line_error, run_script

import numpy as np
import paddle
import pytest
import torch
import transformers


@pytest.mark.parametrize("kind", sorted(TRANSPOSED_LAYERS))
def test_a_transposed_layer_is_one_for_matching_and_converting(kind: str) -> None:
    assert (matrix_axes(kind, kind, "PyTorch"), matrix_axes(kind, kind, "Paddle")) == ("oi", "io")
    models = (
        torch.nn.Sequential(getattr(torch.nn, kind)(2, 3)),
        paddle.nn.Sequential(getattr(paddle.nn, kind)(2, 3)),
    )
    shapes = []
    for backend, model in zip((torch_backend, paddle_backend), models, strict=True):
        assert backend.linear_weights(model) == {"0.weight"}
        shapes.append(tuple(model[0].weight.shape))
    assert shapes == [(3, 2), (2, 3)]


@pytest.mark.parametrize(
    ("kind", "class_name", "convention", "axes"),
    [
        ("Conv2d", "Conv2D", "Paddle", "oi"),
        ("ConvTranspose2d", "Conv2DTranspose", "Paddle", ""),
        ("", "Conv1D", "PyTorch", "io"),  # GPT-2's
        ("", "FusedLinear", "Paddle", "io?"),
        ("", "FusedLinear", "PyTorch", "oi?"),
        ("LayerNorm", "LayerNorm", "PyTorch", ""),
    ],
)
def test_other_layers(kind: str, class_name: str, convention: str, axes: str) -> None:
    assert matrix_axes(kind, class_name, convention) == axes


def test_a_class_derived_from_a_layer_may_keep_its_weight_otherwise() -> None:
    assert matrix_axes("Linear", "CausalLMHead", "Paddle", is_stock=False) == "io?"
    assert matrix_axes("Conv2d", "MyConv", "Paddle", is_stock=False) == "oi"


SHAPE = dict(
    vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=12, max_position_embeddings=16,
)  # fmt: skip
CONVERT = "weights/torch2paddle.py"


def save_checkpoint(home: Path, architecture: str, old_names: bool = False) -> Path:
    """Save a small random checkpoint as Hugging Face does; return the weights' path."""
    model = getattr(transformers, architecture)(transformers.BertConfig(**SHAPE))
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if old_names:
        for new, old in (
            ("LayerNorm.weight", "LayerNorm.gamma"),
            ("LayerNorm.bias", "LayerNorm.beta"),
        ):
            state = {name.replace(new, old): tensor for name, tensor in state.items()}
        state["bert.embeddings.position_ids"] = torch.arange(16)[None]
        state.pop("cls.predictions.decoder.bias", None)  # old checkpoints keep it once
    (home / "weights").mkdir(exist_ok=True)
    config = {**SHAPE, "profile": "tiny", "do_lower_case": True}
    (home / "weights" / "config.json").write_text(json.dumps(config))
    path = home / "pytorch_model.bin"
    torch.save(state, path)
    return path


@pytest.mark.parametrize("old_names", [False, True], ids=["new names", "old names"])
@pytest.mark.parametrize("target", ["pd_bert", "paddlenlp"])
def test_masked_language_model(tmp_path: Path, target: str, old_names: bool) -> None:
    architecture = "BertForPreTraining" if target == "paddlenlp" else "BertForMaskedLM"
    path = save_checkpoint(tmp_path, architecture, old_names)
    finished = run_script(CONVERT, tmp_path, "--target", target, "--checkpoint", str(path))
    assert finished.returncode == 0, finished.stderr
    assert "the outputs of both models agree to" in finished.stdout
    name = {"pd_bert": "paddle_weight", "paddlenlp": "model_state"}[target]
    weights = pd_backend.read_weights(tmp_path / "weights" / f"{name}.pdparams")
    decoder = {"pd_bert": "bias", "paddlenlp": "decoder_bias"}[target]
    assert f"cls.predictions.{decoder}" in weights
    assert weights["cls.predictions.decoder.weight"].shape == (50, 8)  # tied: never transposed


def test_every_tensor_has_a_row(aligned_home: Path, tmp_path: Path) -> None:
    finished = run_script(CONVERT, aligned_home, "--output", str(tmp_path / "out.pdparams"))
    lines = finished.stdout.splitlines()
    weights = pt_backend.read_weights(aligned_home / "weights" / "torch_weight.bin")
    for name, array in weights.items():
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        transposed = array.ndim == 2 and "embeddings" not in name
        assert (" yes " in line) == transposed
        assert line.count(f"{array.mean():.3e}") >= 2 and line.count(f"{array.std():.3e}") >= 2


def test_paddle_reads_what_we_write(aligned_home: Path) -> None:
    path = aligned_home / "weights" / "paddle_weight.pdparams"
    ours, paddles = pd_backend.read_weights(path), paddle.load(str(path))
    assert ours.keys() == paddles.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, np.asarray(paddles[name]))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("del state['pooler.dense.bias']", "missing: pooler.dense.bias, for pooler.dense.bias"),
        ("state['pooler.gate'] = state['pooler.dense.bias']", "left over: pooler.gate (32,)"),
        (
            "state['pooler.dense.bias'] = state['pooler.dense.bias'][:7]",
            "misshapen: pooler.dense.bias is (7,), the model has (32,)",
        ),
    ],
    ids=["missing", "extra", "shape"],
)
def test_a_checkpoint_that_does_not_fit(home: Path, fault: str, message: str) -> None:
    path = home / "weights" / "torch_weight.bin"
    state = torch.load(path, weights_only=True)
    exec(fault, {"state": state})
    torch.save(state, path)
    before = (home / "weights" / "paddle_weight.pdparams").read_bytes()
    assert message in one_line_error(run_script(CONVERT, home))
    assert (home / "weights" / "paddle_weight.pdparams").read_bytes() == before


def test_a_damaged_checkpoint(home: Path) -> None:
    path = home / "weights" / "torch_weight.bin"
    path.write_bytes(path.read_bytes()[:1000])
    assert "torch_weight.bin is damaged: " in one_line_error(run_script(CONVERT, home))


def test_weights_of_another_profile_are_refused(home: Path) -> None:
    finished = run_script("pipeline/Step1/pt_forward_bert.py", home, "--profile", "minilm")
    assert "holds the weights of profile tiny, not minilm" in one_line_error(finished)


def test_the_exported_checkpoint_of_another_folder(aligned_home: Path, tmp_path: Path) -> None:
    """--weights DIR: what was exported once is exported again, bit for bit."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name in ("config.json", "vocab.txt"):
        (folder / name).write_bytes((aligned_home / "weights" / name).read_bytes())
    source = aligned_home / "weights" / "torch_weight.bin"
    (folder / "pytorch_model.bin").write_bytes(source.read_bytes())
    options = ("--weights", str(folder))
    finished = run_script("weights/torch_bert_weight.py", tmp_path, *options)
    assert finished.returncode == 0, finished.stderr
    expected = pt_backend.read_weights(source)
    actual = pt_backend.read_weights(tmp_path / "weights" / "torch_weight.bin")
    assert expected.keys() == actual.keys()
    assert all((expected[name] == actual[name]).all() for name in expected)


def test_a_hub_that_cannot_be_reached(tmp_path: Path) -> None:
    """One line that says so and what to do, quickly: HF_HUB_OFFLINE stands for a dead network."""
    fault = f"import os; os.environ |= {{'HF_HUB_OFFLINE': '1', 'HF_HOME': {str(tmp_path)!r}}}"
    options = ("--profile", "bert-base-uncased")
    finished = run_script("weights/torch_bert_weight.py", tmp_path, *options, fault=fault)
    error = one_line_error(finished)
    assert (
        "bert-base-uncased is not in the Hugging Face cache" in error and "--weights DIR" in error
    )
