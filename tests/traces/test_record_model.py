"""What both frameworks' recordings are made with: the order of tensors, and what is refused."""

from pathlib import Path
from typing import Any

from reprod_align.backends.torch import side, trace
from reprod_align.errors import ReprodError
from reprod_align.traces import RecordedTrace, load_trace
from reprod_align.traces.recorder import record_model

import numpy as np
import pytest
import torch

X = torch.arange(6.0).reshape(2, 3)


def small() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())


def recorded(path: Path, forward: bool = True, backward: bool = True) -> RecordedTrace:
    model = small()
    with record_model(side, trace, model, path, "whole", forward, backward):
        model(X).sum().backward()
    return load_trace(path)


def test_tensors_stand_in_the_order_of_time(tmp_path: Path) -> None:
    tensors = recorded(tmp_path / "trace").tensors
    assert [tensor.order for tensor in tensors] == list(range(len(tensors)))
    assert [(tensor.phase, tensor.module) for tensor in tensors] == [
        ("input", ""), ("input", "0"), ("output", "0"), ("input", "1"), ("output", "1"),
        ("output", ""), ("gradient", ""), ("gradient", "1"), ("gradient", "0"),
        ("parameter gradient", "0"), ("parameter gradient", "0"),
    ]  # fmt: skip
    np.testing.assert_array_equal(tensors[0].values, X.numpy())


def test_one_direction_alone(tmp_path: Path) -> None:
    forward = recorded(tmp_path / "forward", backward=False)
    assert {tensor.phase for tensor in forward.tensors} == {"input", "output"}
    backward = recorded(tmp_path / "backward", forward=False)
    assert {tensor.phase for tensor in backward.tensors} == {"gradient", "parameter gradient"}


@pytest.mark.parametrize(("model", "mode", "work", "message"), [
    (small(), "half", lambda model: None, 'mode "whole" or "sketch" expected, got'),
    ("a model", "whole", lambda model: None, "a PyTorch model expected, got a str"),
    (small(), "whole", lambda model: None, "nothing was recorded"),
    (small(), "whole", lambda model: model(X), "no gradient was recorded"),
])  # fmt: skip
def test_what_is_refused(model: Any, mode: str, work: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with pytest.raises(ReprodError, match=message):
        with record_model(side, trace, model, path, mode, True, True):
            work(model)
    assert not path.exists()
