"""Models that compute in float32 inside: judged with float64 in its place, and named as such."""

from reprod_align import align
from reprod_align.backends.torch import private
from reprod_align.report import INSIDE_FLOAT32
from tests.alignment.small import PaddleNet, TorchNet, X

import numpy as np
import paddle
import pytest
import torch
import torch.utils.checkpoint

ROWS = np.random.default_rng(4).standard_normal((5, 16)) * 40


class TorchNormed(torch.nn.Module):
    """An RMS norm that computes in float32 whatever it is given, as Llama's does."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(16, 16), torch.nn.Linear(16, 4)
        self.norm = TorchRmsNorm()

    def forward(self, x):
        return self.last(self.norm(self.first(x)))


class TorchRmsNorm(torch.nn.Module):
    def __init__(self, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(16)), eps

    def forward(self, x):
        wide = x.to(torch.float32)
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * torch.softmax(scaled.float(), -1, dtype=torch.float32).to(x.dtype)


class PaddleNormed(paddle.nn.Layer):
    def __init__(self, **options) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Linear(16, 16), paddle.nn.Linear(16, 4)
        self.norm = PaddleRmsNorm(**options)

    def forward(self, x):
        return self.last(self.norm(self.first(x)))


class PaddleRmsNorm(paddle.nn.Layer):
    def __init__(self, eps: float = 1e-6, root=paddle.rsqrt) -> None:
        super().__init__()
        self.weight = self.create_parameter(
            [16], default_initializer=paddle.nn.initializer.Constant(1.0)
        )
        self.eps, self.root = eps, root

    def forward(self, x):
        wide = x.astype("float32")
        scaled = wide * self.root((wide**2).mean(-1, keepdim=True) + self.eps)
        soft = paddle.nn.functional.softmax(scaled.cast(paddle.float32), -1, dtype="float32")
        return self.weight * soft.astype(x.dtype)


def test_a_pair_that_rounds_alike_is_faithful_and_the_place_is_named() -> None:
    report = align(TorchNormed(), PaddleNormed(), (ROWS,))
    assert report.passed and report.verdict == "faithful"
    assert report.worst is not None and report.worst.relative < 1e-12
    assert report.rounded == ["norm"] and not report.imprecise
    assert any(text.startswith(INSIDE_FLOAT32) and "norm" in text for text in report.remarks)


@pytest.mark.parametrize("where", ["forward", "norm"])
def test_a_port_that_rounds_where_pytorch_does_not_agrees_to_float32_only(where) -> None:
    class PaddleTwice(PaddleNormed):
        def forward(self, x):
            return super().forward(x.astype("float32").astype(x.dtype))

    class TorchOnce(TorchNormed):
        def forward(self, x):
            return self.last(torch.softmax(self.norm.weight * self.first(x), -1))

    class PaddleOnce(PaddleNormed):
        def forward(self, x):
            made = paddle.nn.functional.softmax(self.norm.weight * self.first(x), -1, "float32")
            return self.last(made.astype(x.dtype))

    twice = where == "norm"
    models = (TorchNormed(), PaddleTwice()) if twice else (TorchOnce(), PaddleOnce())
    report = align(*models, (ROWS / 3,))
    assert report.verdict == "agrees to float32", str(report)
    assert "Paddle rounds to float32 where PyTorch does not: the model" in report.remarks


def test_a_mask_in_float32_rounds_nothing() -> None:
    class PaddleMasked(PaddleNormed):
        def forward(self, x):
            mask = (x[:, :1] > -100).astype("float32")
            return super().forward(x * mask.astype(x.dtype))

    report = align(TorchNormed(), PaddleMasked(), (ROWS,))
    assert report.verdict == "faithful", str(report)


@pytest.mark.parametrize("on_both", [True, False])
def test_a_block_that_is_run_again_on_the_way_back_asks_again(on_both: bool) -> None:
    class TorchCheckpointed(TorchNormed):
        def forward(self, x):
            first = self.first(x)
            inner = torch.utils.checkpoint.checkpoint(self.norm, first, use_reentrant=False)
            return self.last(inner)

    class PaddleCheckpointed(PaddleNormed):
        def forward(self, x):
            return self.last(paddle.distributed.fleet.utils.recompute(self.norm, self.first(x)))

    port = PaddleCheckpointed() if on_both else PaddleNormed()
    report = align(TorchCheckpointed(), port, (ROWS,))
    assert report.verdict == "faithful", str(report)
    assert report.remarks[0].startswith(INSIDE_FLOAT32)


def test_a_backward_pass_runs_as_it_is_where_the_engine_has_no_entry(monkeypatch) -> None:
    monkeypatch.setattr(private, "find_engine", lambda: None)
    assert align(TorchNormed(), PaddleNormed(), (ROWS,)).verdict == "faithful"


@pytest.mark.parametrize("eps", [1.1e-6, 1e-5])
def test_a_fault_smaller_than_float32_rounding_is_found_behind_it(eps) -> None:
    report = align(TorchNormed(), PaddleNormed(eps=eps), (ROWS / 40,))
    assert not report.passed
    assert report.findings[0].torch_name == "norm"
    assert "judged with float64 in place of the float32" in report.remarks[0]


def test_a_float32_table_of_the_model_s_own_is_float64_too() -> None:
    class TorchTable(torch.nn.Module):
        def forward(self, x):
            angles = torch.arange(16, dtype=torch.float32) / 7.0
            return torch.nn.functional.linear(
                x, torch.cos(angles) * torch.ones(1, dtype=torch.float32)
            )

    class PaddleTable(paddle.nn.Layer):
        def forward(self, x):
            angles = paddle.arange(16, dtype="float32") / 7.0
            return paddle.matmul(x, paddle.cos(angles) * paddle.full([1], 1.0, "float32"))

    report = align(TorchTable(), PaddleTable(), (ROWS,))
    assert report.passed, str(report)


def test_a_port_that_runs_in_no_float64_is_judged_all_the_same() -> None:
    class PaddleNarrow(PaddleNormed):
        def forward(self, x):
            table = paddle.full([16, 16], 0.0, "float32")
            return super().forward(x) + paddle.matmul(x, table)[:, :4]

    class TorchNarrow(TorchNormed):
        def forward(self, x):
            return super().forward(x) + torch.zeros(16)[:4] * x[:, :4]

    report = align(TorchNarrow(), PaddleNarrow(), (ROWS,))
    assert report.passed, str(report)


def test_the_frameworks_are_left_as_they_were() -> None:
    before = paddle._C_ops.cast, paddle._C_ops.full, paddle.to_tensor
    align(TorchNormed(), PaddleNormed(), (ROWS,))
    assert (paddle._C_ops.cast, paddle._C_ops.full, paddle.to_tensor) == before
    assert torch.ones(1).to(torch.float32).dtype == torch.float32
    assert paddle.ones([1]).astype("float32").dtype == paddle.float32


POSITIONS, WIDTH = 300, 16


class TorchRotary(torch.nn.Module):
    """Makes its angles as it runs, from frequencies that float32 has rounded."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, WIDTH)
        powers = torch.arange(WIDTH, dtype=torch.float32) / WIDTH
        self.register_buffer("frequencies", 1.0 / 10000**powers, persistent=False)

    def forward(self, x):
        angles = torch.arange(POSITIONS)[:, None] * self.frequencies
        return self.first(x) * torch.cos(angles)


