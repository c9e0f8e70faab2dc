"""A mask that one side lacks, or makes in another shape, and that has no effect."""

from typing import Any

from reprod_align import align
from reprod_align.alignment.locating.faults import find_forward_faults
from reprod_align.alignment.locating.masks import find_makers, may_explain
from reprod_align.explain.trials import BUDGETS, Budget
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import X

import numpy as np
import paddle
import pytest
import torch

HIDDEN = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1]])
BATCH = np.random.default_rng(0).normal(size=(4, 3, 6)).astype("float32")


class TorchAttention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.o = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)

    def forward(self, x: Any, mask: Any) -> Any:
        return self.o(torch.softmax(self.q(x) @ x.transpose(1, 2) + mask, -1) @ x)


class TorchLayer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.dense = TorchAttention(), torch.nn.Linear(6, 6)

    def forward(self, x: Any, mask: Any) -> Any:
        x = x + self.attention(x, mask)
        return x + torch.tanh(self.dense(x))


class TorchDecoder(torch.nn.Module):
    """Makes a causal mask once, and hands it to each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(TorchLayer() for _ in range(2))

    def forward(self, x: Any) -> Any:
        mask = torch.full((3, 3), torch.finfo(x.dtype).min).triu(1)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class PaddleAttention(paddle.nn.Layer):
    """Makes the mask itself, of another shape."""

    def __init__(self, causal: bool, scale: float) -> None:
        super().__init__()
        self.q, self.o = paddle.nn.Linear(6, 6), paddle.nn.Linear(6, 6)
        self.causal, self.scale = causal, scale

    def forward(self, x: Any) -> Any:
        scores = self.q(x) @ x.transpose([0, 2, 1]) * self.scale
        if self.causal:
            scores = scores + paddle.full([1, 3, 3], -1e9, scores.dtype).triu(1)
        return self.o(paddle.nn.functional.softmax(scores, -1) @ x)


class PaddleLayer(paddle.nn.Layer):
    def __init__(self, factor: float, causal: bool, scale: float) -> None:
        super().__init__()
        self.attention, self.dense = PaddleAttention(causal, scale), paddle.nn.Linear(6, 6)
        self.factor = factor

    def forward(self, x: Any) -> Any:
        x = x + self.attention(x)
        return x + self.factor * paddle.tanh(self.dense(x))


class PaddleDecoder(paddle.nn.Layer):
    def __init__(self, factor: float = 1.0, causal: bool = True, scale: float = 1.0) -> None:
        super().__init__()
        self.layers = paddle.nn.LayerList(PaddleLayer(factor, causal, scale) for _ in range(2))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_mask_that_the_port_makes_elsewhere_is_no_fault() -> None:
    assert align(TorchDecoder(), PaddleDecoder(), (BATCH,)).verdict == "faithful"


@pytest.mark.parametrize(
    ("fault", "place"),
    [({"factor": 1.5}, "layers.0"), ({"scale": 0.5}, "layers.0.attention")],
)
def test_it_is_not_blamed_for_another_fault(fault: dict[str, float], place: str) -> None:
    report = align(TorchDecoder(), PaddleDecoder(**fault), (BATCH,))
    assert report.findings[0].torch_name == place, str(report)
    assert "mask or index" not in str(report)


def test_a_mask_that_is_missing_is_blamed_all_the_same() -> None:
    report = align(TorchDecoder(), PaddleDecoder(causal=False), (BATCH,))
    first = report.findings[0]
    assert (first.torch_name, "a mask or index that it does not hand" in first.message) == (
        "",
        True,
    )


class TorchDistances(torch.nn.Module):
    """Adds a table's rows by the distance of positions that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.o = torch.nn.Embedding(9, 3), torch.nn.Linear(6, 6)

    def forward(self, x: Any, mask: Any, positions: Any) -> Any:
        far = torch.log((positions[None] - positions[:, None]).abs().to(x.dtype)) * 2
        bias = self.table(far.clip(min=0).long()).permute(2, 0, 1) + mask
        return self.o(torch.softmax(x @ x.transpose(1, 2) + bias[0], -1) @ x), bias


class TorchPositions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = TorchDistances()

    def forward(self, x: Any) -> Any:
        return self.layer(x, torch.full((3, 3), -1e9).triu(1), torch.arange(3))[0]


class PaddleDistances(paddle.nn.Layer):
    """Counts the positions itself, and adds another number to their distances."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.o = paddle.nn.Embedding(9, 3), paddle.nn.Linear(6, 6)

    def forward(self, x: Any, mask: Any) -> Any:
        positions = paddle.arange(3)
        far = paddle.log((positions[None] - positions[:, None]).abs().astype(x.dtype)) * 6
        bias = self.table(far.clip(min=0).astype("int64")).transpose([2, 0, 1]) + mask
        scores = x @ x.transpose([0, 2, 1]) + bias[0]
        return self.o(paddle.nn.functional.softmax(scores, -1) @ x), bias


class PaddlePositions(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.layer = PaddleDistances()

    def forward(self, x: Any) -> Any:
        return self.layer(x, paddle.full([3, 3], -1e9).triu(1))[0]


def test_positions_that_count_from_zero_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUDGETS, "align", Budget(runs=0, seconds=0.0, patience=1.0))
    first = align(TorchPositions(), PaddlePositions(), (BATCH,)).findings[0]
    assert first.torch_name == "layer" and "hands to layer.table" in str(first), first
    assert ".astype(x.dtype)) * 6` in Paddle" in first.message, first


class TorchInner(torch.nn.Module):
    """Makes the mask of its examples' ends itself."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = TorchAttention()

    def forward(self, x: Any) -> Any:
        shown = (x[..., :1] < 0.5).to(x.dtype).transpose(1, 2)
        return self.attention(x, (1 - shown) * -1e4)


