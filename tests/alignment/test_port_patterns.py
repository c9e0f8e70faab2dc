"""Patterns that ports from elsewhere brought along, each rebuilt in a small pair, without a name map.

Modules numbered from 0 here and from 1 there; tokens kept as a grid here and as a sequence there;
the same layers cut into other stages; constants that several places keep in float32; outputs of
another shape; scores far apart.
"""

from typing import Any

from reprod_align import align

import numpy as np
import paddle
import pytest
import torch

BATCH = (np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32"),)


def lively(model: torch.nn.Module) -> torch.nn.Module:
    """Move weights and biases away from the constants they start as."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


class TorchMixer(torch.nn.Module):
    """A block whose look-alikes are numbered from 1."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(8, eps=1e-6)
        self.fc1, self.fc2 = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.norm2 = torch.nn.LayerNorm(8, eps=1e-6)
        self.conv1, self.conv2 = torch.nn.Conv2d(3, 3, 1), torch.nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.fc2(torch.nn.functional.gelu(self.fc1(self.norm1(x))))
        return self.conv2(torch.relu(self.conv1(self.norm2(x))))


class PaddleMixer(paddle.nn.Layer):
    """The same, numbered from 0."""

    def __init__(self, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.norm_0 = paddle.nn.LayerNorm(8, epsilon=1e-6)
        self.fc_0, self.fc_1 = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 8)
        self.norm_1 = paddle.nn.LayerNorm(8, epsilon=epsilon)
        self.conv0, self.conv1 = paddle.nn.Conv2D(3, 3, 1), paddle.nn.Conv2D(3, 3, 1)

    def forward(self, x: Any) -> Any:
        x = x + self.fc_1(paddle.nn.functional.gelu(self.fc_0(self.norm_0(x))))
        return self.conv1(paddle.nn.functional.relu(self.conv0(self.norm_1(x))))


def mixers(**settings: float) -> tuple[torch.nn.Module, paddle.nn.Layer]:
    first = torch.nn.Sequential(TorchMixer(), TorchMixer())
    return lively(first), paddle.nn.Sequential(PaddleMixer(**settings), PaddleMixer())


def test_what_is_numbered_from_0_and_from_1_is_paired_in_order() -> None:
    report = align(*mixers(), BATCH)
    assert report.verdict == "faithful", str(report)
    assert report.pairs["0.norm2"] == "0.norm_1" and report.pairs["1.conv1"] == "1.conv0"


def test_a_fault_among_them_is_named() -> None:
    report = align(*mixers(epsilon=1e-3), BATCH)
    found = [(finding.torch_name, finding.paddle_name) for finding in report.findings]
    assert found == [("0.norm2", "0.norm_1")], str(report)


class TorchMerge(torch.nn.Module):
    """Merges 2 x 2 tokens of a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(32)
        self.reduction = torch.nn.Linear(32, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.reshape(-1, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).flatten(3)
        return self.reduction(self.norm(x))


class TorchStage(torch.nn.Module):
    """Merges tokens first, then works on a grid of them."""

    def __init__(self, width: int, merges: bool) -> None:
        super().__init__()
        self.merge = TorchMerge() if merges else torch.nn.Identity()
        self.norm = torch.nn.LayerNorm(width)
        self.fc = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.merge(x)
        return x + torch.tanh(self.fc(self.norm(x)))


class TorchGrid(torch.nn.Module):
    """Keeps its tokens as (n, h, w, c)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Conv2d(3, 8, 2, 2)
        self.layers = torch.nn.Sequential(TorchStage(8, False), TorchStage(16, True))
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(x).permute(0, 2, 3, 1)).mean((1, 2)))


class PaddleMerge(paddle.nn.Layer):
    """Merges 2 x 2 tokens of a sequence of 16."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = paddle.nn.LayerNorm(32)
        self.reduction = paddle.nn.Linear(32, 16, bias_attr=False)

    def forward(self, x: Any) -> Any:
        x = x.reshape([-1, 2, 2, 2, 2, 8]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, 4, 32])
        return self.reduction(self.norm(x))


class PaddleStage(paddle.nn.Layer):
    """Works on a sequence of tokens first, then merges them."""

    def __init__(self, width: int, merges: bool, scale: float) -> None:
        super().__init__()
        self.norm = paddle.nn.LayerNorm(width)
        self.fc = paddle.nn.Linear(width, width)
        self.merge = PaddleMerge() if merges else None
        self.scale = scale

    def forward(self, x: Any) -> Any:
        x = x + paddle.tanh(self.fc(self.norm(x))) * self.scale
        return x if self.merge is None else self.merge(x)


class PaddleSequence(paddle.nn.Layer):
    """Keeps its tokens as (n, hw, c)."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.embed = paddle.nn.Conv2D(3, 8, 2, 2)
        self.layers = paddle.nn.Sequential(PaddleStage(8, True, 1.0), PaddleStage(16, False, scale))
        self.head = paddle.nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        x = self.embed(x).flatten(2).transpose([0, 2, 1])
        return self.head(self.layers(x).mean(1))