class PaddleRotary(paddle.nn.Layer):
    """Has a table of the angles' cosines, made in float32."""

    def __init__(self, base: float = 10000, factor: float = 1.0) -> None:
        super().__init__()
        self.first = paddle.nn.Linear(WIDTH, WIDTH)
        powers = paddle.arange(WIDTH, dtype="float32") / WIDTH
        angles = paddle.arange(POSITIONS, dtype="float32")[:, None] * (1.0 / base**powers)
        self.table, self.factor = paddle.cos(angles), factor

    def forward(self, x):
        return self.first(x) * self.table.astype(x.dtype) * self.factor


def compare_rotary(**options):
    torch.manual_seed(0)
    rows = np.random.default_rng(5).standard_normal((POSITIONS, WIDTH))
    return align(TorchRotary(), PaddleRotary(**options), (rows,))


def test_a_float32_constant_counts_as_much_as_the_model_answers_to_it() -> None:
    report = compare_rotary()
    assert report.verdict == "agrees to float32", str(report)
    assert max(check.relative for check in report.checks) > 1e-6  # more than float32 alone


@pytest.mark.parametrize("fault", [dict(base=10001), dict(factor=1 + 1e-4)])
def test_a_fault_that_exceeds_the_answer_is_found(fault) -> None:
    assert compare_rotary(**fault).verdict == "diverges"


