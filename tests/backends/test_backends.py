"""The two backends: the same functions, the same names, the same layout, the same refusals."""

import inspect
from pathlib import Path

from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.errors import MissingInputError, WeightsError

import numpy as np
import paddle
import pytest
import torch

BACKENDS = pytest.mark.parametrize("backend", [pt_backend, pd_backend], ids=["torch", "paddle"])


def models() -> tuple[torch.nn.Module, paddle.nn.Layer]:
    """Return the same two-layer model twice, float32: an embedding and a square Linear."""
    torch_model = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 3))
    paddle_model = paddle.nn.Sequential(paddle.nn.Embedding(5, 3), paddle.nn.Linear(3, 3))
    weights = {name: array.copy() for name, array in pt_backend.parameters(torch_model)}
    paddle_weights = weights | {"1.weight": weights["1.weight"].T.copy()}
    pd_backend.load_weights(paddle_model, paddle_weights)
    return torch_model, paddle_model


def public(module: object) -> dict[str, list[str]]:
    found = inspect.getmembers(module, inspect.isfunction)
    own = [(n, f) for n, f in found if f.__module__ == module.__name__ and n[0] != "_"]
    return {name: list(inspect.signature(function).parameters) for name, function in own}


def test_both_have_the_same_functions() -> None:
    assert public(pt_backend) == public(pd_backend)
    assert len(public(pt_backend)) >= 8


def test_parameters_and_gradients_in_one_layout() -> None:
    torch_model, paddle_model = models()
    ids = np.array([[0, 1, 4]])
    torch_model(torch.from_numpy(ids)).square().sum().backward()
    paddle_model(paddle.to_tensor(ids)).square().sum().backward()
    for read in ("parameters", "gradients"):
        expected = dict(getattr(pt_backend, read)(torch_model))
        actual = dict(getattr(pd_backend, read)(paddle_model))
        assert list(expected) == list(actual) == ["0.weight", "1.weight", "1.bias"]
        for name, array in expected.items():
            np.testing.assert_allclose(actual[name], array, rtol=1e-5, atol=1e-6)


def test_running_statistics_are_no_parameters() -> None:
    torch_model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 1), torch.nn.BatchNorm1d(3))
    paddle_model = paddle.nn.Sequential(paddle.nn.Conv1D(2, 3, 1), paddle.nn.BatchNorm1D(3))
    assert "1._mean" in dict(paddle_model.named_parameters())  # to Paddle they are
    names = [name for name, _ in pt_backend.parameters(torch_model)]
    assert [name for name, _ in pd_backend.parameters(paddle_model)] == names
    assert [name for name, _ in pd_backend.parameters(paddle.nn.BatchNorm2D(3))] == [
        "weight",
        "bias",
    ]


def test_a_parameter_without_a_gradient_is_left_out() -> None:
    torch_model, paddle_model = models()
    assert not list(pt_backend.gradients(torch_model))
    assert not list(pd_backend.gradients(paddle_model))


def test_layer_outputs_come_in_call_order_and_the_hooks_go() -> None:
    ids = np.array([[0, 1, 4]])
    calls = (
        (pt_backend, models()[0], torch.from_numpy(ids)),
        (pd_backend, models()[1], paddle.to_tensor(ids)),
    )
    for backend, model, tensor in calls:
        with backend.layer_outputs(model, ["1", "0"]) as outputs:
            model(tensor)
        assert list(outputs) == ["0", "1"]
        assert outputs["1"].shape == (1, 3, 3)
        outputs.clear()
        model(tensor)
        assert not outputs


@BACKENDS
def test_weights_that_do_not_fit(backend) -> None:
    model = models()[0 if backend is pt_backend else 1]
    weights = {"0.weight": np.zeros((5, 3)), "1.weight": np.zeros((3, 4)), "2.bias": np.zeros(3)}
    with pytest.raises(WeightsError) as raised:
        backend.load_weights(model, weights)
    for part in ("missing 1.bias", "extra 2.bias", "1.weight has shape (3, 4)", "(3, 3)"):
        assert part in str(raised.value)


@BACKENDS
@pytest.mark.parametrize("name", ["weights.bin", "weights.safetensors"])
def test_files_that_are_no_weights(backend, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with pytest.raises(MissingInputError, match="is missing"):
        backend.read_weights(path)
    for content in (b"", b"garbage", b"\x80\x04}."):
        path.write_bytes(content)
        with pytest.raises(
            WeightsError, match="weights.(bin|safetensors) (is|does|holds)"
        ) as raised:
            backend.read_weights(path)
        assert "\n" not in str(raised.value)


@BACKENDS
def test_weights_never_run_code(backend, tmp_path: Path) -> None:
    marker, path = tmp_path / "executed", tmp_path / "weights.bin"
    attack = f"cos\nsystem\n(S'touch {marker}'\ntR."
    path.write_bytes(b"\x80\x02" + attack.encode())
    with pytest.raises(WeightsError):
        backend.read_weights(path)
    assert not marker.exists()


def test_files_of_the_frameworks_themselves(tmp_path: Path) -> None:
    """Read what torch.save and paddle.save write of a model, safetensors and bfloat16 too."""
    torch_model, paddle_model = models()
    torch.save(torch_model.bfloat16().state_dict(), tmp_path / "half.bin")
    paddle.save(paddle_model.state_dict(), str(tmp_path / "model.pdparams"))
    half = pt_backend.read_weights(tmp_path / "half.bin")
    assert {array.dtype for array in half.values()} == {np.dtype(np.float32)}
    ours = pd_backend.read_weights(tmp_path / "model.pdparams")
    assert list(ours) == ["0.weight", "1.weight", "1.bias"]
    for backend, other in ((pt_backend, "model.pdparams"), (pd_backend, "half.bin")):
        with pytest.raises(WeightsError, match="another framework"):
            backend.read_weights(tmp_path / other)
    np.testing.assert_array_equal(ours["1.weight"], paddle_model[1].weight.numpy())


def test_a_model_that_is_a_linear_layer_itself_is_laid_out_as_one() -> None:
    assert pt_backend.linear_weights(torch.nn.Linear(2, 3)) == {"weight"}
    assert pd_backend.linear_weights(paddle.nn.Linear(2, 3)) == {"weight"}