@pytest.mark.parametrize("scale", [1.0, 1.1])
def test_a_grid_here_is_a_sequence_there_and_stages_begin_elsewhere(scale: float) -> None:
    report = align(lively(TorchGrid()), PaddleSequence(scale), BATCH)
    found = [finding.torch_name for finding in report.findings]
    assert found == ([] if scale == 1 else ["layers.1"]), str(report)


class TorchTanh(torch.nn.Module):
    """Three layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 16), torch.nn.Linear(16, 16)
        self.third = torch.nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.tanh(self.second(torch.tanh(self.first(x)))))


class PaddleTanh(paddle.nn.Layer):
    """The same, off by a factor before each tanh."""

    def __init__(self, off: float) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(6, 16), paddle.nn.Linear(16, 16)
        self.third = paddle.nn.Linear(16, 3)
        self.by = 1 + off

    def forward(self, x: Any) -> Any:
        x = paddle.tanh(self.first(x) * self.by)
        return self.third(paddle.tanh(self.second(x) * self.by))


def mean_square(output: Any) -> Any:
    return output.square().mean()


@pytest.mark.parametrize(
    ("off", "place"),
    [(2e-10, "the training step (its update of "), (8e-10, "the model"), (1e-5, "")],
)
def test_rounding_that_adds_up_is_no_finding(off: float, place: str) -> None:
    torch.manual_seed(0)
    report = align(
        TorchTanh(), PaddleTanh(off), (np.random.default_rng(0).standard_normal((16, 6)),),
        mean_square, mean_square,
        lambda model: torch.optim.Adam(model.parameters(), 1e-3),
        lambda model: paddle.optimizer.Adam(1e-3, parameters=model.parameters()),
    )  # fmt: skip
    assert report.verdict == ("agrees to float32" if place else "diverges"), str(report)
    assert bool(report.imprecise) == bool(place)
    assert all(one.startswith(place) for one in [*report.imprecise][:1])


class TorchAttention(torch.nn.Module):
    """One attention, whose projections could be laid out in several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attn(x, x, x)[0].mean(1)


class PaddleAttention(paddle.nn.Layer):
    """The same, with what the port makes of it in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = paddle.nn.MultiHeadAttention(8, 2)

    def forward(self, x: Any) -> Any:
        y = self.attn(x).mean(1)
        return y @ y.T


def test_outputs_of_another_shape_settle_no_pairing() -> None:
    batch = np.random.default_rng(0).standard_normal((2, 5, 8))
    report = align(lively(TorchAttention()), PaddleAttention(), (batch,))
    assert report.findings[0].torch_name == "", str(report)
    assert "(2, 8)" in report.findings[0].message and "(2, 2)" in report.findings[0].message
    assert not any("paired by comparing outputs" in text for text in report.remarks)


def test_scores_far_apart_are_named_where_the_losses_differ() -> None:
    batch = 300 * np.random.default_rng(0).standard_normal((8, 6))
    labels = np.arange(8) % 4
    report = align(
        lively(torch.nn.Linear(6, 4)), paddle.nn.Linear(6, 4), (batch,),
        lambda scores: torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)),
        lambda scores: paddle.nn.functional.cross_entropy(scores, paddle.to_tensor(labels)),
    )  # fmt: skip
    assert [finding.stage for finding in report.findings] == ["loss"], str(report)
    assert "more than 64 below the largest" in report.findings[0].message


class TorchSquare(TorchTanh):
    """With something of its own after the last layer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) ** 2


class Wrapped(torch.nn.Module):
    """A model with another around it, as users write it to bring outputs into a port's form."""

    def __init__(self) -> None:
        super().__init__()
        self.model = TorchSquare()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.model(x))


class PaddleSquare(PaddleTanh):
    """The same in one class, off by a constant."""

    def __init__(self, off: float) -> None:
        super().__init__(0.0)
        self.off = off

    def forward(self, x: Any) -> Any:
        return paddle.tanh((super().forward(x) + self.off) ** 2)


@pytest.mark.parametrize("off", [0.0, 0.1])
def test_a_wrapper_on_one_side_repeats_no_finding(off: float) -> None:
    batch = np.random.default_rng(0).standard_normal((16, 6))
    report = align(lively(Wrapped()), PaddleSquare(off), (batch,))
    places = [finding.paddle_name for finding in report.findings]
    assert places == ([""] if off else []), str(report)


class PaddleUnsqueezed(PaddleTanh):
    """Gives its outputs in another number of axes."""

    def __init__(self, axes: list[int]) -> None:
        super().__init__(0.0)
        self.axes = axes

    def forward(self, x: Any) -> Any:
        return super().forward(x).reshape(self.axes)


