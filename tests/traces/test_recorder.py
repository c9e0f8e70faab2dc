"""Recording changes nothing, and keeps what the model computed."""

from pathlib import Path
from typing import Any

import pipeline  # noqa: F401
from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import torch as torch_backend
from reprod_align.backends.paddle import trace as paddle_trace
from reprod_align.backends.torch import side
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.errors import ReprodError
from reprod_align.traces import load_trace
from reprod_align.traces.recorder import Listener, ModuleCall
from reprod_align.traces.sketch import LENGTH
from tests.traces.bert import LAYER, bert_pair, paddle_loss, record, torch_loss

import numpy as np
import paddle
import pytest
import torch


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
    assert (tmp_path / "a.trace").stat().st_size < len(kept) * (8 * LENGTH + 524)


BACKENDS = (
    (torch_backend, torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), torch.ones),
    (paddle_backend, paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.ReLU()), paddle.ones),
)


class Raising(torch.nn.Module):
    """Its child raises; "caught" says whether it goes on without it."""

    def __init__(self, caught: bool) -> None:
        super().__init__()
        self.caught = caught
        self.child = torch.nn.Linear(3, 3)  # does not fit an input of width 2
        self.after = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return self.child(x)
        except RuntimeError:
            if not self.caught:
                raise
            return self.after(x)


def listen(
    model: torch.nn.Module, x: torch.Tensor, times: int = 1
) -> tuple[list[ModuleCall], list]:
    """Return the calls of a model, and (path, what is open) at each beginning and end."""
    heard: list[Any] = []
    listener: Listener = Listener(
        side,
        lambda call, given: heard.append((call.path, [c.path for c in listener.open])),
        lambda call, output: heard.append((call.path, [c.path for c in listener.open])),
    )
    with listener.on(side.modules(model)):
        for _ in range(times):
            model(x)
    return listener.calls, heard


def test_calls_are_numbered_nested_and_timed() -> None:
    calls, heard = listen(BACKENDS[0][1], torch.ones(1, 2), times=2)
    assert [call.key for call in calls[3:]] == [("", 1), ("0", 1), ("1", 1)]
    assert [call.parent for call in calls[3:]] == [None, 3, 3]
    assert [(call.began, call.finished) for call in calls[:3]] == [(1, 6), (2, 3), (4, 5)]
    assert heard[:4] == [("", [""]), ("0", ["", "0"]), ("0", [""]), ("1", ["", "1"])]


def test_a_child_that_raised_is_closed_with_its_parent() -> None:
    calls, heard = listen(Raising(caught=True), torch.ones(1, 2))
    ended = {call.path: call.finished for call in calls}
    assert ended == {"": 5, "child": -1, "after": 4}
    assert heard[-1] == ("", [])


def test_hooks_come_off_when_the_model_raises() -> None:
    model = Raising(caught=False)
    with pytest.raises(RuntimeError):
        listen(model, torch.ones(1, 2))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("backend, model, ones", BACKENDS, ids=["torch", "paddle"])
def test_layer_outputs_prove_that_they_were_made(backend, model, ones) -> None:
    with pytest.raises(ReprodError, match="the model has no layer '7', 'x'"):
        with backend.layer_outputs(model, ["0", "7", "x"]):
            pass
    with pytest.raises(ReprodError, match="'1' did not run: call the model inside the block"):
        with backend.layer_outputs(model, ["0", "1"]):
            model[0](ones([1, 2]))
    with pytest.raises(ZeroDivisionError):  # the block's own error is not replaced
        with backend.layer_outputs(model, ["0"]) as outputs:
            model(1 / 0)
    model(ones([1, 2]))
    assert not outputs


@pytest.mark.parametrize("backend, module", [
    (torch_backend, torch.nn.Module), (paddle_backend, paddle.nn.Layer)], ids=["torch", "paddle"],
)  # fmt: skip
def test_a_layer_without_a_tensor_is_said(backend, module) -> None:
    class Silent(module):
        def forward(self) -> None:
            return None

    with pytest.raises(ReprodError, match="layer_outputs: '' returned no tensor"):
        with backend.layer_outputs(model := Silent(), [""]):
            model()