def test_a_port_that_needs_its_float32_is_judged_as_it_is_with_causes_and_lines() -> None:
    class PaddleFirm(PaddleRmsNorm):
        def forward(self, x):
            assert x.astype("float32").dtype == paddle.float32
            return super().forward(x) * 2.0

    port = PaddleNormed()
    port.norm = PaddleFirm()
    report = align(TorchNormed(), port, (ROWS,))
    (first, *_) = report.findings
    assert first.torch_name == "norm" and "super().forward(x) * 2.0" in first.message
    assert first.paddle_code == "return super().forward(x) * 2.0" and first.torch_code


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_port_that_runs_in_float32_alone_is_judged_in_float32(factor: float) -> None:
    def multiply(x):
        if x.dtype != paddle.float32:  # as a kernel that Paddle has for float32 alone
            raise ValueError(f"unsupported dtype {x.dtype}")
        return x * factor

    report = align(TorchNet(), PaddleNet(multiply), inputs=(X,))
    assert report.passed == (factor == 1.0), str(report)
    assert not report.port_raised
    assert (
        "judged in float32, since float64 does not run: the Paddle model raises"
        in (report.remarks[0])
    )


def test_a_port_that_raises_in_float32_too_is_a_finding() -> None:
    def fail(x):
        raise ValueError("no such axis")

    report = align(TorchNet(), PaddleNet(fail), inputs=(X,))
    assert report.port_raised and "no such axis" in report.findings[0].message


