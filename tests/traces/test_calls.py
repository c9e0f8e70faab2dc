"""The listener that every recording of layers is made with."""

from typing import Any

from reprod_align import ReprodError
from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import torch as torch_backend
from reprod_align.backends.torch import side
from reprod_align.traces.recorder import Call, Listener

import paddle
import pytest
import torch

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


def listen(model: torch.nn.Module, x: torch.Tensor, times: int = 1) -> tuple[list[Call], list]:
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