@pytest.mark.parametrize("axes", [[16, 1, 3], [4, 4, 3], [48]])
def test_outputs_in_another_number_of_axes_are_a_finding(axes: list[int]) -> None:
    batch = np.random.default_rng(0).standard_normal((16, 6))
    report = align(lively(TorchTanh()), PaddleUnsqueezed(axes), (batch,))
    first = report.findings[0]
    assert (first.stage, first.torch_name) == ("forward", ""), str(report)
    assert "(16, 3)" in first.message and str(tuple(axes)) in first.message


class PaddleTransposed(PaddleTanh):
    """The same, its output's axes in another order."""

    def forward(self, x: Any) -> Any:
        return super().forward(x).transpose([1, 0])


def test_an_output_with_its_axes_in_another_order_is_a_finding() -> None:
    batch = np.random.default_rng(0).standard_normal((16, 6))
    report = align(lively(TorchTanh()), PaddleTransposed(0.0), (batch,))
    assert not report.passed
    assert "(16, 3) in PyTorch, (3, 16) in Paddle" in report.findings[0].message
    assert align(lively(TorchTanh()), PaddleTanh(0.0), (batch,)).passed


class PaddleTwice(PaddleTanh):
    """The same, with a second output."""

    def forward(self, x: Any) -> Any:
        return super().forward(x), x.mean()


def test_an_output_of_paddles_alone_is_a_remark() -> None:
    batch = np.random.default_rng(0).standard_normal((16, 6))
    report = align(lively(TorchTanh()), PaddleTwice(0.0), (batch,))
    assert [(one.kind, one.what) for one in report.not_judged] == [
        ("output", "outputs of the Paddle model without a counterpart: [1]")
    ]


class TorchLevels(TorchTanh):
    """Two outputs of different shapes, in a list."""

    def forward(self, x: torch.Tensor) -> Any:
        return {"levels": [super().forward(x), self.first(x)]}


class PaddleLevels(PaddleTanh):
    """The same, or with the list reversed."""

    def __init__(self, order: int) -> None:
        super().__init__(0.0)
        self.order = order

    def forward(self, x: Any) -> Any:
        return {"levels": [super().forward(x), self.first(x)][:: self.order]}


@pytest.mark.parametrize("order", [1, -1])
def test_outputs_in_another_order_are_a_finding(order: int) -> None:
    batch = np.random.default_rng(0).standard_normal((16, 6))
    report = align(lively(TorchLevels()), PaddleLevels(order), (batch,))
    assert report.passed == (order == 1), str(report)
    if order == -1:
        assert "the outputs are in another order" in report.findings[0].message


def clipped(model: torch.nn.Module, largest: float) -> torch.optim.Optimizer:
    """Return SGD whose step, set on the optimizer itself, clips first."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = optimizer.step

    def clip_and_step() -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), largest)
        step()

    optimizer.step = clip_and_step  # type: ignore[method-assign, assignment]
    return optimizer


@pytest.mark.parametrize("largest", [0.05, 0.3])
def test_a_step_that_clips_is_judged_by_its_updates(largest: float) -> None:
    batch = np.random.default_rng(0).standard_normal((16, 6))
    report = align(
        lively(TorchTanh()),
        PaddleTanh(0.0),
        (batch,),
        torch_loss=mean_square,
        paddle_loss=mean_square,
        torch_optimizer=lambda model: clipped(model, 0.05),
        paddle_optimizer=lambda model: paddle.optimizer.SGD(
            0.1, model.parameters(), grad_clip=paddle.nn.ClipGradByGlobalNorm(largest)
        ),
    )
    assert report.passed == (largest == 0.05), str(report)


class TorchProjected(torch.nn.Module):
    """An LSTM whose state is projected to fewer numbers."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.rnn = torch.nn.LSTM(6, 8, batch_first=True, **options)

    def forward(self, x: torch.Tensor) -> Any:
        out, (state, cell) = self.rnn(x)
        return out, state, cell


class PaddleProjected(paddle.nn.Layer):
    """The same."""

    def __init__(self, bidirectional: bool = False, **options: Any) -> None:
        super().__init__()
        direction = "bidirect" if bidirectional else "forward"
        self.rnn = paddle.nn.LSTM(6, 8, direction=direction, **options)

    def forward(self, x: Any) -> Any:
        out, (state, cell) = self.rnn(x)
        return out, state, cell


@pytest.mark.parametrize(
    "options",
    [
        {"proj_size": 4},
        {"proj_size": 4, "num_layers": 2, "dropout": 0.2},
        {"proj_size": 6, "num_layers": 2, "bidirectional": True},
    ],
)
def test_an_lstm_with_a_projection_is_paired(options: dict[str, Any]) -> None:
    batch = (BATCH[0].reshape(2, 16, 12)[:, :5, :6],)
    report = align(lively(TorchProjected(**options)), PaddleProjected(**options), batch)
    assert report.verdict == "faithful", str(report)
    other = {**options, "proj_size": options["proj_size"] - 1}
    assert not align(lively(TorchProjected(**options)), PaddleProjected(**other), batch).passed