class TorchScores(torch.nn.Module):
    """An attention whose scores are float32 whatever it is given, as GPT-J's are."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(self, x):
        scores = self.query(x).float() @ self.key(x).float().T
        return torch.softmax(scores / 4.0, -1).to(x.dtype) @ x


class PaddleScores(paddle.nn.Layer):
    def __init__(self, firm: bool = True, scale: float = 4.0) -> None:
        super().__init__()
        self.query, self.key = paddle.nn.Linear(16, 16), paddle.nn.Linear(16, 16)
        self.firm, self.scale = firm, scale

    def forward(self, x):
        query, key = self.query(x).astype("float32"), self.key(x).astype("float32")
        assert not self.firm or query.dtype == paddle.float32  # as a kernel of float32 alone
        scores = paddle.matmul(key, query, transpose_y=True).t() / self.scale
        return paddle.matmul(paddle.nn.functional.softmax(scores, -1).astype(x.dtype), x)


def compare_scores(seed: int, **options):
    torch.manual_seed(seed)
    rows = np.random.default_rng(seed).standard_normal((24, 16)) * 2
    return align(TorchScores(), PaddleScores(**options), (rows,))


@pytest.mark.parametrize("seed", range(6))
def test_float32_inside_that_cannot_be_widened_rounds_as_much_as_it_is_measured_to(seed) -> None:
    report = compare_scores(seed)
    assert report.verdict == "agrees to float32", str(report)


@pytest.mark.parametrize("scale", [4.0004, 4.1])
def test_a_fault_beyond_what_float32_does_there_is_found(scale) -> None:
    assert compare_scores(0, scale=scale).verdict == "diverges"
    assert compare_scores(0, firm=False, scale=scale).verdict == "diverges"


def test_what_paddle_rounds_of_integers_is_float64_too() -> None:
    class TorchPowers(torch.nn.Module):
        def forward(self, x):
            return x @ torch.outer(torch.arange(16.0), 1 / 10000 ** (torch.arange(16) / 16))

    class PaddlePowers(paddle.nn.Layer):
        def __init__(self, base: int = 10000) -> None:
            super().__init__()
            self.base = base

        def forward(self, x):
            powers = 1 / self.base ** (paddle.arange(16) / 7 * (7 / 16))
            return paddle.matmul(x, paddle.outer(paddle.arange(16, dtype="float32"), powers))

    report = align(TorchPowers(), PaddlePowers(), (ROWS,))
    assert report.verdict == "agrees to float32", str(report)
    assert report.worst is not None and report.worst.relative < 1e-12
    assert align(TorchPowers(), PaddlePowers(10001), (ROWS,)).verdict == "diverges"


@pytest.mark.parametrize("epsilon, verdict", [(0.1, "agrees to float32"), (0.2, "diverges")])
def test_a_loss_of_paddles_one_hot_labels_runs_in_float64(epsilon: float, verdict: str) -> None:
    labels = np.array([0, 1, 3, 2, 0])

    def of_paddle(out):
        hot = paddle.nn.functional.one_hot(paddle.to_tensor(labels), 4)
        soft = paddle.nn.functional.label_smooth(hot, epsilon=epsilon)
        return paddle.nn.functional.cross_entropy(out, soft, soft_label=True)

    def of_torch(out):
        labelled = torch.tensor(labels)
        return torch.nn.functional.cross_entropy(out, labelled, label_smoothing=0.1)

    torch_model, port = torch.nn.Linear(16, 4), paddle.nn.Linear(16, 4)
    rows = ROWS / 40  # Paddle's cross-entropy takes scores that are far below as 64 below
    report = align(torch_model, port, (rows,), torch_loss=of_torch, paddle_loss=of_paddle)
    assert report.verdict == verdict, str(report)
    assert not any("float64 does not run" in text for text in report.remarks)


class TorchHard(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(2, 2, 1), torch.nn.Conv2d(2, 2, 1)

    def forward(self, x):
        hard = torch.nn.functional.hardsigmoid(self.first(x))
        return self.last(torch.tanh(self.last(hard)))


class PaddleHard(paddle.nn.Layer):
    """Paddle's kernel holds the slope as 0.1666667."""

    def __init__(self, answers: bool) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Conv2D(2, 2, 1), paddle.nn.Conv2D(2, 2, 1)
        self.answers = answers

    def forward(self, x):
        hard = paddle.nn.functional.hardsigmoid(self.first(x))
        made = self.last(paddle.tanh(self.last(hard)))
        return made if self.answers else self


def test_float32_excuses_no_output_that_is_missing() -> None:
    x = (np.random.default_rng(0).normal(size=(2, 2, 3, 4)),)
    assert align(TorchHard(), PaddleHard(answers=True), x).verdict == "agrees to float32"
    report = align(TorchHard(), PaddleHard(answers=False), x)
    assert report.verdict == "diverges" and report.findings[0].kind == "not-comparable"


class TorchResized(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(2, 3, 3, stride=2), torch.nn.Conv2d(3, 2, 1)

    def forward(self, x):
        narrow = torch.relu(self.first(x))
        return self.last(torch.nn.functional.interpolate(narrow, x.shape[2:], mode="bilinear"))


class PaddleResized(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Conv2D(2, 3, 3, stride=2), paddle.nn.Conv2D(3, 2, 1)

    def forward(self, x):
        narrow = paddle.nn.functional.relu(self.first(x))
        resized = paddle.nn.functional.interpolate(narrow, x.shape[2:], mode="bilinear")
        return self.last(resized)


def test_paddle_s_float32_weights_of_an_interpolation_leave_a_model_faithful() -> None:
    """The kernel's own are 1e-5 off here, forward and in the gradient that goes back to `first`."""
    x = (np.random.default_rng(0).normal(size=(2, 2, 90, 131)),)
    report = align(TorchResized(), PaddleResized(), x)
    assert report.verdict == "faithful", report.findings
