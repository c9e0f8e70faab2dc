"""`fix` in Python: of a model, and of a function that makes one."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from reprod_align.errors import ReprodError
from reprod_align.mending.mend import fix

import numpy as np
import pytest

TEXT = """
import paddle
import torch


class Reference(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(6, 8)
        self.outer = torch.nn.Linear(8, 6, bias=False)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


class Port(paddle.nn.Layer):
    def __init__(self, slope=0.5):
        super().__init__()
        self.slope = slope
        self.inner = paddle.nn.Linear(6, 8)
        self.outer = paddle.nn.Linear(8, 6, bias_attr=False)

    def forward(self, x):
        return self.outer(paddle.nn.functional.gelu(self.inner(x)))


class Sloped(Port):
    def __init__(self):
        super().__init__(slope=0.25)

    def forward(self, x):
        return self.outer(paddle.nn.functional.relu(self.inner(x))) * self.slope * 2


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Untied(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Linear(6, 6)
        self.second = paddle.nn.Linear(6, 6)

    def forward(self, x):
        return self.second(paddle.nn.functional.relu(self.first(x)))
"""
INPUTS = {"x": np.random.default_rng(0).normal(size=(4, 6))}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    path = tmp_path / "mending_models.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("mending_models", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mending_models", made)
    spec.loader.exec_module(made)
    yield made


def test_a_model_is_mended_where_it_stands(module: ModuleType) -> None:
    model = module.Port()
    found = fix(module.Reference(), model, INPUTS)
    assert found.passed and [edit.after for edit in found.edits] == ["paddle.nn.functional.relu"]
    assert Path(str(module.__file__)).read_text() == TEXT
    again = fix(module.Reference(), model, INPUTS)  # it is as it was
    assert [edit.after for edit in again.edits] == ["paddle.nn.functional.relu"]


def test_a_function_that_makes_the_model_lets_constructors_be_edited(module: ModuleType) -> None:
    found = fix(module.Reference(), module.Sloped, INPUTS)
    assert found.passed and found.proof.level == "safe", found.summary()


def test_a_parameter_is_shared_as_in_the_reference(module: ModuleType) -> None:
    found = fix(module.Tied(), module.Untied, INPUTS)
    assert found.passed and found.proof.level == "safe", found.summary()
    (edit,) = found.edits
    assert edit.kind == "tie"
    assert edit.after.endswith("self.second.weight = self.first.weight")


def test_what_is_no_model_is_said(module: ModuleType) -> None:
    with pytest.raises(ReprodError, match="paddle_model"):
        fix(module.Reference(), lambda: 3, INPUTS)
