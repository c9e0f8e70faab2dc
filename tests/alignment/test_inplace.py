"""Modules that change what they are given in place: the caller reads the changed tensor afterwards."""

from reprod_align import align
from reprod_align.base.tree import give_back

import numpy as np
import paddle
import pytest
import torch


class TorchBlock(torch.nn.Module):
    """A residual block whose first layer changes the tensor that is added afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.before = torch.nn.Linear(4, 4)
        self.block = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x)
        return x + self.block(x)


class Doubled(paddle.nn.Layer):
    """Changes its input in place, as a ReLU of PyTorch's does."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.nn.functional.relu_(x)


class PaddleBlock(paddle.nn.Layer):
    """The same: `way` is how the added tensor is made."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.before = paddle.nn.Linear(4, 4)
        first = Doubled() if way == "in place" else paddle.nn.ReLU()
        self.block = paddle.nn.Sequential(first, paddle.nn.Linear(4, 4))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.before(x)
        if self.way == "written out":
            x = paddle.nn.functional.relu(x)
        return x + self.block(x)


@pytest.mark.edits(60)
@pytest.mark.parametrize(
    ("way", "verdict"),
    [("in place", "faithful"), ("written out", "faithful"), ("left out", "diverges")],
)
def test_what_a_module_changes_in_place_is_what_its_caller_reads(way: str, verdict: str) -> None:
    inputs = (np.random.default_rng(0).standard_normal((3, 4)).astype("float32"),)
    report = align(TorchBlock(), PaddleBlock(way), inputs)
    assert report.verdict == verdict
    if way == "left out":
        outputs = next(check for check in report.checks if check.what == "outputs, eval mode")
        assert not outputs.passed
        edit = report.findings[0].edit
        assert edit is not None and edit.before == 'self.way == "written out"'
        assert edit.after == 'self.way != "written out"', "the branch with the ReLU"


def join(pair: dict[str, object], parts: list[object]) -> None:
    """Put what is joined into both, as the decoders of some detectors do."""
    for at in range(1, len(parts)):
        parts[at] = parts[at] * 2 + parts[at - 1]  # type: ignore[operator]
    pair["last"] = parts[-1]
    parts.append(parts[0])


class TorchJoin(torch.nn.Module):
    def forward(self, pair: dict[str, object], parts: list[object]) -> None:
        join(pair, parts)


class TorchLists(torch.nn.Module):
    """Its child returns nothing, and changes the list and the dict that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.join = torch.nn.Linear(4, 4), TorchJoin()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts, pair = [self.layer(x), x], {"first": x}
        self.join(pair, parts)
        return pair["last"] * parts[1] + parts[2]


class PaddleJoin(paddle.nn.Layer):
    def forward(self, pair: dict[str, object], parts: list[object]) -> None:
        join(pair, parts)


class PaddleLists(paddle.nn.Layer):
    def __init__(self, last: str) -> None:
        super().__init__()
        self.layer, self.join, self.last = paddle.nn.Linear(4, 4), PaddleJoin(), last

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        parts, pair = [self.layer(x), x], {"first": x}
        self.join(pair, parts)
        return pair[self.last] * parts[1] + parts[2]


@pytest.mark.parametrize(("last", "verdict"), [("last", "faithful"), ("first", "diverges")])
def test_what_a_module_puts_into_lists_and_dicts_is_what_its_caller_reads(
    last: str, verdict: str
) -> None:
    inputs = (np.random.default_rng(0).standard_normal((3, 4)).astype("float32"),)
    assert align(TorchLists(), PaddleLists(last), inputs).verdict == verdict


class Refusing(dict[str, int]):
    """A dict whose items are set one by one, as the outputs of some libraries are."""

    def update(self, *args: object, **kwargs: object) -> None:
        raise TypeError("update")


@pytest.mark.parametrize("kind", [dict, Refusing])
def test_what_is_put_into_a_copy_of_a_dict_is_put_into_the_dict(kind: type) -> None:
    own, passed = kind(a=1, b=2), kind(a=1, b=2)
    held = own, passed, kind(a=1, b=2)
    passed["c"] = passed.pop("a") + 5
    give_back(held, lambda part: part * 10)
    assert own == {"b": 20, "c": 60}