class TorchOuter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = TorchInner()

    def forward(self, x: Any) -> Any:
        return self.inner(x)


class PaddleMixing(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.o = paddle.nn.Linear(6, 6), paddle.nn.Linear(6, 6)

    def forward(self, x: Any, mask: Any) -> Any:
        scores = self.q(x) @ x.transpose([0, 2, 1]) + mask
        return self.o(paddle.nn.functional.softmax(scores, -1) @ x)


class PaddleInner(paddle.nn.Layer):
    """Is given which places count."""

    def __init__(self, used: float) -> None:
        super().__init__()
        self.attention, self.used = PaddleMixing(), used

    def forward(self, x: Any, shown: Any) -> Any:
        return self.attention(x, (1 - shown.astype(x.dtype)) * self.used)


class PaddleOuter(paddle.nn.Layer):
    def __init__(self, most: float = 0.5, used: float = -1e4) -> None:
        super().__init__()
        self.inner, self.most = PaddleInner(used), most

    def forward(self, x: Any) -> Any:
        return self.inner(x, (x[:, :, 0] < self.most).astype("int64").unsqueeze(1))


@pytest.mark.parametrize(
    ("options", "place"), [({}, None), ({"most": -0.1}, ""), ({"used": 1e4}, "inner")]
)
def test_a_mask_that_only_paddle_hands_on(options: dict[str, Any], place: str | None) -> None:
    report = align(TorchOuter(), PaddleOuter(**options), (BATCH,))
    assert [one.torch_name for one in report.findings[:1]] == ([] if place is None else [place]), (
        report
    )


def test_what_a_mask_hides_nothing_of_must_agree() -> None:
    expected = np.broadcast_to(X[:, None], (4, 3, 3))
    inside, outside = expected.copy(), expected.copy()
    inside[1] += 1
    outside[2] += 1
    assert may_explain(HIDDEN, expected, inside)
    assert not may_explain(HIDDEN, expected, outside)
    assert not may_explain(np.ones((4, 3)), expected, inside)
    assert may_explain(HIDDEN, None, None)
    causal = np.tril(np.ones((3, 3)))
    early, late = expected.copy(), expected.copy()
    early[:, 0] += 1
    late[:, 2] += 1
    assert may_explain(causal, expected, early) and not may_explain(causal, expected, late)
    assert not may_explain(causal[None, None], expected, late)
    padded = np.stack([causal, causal * [1, 1, 0]])[:, None]
    shown, hidden = expected[:2].copy(), expected[:2].copy()
    shown[0, 2] += 1
    hidden[1, 2] += 1
    assert may_explain(padded, expected[:2], hidden)
    assert not may_explain(padded, expected[:2], shown)


MASK = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1]])


class TorchGate(torch.nn.Module):
    def forward(self, x: Any, mask: Any = None) -> Any:
        return torch.sin(x) if mask is None else torch.sin(x) * mask


class TorchMasked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.gate = torch.nn.Linear(3, 3), TorchGate()

    def forward(self, x: Any, mask: Any) -> Any:
        return self.gate(self.first(x), mask)


class PaddleGate(paddle.nn.Layer):
    def forward(self, x: Any, mask: Any = None) -> Any:
        return paddle.sin(x) if mask is None else paddle.sin(x) * mask.astype(x.dtype)


class PaddleMasked(paddle.nn.Layer):
    def __init__(self, change: Any) -> None:
        super().__init__()
        self.first, self.gate, self.change = paddle.nn.Linear(3, 3), PaddleGate(), change

    def forward(self, x: Any, mask: Any) -> Any:
        return self.gate(self.first(x), *self.change(mask))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda mask: [mask], ""),
        (lambda mask: [1 - mask], "the mask or index it hands to gate"),
        (lambda mask: [], "it has a mask or index that it does not hand to gate"),
    ],
)
def test_the_module_that_hands_on_the_mask_is_at_fault(change: Any, words: str) -> None:
    with pinned(TorchMasked(), PaddleMasked(change), (X, MASK)) as (_, _, free, given):
        faults = find_forward_faults(free, given, masks_agree=False)
        makers = find_makers(free)
    assert [fault.place for fault in faults] == [("", "")] * bool(words)
    assert [words in fault.where for fault in faults] == [True] * bool(words)
    assert [fault.kind for fault in makers] == ["mask"] * (
        "hands to gate" in words and "has a" not in words
    )
