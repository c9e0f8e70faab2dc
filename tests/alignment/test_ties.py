"""Parameters with several names: the names and their order differ, the ties are the same."""

from typing import Any

from reprod_align import align

import numpy as np
import paddle
import pytest
import torch

IDS = (np.random.default_rng(0).integers(0, 9, size=(3, 5)),)


class TorchHead(torch.nn.Module):
    """A head whose bias goes by two names."""

    def __init__(self, table: torch.nn.Parameter) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(9))
        self.decoder = torch.nn.Linear(4, 9)
        self.decoder.weight, self.decoder.bias = table, self.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(x)


class TorchWords(torch.nn.Module):
    """A table of words, tied to the head after it."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.dense = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4)
        self.head = TorchHead(self.words.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.dense(self.words(ids))))


class PaddleWords(paddle.nn.Layer):
    """The same: the model holds the head's tensors itself, and before the table."""

    def __init__(self, tied: bool = True) -> None:
        super().__init__()
        words = paddle.nn.Embedding(9, 4)
        self.head_weight = words.weight if tied else self.create_parameter([9, 4])
        self.head_bias = self.create_parameter([9], is_bias=True)
        self.words, self.dense = words, paddle.nn.Linear(4, 4)

    def forward(self, ids: Any) -> Any:
        hidden = paddle.tanh(self.dense(self.words(ids)))
        return paddle.matmul(hidden, self.head_weight, transpose_y=True) + self.head_bias


def loss(output: Any) -> Any:
    return (output**2).mean()


def adamw(framework: Any) -> Any:
    if framework is torch:
        return lambda model: torch.optim.AdamW(model.parameters(), 0.01, weight_decay=1 / 128)
    return lambda model: paddle.optimizer.AdamW(
        0.01, parameters=model.parameters(), weight_decay=1 / 128
    )


@pytest.mark.parametrize("trained", [False, True])
def test_ties_that_are_met_in_another_order_are_the_same(trained: bool) -> None:
    training = (loss, loss, adamw(torch), adamw(paddle)) if trained else ()
    report = align(TorchWords(), PaddleWords(), IDS, *training)
    assert report.verdict == "faithful", str(report)
    assert report.pairs["words"] == "words"
    assert not any("not tested" in remark or "counterpart" in remark for remark in report.remarks)


def test_a_table_that_only_pytorch_ties_is_a_finding() -> None:
    report = align(TorchWords(), PaddleWords(tied=False), IDS)
    assert [finding.stage for finding in report.findings] == ["weights"], str(report)
    assert "tied to words.weight in PyTorch" in report.findings[0].message


class PaddleLooseHead(paddle.nn.Layer):
    """A head that takes a table of words, or makes one."""

    def __init__(self, table: Any = None) -> None:
        super().__init__()
        if table is None:
            self.decoder = paddle.nn.Linear(4, 9)
        else:
            self.bias = self.create_parameter([9], is_bias=True)
            self.decoder = lambda x: paddle.matmul(x, table, transpose_y=True) + self.bias

    def forward(self, x: Any) -> Any:
        return self.decoder(x)


class PaddleLooseWords(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.dense = paddle.nn.Embedding(9, 4), paddle.nn.Linear(4, 4)
        self.head = PaddleLooseHead(None)

    def forward(self, ids: Any) -> Any:
        return self.head(paddle.tanh(self.dense(self.words(ids))))


def test_the_line_is_named_that_does_not_hand_the_table_on() -> None:
    finding = align(TorchWords(), PaddleLooseWords(), IDS).findings[0]
    assert finding.kind == "parameter-tied"
    assert finding.paddle_code == "self.head = PaddleLooseHead(None)", str(finding)


class TorchTwoHeads(torch.nn.Module):
    """A table that two heads share."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(9, 4)
        self.first, self.second = (torch.nn.Linear(4, 9, bias=False) for _ in range(2))
        self.first.weight = self.second.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        return self.first(x) + self.second(torch.tanh(x))


class PaddleHead(paddle.nn.Layer):
    """A product with the transposed table."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: Any) -> Any:
        return paddle.matmul(x, self.weight, transpose_y=True)


class PaddleTwoHeads(paddle.nn.Layer):
    """The same; `alone` names the module whose weight is one of its own."""

    def __init__(self, alone: str) -> None:
        super().__init__()
        words = paddle.nn.Embedding(9, 4)
        tables = {
            name: self.create_parameter([9, 4]) if name == alone else words.weight
            for name in ("first", "second")
        }
        self.words = paddle.nn.Embedding(9, 4) if alone == "words" else words
        self.first, self.second = PaddleHead(tables["first"]), PaddleHead(tables["second"])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        return self.first(x) + self.second(paddle.tanh(x))


@pytest.mark.parametrize("alone", ["words", "first", "second"])
def test_of_three_names_the_one_that_is_not_tied_is_named(alone: str) -> None:
    report = align(TorchTwoHeads(), PaddleTwoHeads(alone), IDS)
    found = [(finding.code, finding.paddle_name) for finding in report.findings]
    assert found == [("parameter-tied", f"{alone}.weight")], str(report)


class PaddleNeverTied(PaddleWords):
    """A head with a weight of its own, whichever way its constructor goes."""

    def __init__(self) -> None:
        super().__init__()
        own = self.head_bias is not None
        self.head_weight = self.create_parameter([9, 4]) if own else self.create_parameter([9, 4])


def test_a_condition_that_nothing_shows_to_decide_is_not_named() -> None:
    (finding,) = align(TorchWords(), PaddleNeverTied(), IDS).findings
    assert (finding.code, finding.cause) == ("parameter-tied", ""), str(finding)
    assert "if own" in finding.paddle_code


def test_a_gradient_that_one_of_two_names_misses_is_a_finding() -> None:
    port = PaddleWords()
    port.forward = lambda ids: (  # type: ignore[method-assign]
        paddle.matmul(
            paddle.tanh(port.dense(port.words(ids))), port.head_weight.detach(), transpose_y=True
        )
        + port.head_bias
    )
    report = align(TorchWords(), port, IDS)
    assert report.findings and report.findings[0].torch_name.endswith("weight"), str(report)
    assert [finding.stage for finding in report.findings] == ["backward"]
