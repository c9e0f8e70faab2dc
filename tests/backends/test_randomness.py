"""One stream for both frameworks: the same draws, the same order, each as its framework means it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reprod_align.backends.paddle import random as paddle_random
from reprod_align.backends.torch import random as torch_random
from reprod_align.randomness import (
    Draws,
    SharedRandom,
    UnsharedDrawError,
    bernoulli,
    epoch_order,
    exponential,
    leading,
    multinomial,
)

import numpy as np
import paddle
import paddle.nn.functional as PF
import pytest
import torch
import torch.nn.functional as TF
from paddle.nn.functional import dropout as paddle_dropout_by_name
from torch.nn.functional import dropout as torch_dropout_by_name
from torch.utils._python_dispatch import _get_current_dispatch_mode

Function = Callable[..., Any]
SIDES = [torch_random.shared_random, paddle_random.shared_random]
VALUES = np.random.default_rng(0).normal(size=(4, 6, 5, 3))
TINY = 1e-15  # an elementwise product and a rounding or two: less than five times 2.2e-16


def assert_rounding(actual: Any, expected: Any) -> None:
    """Compare what two layers of these sizes compute in float64, whatever the order of their additions.

    On the way to a number here lie at most 200 additions one after the other (5 steps of 2 layers, sums
    of 8 to 16 products, forward and back). Each is off by eps / 2 of what is added up, which is at most
    20 times the largest result: two orders differ by 200 * 2.2e-16 * 20 = 9e-13 of it.
    """
    within = 9e-13 * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=within)


class Counting(SharedRandom):
    """A stream that lists what was asked of it."""

    def __init__(self) -> None:
        super().__init__(0, 0, 0)
        self.asked: list[tuple[Any, ...]] = []

    def uniform(self, shape: tuple[int, ...]) -> Any:
        self.asked.append(("uniform", shape))
        return super().uniform(shape)

    def normal(self, shape: tuple[int, ...]) -> Any:
        self.asked.append(("normal", shape))
        return super().normal(shape)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Any:
        self.asked.append(("integers", low, high, shape))
        return super().integers(low, high, shape)

    def permutation(self, n: int) -> Any:
        self.asked.append(("permutation", n))
        return super().permutation(n)


def draw_mask(shape: tuple[int, ...], p: float) -> Any:
    """Return the first mask of a step: 0 with probability `p`, else 1 / (1 - p)."""
    return bernoulli(SharedRandom(0, 0, 0).uniform(shape), 1.0 - p) / (1.0 - p)


def test_a_draw_is_the_one_of_earlier_versions() -> None:
    # the numbers that version 0.1.0 drew: a recorded run stays repeatable
    key = np.random.SeedSequence((7, 1, 2, 3, 0))
    uniform = np.random.Generator(np.random.Philox(key)).random((64,))
    np.testing.assert_array_equal(SharedRandom(7, 2, 3).uniform((64,)), uniform)


@pytest.mark.parametrize(
    "draw",
    [
        lambda random: random.uniform((64,)),
        lambda random: random.normal((64,)),
        lambda random: random.integers(0, 1000, (64,)),
        lambda random: random.permutation(64),
    ],
    ids=["uniform", "normal", "integers", "permutation"],
)
def test_a_draw_depends_on_seed_epoch_step_and_call_alone(draw: Function) -> None:
    def draws(*key: int) -> list[bytes]:
        random = SharedRandom(*key)
        return [draw(random).tobytes() for _ in range(2)]

    assert draws(1, 2, 3) == draws(1, 2, 3)
    different = {
        drawn for key in ((1, 2, 3), (0, 2, 3), (1, 0, 3), (1, 2, 0)) for drawn in draws(*key)
    }
    assert len(different) == 8
    other_before = SharedRandom(1, 2, 3)
    other_before.normal((7, 7))
    assert draw(other_before).tobytes() == draws(1, 2, 3)[1]


def test_an_epoch_visits_every_example_once_and_each_epoch_anew() -> None:
    orders = [epoch_order(100, 7, epoch) for epoch in range(3)]
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert orders[0] == epoch_order(100, 7, 0)


def test_the_distributions_are_the_ones_they_claim_to_be() -> None:
    uniform = SharedRandom(0, 0, 0).uniform((100_000,))
    five_sigma = 5 / np.sqrt(uniform.size)
    assert abs(bernoulli(uniform, 0.2).mean() - 0.2) < five_sigma * np.sqrt(0.2 * 0.8)
    assert abs(exponential(uniform, 4.0).mean() - 0.25) < five_sigma * 0.25
    weights = np.tile([1.0, 0.0, 3.0, 0.0], (20_000, 1))
    for replacement in (True, False):
        indices = multinomial(SharedRandom(0, 0, 0), weights, 2, replacement)
        assert indices.shape == (20_000, 2) and set(np.unique(indices)) == {0, 2}
        first = (indices[:, 0] == 0).mean()
        assert abs(first - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 20_000)
        assert (indices[:, 0] == indices[:, 1]).any() == replacement
    last = multinomial(Constant(np.nextafter(1.0, 0.0)), np.array([1.0, 3.0, 0.0]), 1, True)
    assert last.tolist() == [1]
    assert multinomial(Constant(0.0), np.array([0.0, 1.0]), 1, True).tolist() == [1]


class Constant(SharedRandom):
    """Every uniform number is the same."""

    def __init__(self, number: float) -> None:
        super().__init__(0, 0, 0)
        self.number = number

    def uniform(self, shape: tuple[int, ...]) -> Any:
        return np.full(shape, self.number)


def torch_values_and_gradient(function: Function, draws: Draws) -> tuple[Any, Any]:
    x = torch.tensor(VALUES, requires_grad=True)
    with torch_random.shared_random(draws):
        y = function(x)
        (y * torch.tensor(_weights(y.shape))).sum().backward()
    return y.detach().numpy(), x.grad.numpy()


def paddle_values_and_gradient(function: Function, draws: Draws) -> tuple[Any, Any]:
    x = paddle.to_tensor(VALUES, stop_gradient=False)
    with paddle_random.shared_random(draws):
        y = function(x)
        (y * paddle.to_tensor(_weights(y.shape))).sum().backward()
    return y.numpy(), x.grad.numpy()


def _weights(shape: Any) -> Any:
    return np.random.default_rng(1).normal(size=tuple(shape))


LAYERS: dict[str, tuple[Function, Function]] = {
    "dropout": (lambda x: TF.dropout(x, 0.4), lambda x: PF.dropout(x, 0.4)),
    "by name": (lambda x: torch_dropout_by_name(x, 0.4), lambda x: paddle_dropout_by_name(x, 0.4)),
    "by name, with an axis": (
        lambda x: TF.dropout2d(x, 0.4),
        lambda x: paddle_dropout_by_name(x, 0.4, axis=[0, 1]),
    ),
    "in place": (
        lambda x: TF.dropout(x * 1, 0.4, inplace=True),
        lambda x: PF.dropout(x * 1, 0.4, inplace=True),
    ),
    "not contiguous": (
        lambda x: torch.nn.Dropout(0.4)(x.permute(2, 0, 3, 1)),
        lambda x: paddle.nn.Dropout(0.4)(x.transpose([2, 0, 3, 1])),
    ),
    "no gradient to keep": (
        lambda x: TF.dropout(x.detach(), 0.4) * x,
        lambda x: PF.dropout(x.detach(), 0.4) * x,
    ),
    "dropout2d": (torch.nn.Dropout2d(0.4), paddle.nn.Dropout2D(0.4)),
    "dropout2d axis": (torch.nn.Dropout2d(0.4), paddle.nn.Dropout(0.4, axis=[0, 1])),
    "dropout3d": (
        lambda x: torch.nn.Dropout3d(0.4)(x[..., None]),
        lambda x: paddle.nn.Dropout3D(0.4)(x.unsqueeze(-1)),
    ),
    "dropout1d": (
        lambda x: TF.dropout1d(x[0], 0.4),
        lambda x: PF.dropout(x[0], 0.4, axis=[0, 1]),
    ),
    "channels last": (
        lambda x: TF.dropout2d(x.permute(0, 3, 1, 2), 0.4).permute(0, 2, 3, 1),
        lambda x: PF.dropout2d(x, 0.4, data_format="NHWC"),
    ),
    "alpha": (torch.nn.AlphaDropout(0.4), paddle.nn.AlphaDropout(0.4)),
    "feature alpha": (torch.nn.FeatureAlphaDropout(0.4), paddle.nn.FeatureAlphaDropout(0.4)),
    "rrelu": (torch.nn.RReLU(0.1, 0.3), paddle.nn.RReLU(0.1, 0.3)),
    "rrelu, in place": (
        lambda x: TF.rrelu(x * 1, 0.1, 0.3, training=True, inplace=True),
        lambda x: PF.rrelu(x, 0.1, 0.3),
    ),
    "gumbel": (
        lambda x: TF.gumbel_softmax(x, tau=0.7, dim=1),
        lambda x: PF.gumbel_softmax(x, temperature=0.7, axis=1),
    ),
    "gumbel hard": (
        lambda x: TF.gumbel_softmax(x, hard=True),
        lambda x: PF.gumbel_softmax(x, hard=True),
    ),
    "attention": (
        lambda x: TF.scaled_dot_product_attention(x, x, x, dropout_p=0.4),
        lambda x: PF.scaled_dot_product_attention(
            *[x.transpose([0, 2, 1, 3])] * 3, dropout_p=0.4
        ).transpose([0, 2, 1, 3]),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_both_frameworks_draw_the_same(name: str) -> None:
    torch_layer, paddle_layer = LAYERS[name]
    torch_draws, paddle_draws = Counting(), Counting()
    expected = torch_values_and_gradient(torch_layer, torch_draws)
    actual = paddle_values_and_gradient(paddle_layer, paddle_draws)
    for one, other in zip(expected, actual, strict=True):
        np.testing.assert_allclose(other, one, rtol=TINY, atol=TINY)
    assert _counts(torch_draws) == _counts(paddle_draws) and len(torch_draws.asked) == 1
    assert expected[1].any()


def _counts(draws: Counting) -> list[int]:
    return [int(np.prod(asked[-1])) for asked in draws.asked]


@pytest.mark.parametrize("side", ["torch", "paddle"])
def test_a_dropout_is_its_mask(side: str) -> None:
    run = torch_values_and_gradient if side == "torch" else paddle_values_and_gradient
    layers = TF if side == "torch" else PF
    mask = draw_mask(VALUES.shape, 0.4)
    values, gradient = run(lambda x: layers.dropout(x, 0.4), SharedRandom(0, 0, 0))
    np.testing.assert_array_equal(values, VALUES * mask)
    np.testing.assert_array_equal(gradient, _weights(VALUES.shape) * mask)
    mask = draw_mask((*VALUES.shape[:2], 1, 1), 0.4)
    values, _ = run(lambda x: layers.dropout2d(x, 0.4), SharedRandom(0, 0, 0))
    np.testing.assert_array_equal(values, VALUES * mask)


@pytest.mark.parametrize("layers", [TF, PF])
@pytest.mark.parametrize("kind", ["dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_a_number_just_below_p_is_dropped(layers: Any, kind: str) -> None:
    run = torch_values_and_gradient if layers is TF else paddle_values_and_gradient
    draws = Constant(0.4 - 1e-12)  # in float32 it is 0.4
    _, gradient = run(lambda x: getattr(layers, kind)(x, 0.4, training=True), draws)
    assert not gradient.any()


def test_downscale_in_infer_is_what_paddle_defines() -> None:
    layer = paddle.nn.Dropout(0.4, mode="downscale_in_infer")
    channels = paddle.nn.Dropout(0.4, axis=1, mode="downscale_in_infer")
    mask = draw_mask(VALUES.shape, 0.4) != 0
    channel_mask = draw_mask((1, 6, 1, 1), 0.4) != 0
    for each, kept in ((layer, mask), (channels, channel_mask)):
        each.train()
        values, _ = paddle_values_and_gradient(each, SharedRandom(0, 0, 0))
        np.testing.assert_array_equal(values, VALUES * kept)
        each.eval()
        values, _ = paddle_values_and_gradient(each, SharedRandom(0, 0, 0))
        np.testing.assert_allclose(values, VALUES * 0.6, rtol=TINY)


def test_paddles_dropout1d_drops_a_channel_of_the_whole_batch() -> None:
    draws = Counting()
    paddle_values_and_gradient(lambda x: PF.dropout1d(x[..., 0], 0.4), draws)
    assert draws.asked == [("uniform", (1, 6, 1))]


SILENT: dict[str, tuple[Function, Function]] = {
    "dropout eval": (torch.nn.Dropout(0.4).eval(), lambda x: PF.dropout(x, 0.4, training=False)),
    "dropout p = 0": (torch.nn.Dropout(0.0), paddle.nn.Dropout(0.0)),
    "dropout p = 1": (torch.nn.Dropout(1.0), paddle.nn.Dropout(1.0)),
    "dropout2d eval": (
        lambda x: TF.dropout2d(x, 0.4, training=False),
        lambda x: PF.dropout2d(x, 0.4, training=False),
    ),
    "dropout2d p = 0": (torch.nn.Dropout2d(0.0), paddle.nn.Dropout2D(0.0)),
    "dropout2d p = 1": (torch.nn.Dropout2d(1.0), paddle.nn.Dropout2D(1.0)),
    "alpha eval": (
        lambda x: TF.alpha_dropout(x, 0.4, training=False),
        lambda x: PF.alpha_dropout(x, 0.4, training=False),
    ),
    "alpha p = 0": (torch.nn.AlphaDropout(0.0), paddle.nn.AlphaDropout(0.0)),
    "alpha p = 1": (torch.nn.AlphaDropout(1.0), paddle.nn.AlphaDropout(1.0)),
    "rrelu eval": (
        lambda x: TF.rrelu(x, 0.1, 0.3, training=False),
        lambda x: PF.rrelu(x, 0.1, 0.3, training=False),
    ),
    "attention eval": (
        lambda x: TF.scaled_dot_product_attention(x, x, x, dropout_p=0.0),
        lambda x: PF.scaled_dot_product_attention(
            *[x.transpose([0, 2, 1, 3])] * 3, dropout_p=0.4, training=False
        ).transpose([0, 2, 1, 3]),
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_drawn_where_nothing_is_random(name: str) -> None:
    torch_layer, paddle_layer = SILENT[name]
    draws = Counting()
    expected = torch_values_and_gradient(torch_layer, draws)
    actual = paddle_values_and_gradient(paddle_layer, draws)
    for one, other in zip(expected, actual, strict=True):
        np.testing.assert_allclose(other, one, rtol=TINY, atol=TINY)
    assert not draws.asked


def test_nothing_is_drawn_for_an_empty_batch() -> None:
    draws = Counting()
    with torch_random.shared_random(draws), paddle_random.shared_random(draws):
        TF.dropout(torch.zeros(0, 3), 0.4)
        PF.dropout(paddle.zeros([0, 3]), 0.4)
        PF.alpha_dropout(paddle.zeros([0, 3]), 0.4)
        PF.dropout2d(paddle.zeros([0, 3, 2, 2]), 0.4)
    assert not draws.asked


T64, P64 = torch.float64, "float64"
WEIGHTS = np.array([[0.1, 0.5, 0.0, 0.4], [2.0, 1.0, 1.0, 3.0]])
CREATORS: dict[str, tuple[Function, Function]] = {
    "rand": (lambda: torch.rand(3, 4, dtype=T64), lambda: paddle.rand([3, 4], P64)),
    "rand, default dtype": (lambda: torch.rand(3, 4), lambda: paddle.rand([3, 4])),
    "rand, out": (
        lambda: torch.rand(3, 4, out=torch.empty(0, dtype=T64)),
        lambda: paddle.rand([3, 4], out=paddle.empty([3, 4], P64), dtype=P64),
    ),
    "rand, generator": (
        lambda: torch.rand(3, 4, dtype=T64, generator=torch.Generator()),
        lambda: paddle.rand([3, 4], P64),
    ),
    "rand, a scalar": (lambda: torch.rand((), dtype=T64), lambda: paddle.rand([], P64)),
    "randn": (lambda: torch.randn(3, 4, dtype=T64), lambda: paddle.randn([3, 4], P64)),
    "standard_normal": (
        lambda: torch.randn(3, 4, dtype=T64),
        lambda: paddle.standard_normal([3, 4], P64),
    ),
    "uniform": (
        lambda: torch.empty(3, 4, dtype=T64).uniform_(-2, 3),
        lambda: paddle.uniform([3, 4], P64, -2, 3),
    ),
    "normal": (lambda: torch.normal(1.0, 2.0, (3, 4)), lambda: paddle.normal(1.0, 2.0, [3, 4])),
    "normal, tensors": (
        lambda: torch.normal(torch.tensor(WEIGHTS), torch.tensor(WEIGHTS)),
        lambda: paddle.normal(paddle.to_tensor(WEIGHTS), paddle.to_tensor(WEIGHTS)),
    ),
    "normal, mean": (
        lambda: torch.normal(torch.tensor(WEIGHTS), 2.0),
        lambda: paddle.normal(paddle.to_tensor(WEIGHTS), 2.0),
    ),
    "normal, deviation": (
        lambda: torch.normal(1.0, torch.tensor(WEIGHTS)),
        lambda: paddle.normal(1.0, paddle.to_tensor(WEIGHTS)),
    ),
    "randint": (lambda: torch.randint(2, 9, (3, 4)), lambda: paddle.randint(2, 9, [3, 4])),
    "randint, one bound": (
        lambda: torch.randint(9, (3, 4)),
        lambda: paddle.randint(9, None, [3, 4]),
    ),
    "randperm": (lambda: torch.randperm(9), lambda: paddle.randperm(9)),
    "rand_like": (
        lambda: torch.rand_like(torch.tensor(VALUES)),
        lambda: paddle.rand_like(paddle.to_tensor(VALUES)),
    ),
    "randn_like": (
        lambda: torch.randn_like(torch.tensor(VALUES)),
        lambda: paddle.randn_like(paddle.to_tensor(VALUES)),
    ),
    "randint_like": (
        lambda: torch.randint_like(torch.tensor(VALUES), 2, 9),
        lambda: paddle.randint_like(paddle.to_tensor(VALUES), 2, 9),
    ),
    "bernoulli": (
        lambda: torch.bernoulli(torch.tensor(WEIGHTS[0])),
        lambda: paddle.bernoulli(paddle.to_tensor(WEIGHTS[0])),
    ),
    "bernoulli, one p": (
        lambda: torch.bernoulli(torch.tensor(VALUES), 0.3),
        lambda: paddle.bernoulli(paddle.to_tensor(VALUES), 0.3),
    ),
    "multinomial": (
        lambda: torch.multinomial(torch.tensor(WEIGHTS), 3),
        lambda: paddle.multinomial(paddle.to_tensor(WEIGHTS), 3),
    ),
    "multinomial, replacement": (
        lambda: torch.multinomial(torch.tensor(WEIGHTS[0]), 30, replacement=True),
        lambda: paddle.multinomial(paddle.to_tensor(WEIGHTS[0]), 30, replacement=True),
    ),
    "uniform_": (
        lambda: torch.tensor(VALUES).uniform_(-2, 3),
        lambda: paddle.to_tensor(VALUES).uniform_(-2, 3),
    ),
    "normal_": (
        lambda: torch.tensor(VALUES).normal_(1.0, 2.0),
        lambda: paddle.to_tensor(VALUES).normal_(1.0, 2.0),
    ),
    "log_normal_": (
        lambda: torch.tensor(VALUES).log_normal_(1.0, 2.0),
        lambda: paddle.to_tensor(VALUES).log_normal_(1.0, 2.0),
    ),
    "exponential_": (
        lambda: torch.tensor(VALUES).exponential_(3.0),
        lambda: paddle.to_tensor(VALUES).exponential_(3.0),
    ),
    "bernoulli_": (
        lambda: torch.tensor(VALUES).bernoulli_(0.3),
        lambda: paddle.to_tensor(VALUES).bernoulli_(0.3),
    ),
    "bernoulli_, tensor": (
        lambda: torch.tensor(WEIGHTS).bernoulli_(torch.tensor(WEIGHTS[0])),
        lambda: paddle.bernoulli_(paddle.to_tensor(WEIGHTS), paddle.to_tensor(WEIGHTS[0])),
    ),
    "random_": (lambda: torch.tensor(VALUES).random_(), lambda: paddle.to_tensor(VALUES).random_()),
    "random_, int64": (
        lambda: torch.zeros(9, dtype=torch.int64).random_(),
        lambda: paddle.zeros([9], "int64").random_(),
    ),
    "random_, bounds": (
        lambda: torch.tensor(VALUES).random_(2, 9),
        lambda: paddle.to_tensor(VALUES).random_(2, 9),
    ),
    "distributions": (
        lambda: torch.distributions.Normal(torch.tensor(1.0), torch.tensor(2.0)).rsample((5,)),
        lambda: paddle.distribution.Normal(1.0, 2.0).rsample((5,)),
    ),
}


@pytest.mark.parametrize("name", CREATORS)
def test_both_frameworks_create_the_same(name: str) -> None:
    torch_create, paddle_create = CREATORS[name]
    torch_draws, paddle_draws = Counting(), Counting()
    with torch_random.shared_random(torch_draws):
        expected = torch_create().numpy()
    with paddle_random.shared_random(paddle_draws):
        actual = paddle_create().numpy()
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=0)
    assert _counts(torch_draws) == _counts(paddle_draws) and len(torch_draws.asked) == 1


def test_a_filled_tensor_stops_the_gradient_of_what_it_held() -> None:
    torch_gradient = torch_values_and_gradient(lambda x: (x * 2).uniform_() + 3 * x, Counting())[1]
    paddle_gradient = paddle_values_and_gradient(lambda x: (x * 2).uniform_() + 3 * x, Counting())[
        1
    ]
    np.testing.assert_array_equal(torch_gradient, paddle_gradient)
    np.testing.assert_array_equal(torch_gradient, 3 * _weights(VALUES.shape))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.poisson(torch.ones(3)),
        lambda: torch.zeros(3).cauchy_(),
        lambda: torch.zeros(3).geometric_(0.3),
        lambda: torch.distributions.Gamma(1.0, 1.0).sample(),
        lambda: torch.randn(3, dtype=torch.complex64),
        lambda: paddle.poisson(paddle.ones([3])),
        lambda: paddle.standard_gamma(paddle.ones([3])),
        lambda: paddle.randn([3], "complex64"),
    ],
)
def test_what_cannot_be_shared_is_refused(draw: Function) -> None:
    with torch_random.shared_random(Counting()), paddle_random.shared_random(Counting()):
        with pytest.raises(UnsharedDrawError, match="cannot be shared"):
            draw()


def test_pytorch_draws_the_same_without_autograd_and_in_a_script() -> None:
    layer = torch.nn.Dropout(0.4)
    attend = lambda x: TF.scaled_dot_product_attention(x, x, x, dropout_p=0.4)  # noqa: E731
    for function in (layer, attend):
        expected, _ = torch_values_and_gradient(function, Counting())
        for mode in (torch.no_grad, torch.inference_mode):
            draws = Counting()
            with mode(), torch_random.shared_random(draws):
                actual = function(torch.tensor(VALUES))
            np.testing.assert_array_equal(actual.numpy(), expected)
            assert len(draws.asked) == 1
    scripted, _ = torch_values_and_gradient(torch.jit.script(layer), Counting())
    np.testing.assert_array_equal(scripted, torch_values_and_gradient(layer, Counting())[0])


@pytest.mark.parametrize("draw", [
    lambda p, framework: framework.bernoulli(p), lambda p, framework: framework.multinomial(p, 3),
    lambda p, framework: framework.normal(p, p),
])  # fmt: skip
def test_what_a_model_has_computed_with_gradients_is_drawn_by(draw: Function) -> None:
    """Chances of a categorical latent, say: the draw itself takes no gradient."""
    chances = np.random.default_rng(0).uniform(size=(2, 5))
    theirs = torch.tensor(chances, requires_grad=True)
    ours = paddle.to_tensor(chances, stop_gradient=False)
    with torch_random.shared_random(Counting()), paddle_random.shared_random(Counting()):
        expected, actual = draw(theirs * 1, torch), draw(ours * 1, paddle)
    np.testing.assert_allclose(actual.numpy(), expected.detach().numpy(), rtol=1e-12)


def test_the_mask_of_pytorchs_fused_dropout() -> None:
    expected = torch_values_and_gradient(torch.nn.Dropout(0.4), Counting())
    actual = torch_values_and_gradient(lambda x: torch.native_dropout(x, 0.4, True)[0], Counting())
    np.testing.assert_array_equal(actual, expected)
    draws = Counting()
    nothing = torch_values_and_gradient(lambda x: torch.native_dropout(x, 1.0, True)[0], draws)
    assert not np.any(nothing) and not draws.asked


def own_draws() -> list[list[float]]:
    torch.manual_seed(0)
    paddle.seed(0)
    torch_layers = [torch.rand(3), torch.nn.Dropout(0.5)(torch.ones(9))]
    x = paddle.ones([1, 9, 1, 1])
    paddle_layers = [
        paddle.rand([3]),
        PF.dropout(x),
        PF.dropout2d(x),
        PF.alpha_dropout(x),
        paddle.ones([9]).bernoulli_(),
        paddle.poisson(x),
    ]
    return [tensor.flatten().tolist() for tensor in (*torch_layers, *paddle_layers)]


def test_leading_takes_the_lower_index_where_values_are_tied() -> None:
    values = np.array([[1.0, 3.0 - 1e-15, 3.0, 2.0, 3.0], [0.0, -np.inf, 0.0, np.inf, 5.0]])
    assert leading(values, 3, 1, largest=True).tolist() == [[1, 2, 4], [3, 4, 0]]
    assert leading(values, 2, 1, largest=False).tolist() == [[0, 3], [1, 0]]
    assert leading(values, 3, 1, largest=True, tied=0.0).tolist() == [[2, 4, 1], [3, 4, 0]]
    assert leading(np.zeros((2, 3)), 2, 0, largest=True).tolist() == [[0] * 3, [1] * 3]
    assert leading(np.array([1.0, 1.0 + 1e-6]), 1, 0, largest=True).tolist() == [1]  # no tie


@pytest.mark.parametrize("options", [(7, -1, True), (3, 0, True), (7, 1, False)])
def test_topk_takes_the_same_of_values_that_rounding_alone_sets_apart(options: Any) -> None:
    x = np.random.default_rng(1).integers(0, 4, (8, 40)) * 0.1
    rounded = x * (1 + 1e-15 * np.random.default_rng(2).integers(-1, 2, x.shape))
    ours, theirs = (torch.tensor(x, requires_grad=True), paddle.to_tensor(rounded))
    theirs.stop_gradient = False
    apart = np.array(torch.topk(ours, *options)[1]) != paddle.topk(theirs, *options)[1].numpy()
    assert apart.any()  # what each framework takes by itself
    with torch_random.shared_random(Counting()), paddle_random.shared_random(Counting()):
        expected, actual = torch.topk(ours, *options), paddle.topk(theirs, *options)
    assert (expected[1].numpy() == actual[1].numpy()).all()
    np.testing.assert_array_equal(expected[0].detach(), torch.topk(ours, *options)[0].detach())
    expected[0].square().sum().backward()
    actual[0].square().sum().backward()
    assert ours.grad is not None and ours.grad.any()
    np.testing.assert_allclose(theirs.grad.numpy(), ours.grad, atol=1e-14)


def test_topk_of_nan_and_of_integers_is_the_frameworks_own() -> None:
    with torch_random.shared_random(Counting()), paddle_random.shared_random(Counting()):
        assert torch.topk(torch.tensor([1.0, float("nan"), 2.0]), 1)[1].tolist() == [1]
        assert torch.topk(torch.tensor([1, 3, 2]), 2)[1].tolist() == [1, 2]
        assert paddle.topk(paddle.to_tensor([1, 3, 2]), 2)[1].tolist() == [1, 2]
        assert paddle.topk(paddle.to_tensor([1.0, 3.0, 2.0]), paddle.to_tensor(2))[1].shape == [2]


def test_everything_is_put_back_also_after_an_error() -> None:
    before, replaced = own_draws(), _replaced_attributes()
    for shared_random in SIDES:
        with pytest.raises(ZeroDivisionError), shared_random(Counting()):
            _ = 1 / 0
    assert own_draws() == before
    assert all(now is then for now, then in zip(_replaced_attributes(), replaced, strict=True))
    assert _get_current_dispatch_mode() is None


def _replaced_attributes() -> list[Any]:
    return [getattr(owner, name) for owner, name, _ in paddle_random._REPLACEMENTS]


def test_the_frameworks_own_generators_stay_where_they_were() -> None:
    torch.manual_seed(0)
    paddle.seed(0)
    expected = torch.rand(3).tolist(), paddle.rand([3]).tolist()
    torch.manual_seed(0)
    paddle.seed(0)
    with torch_random.shared_random(Counting()), paddle_random.shared_random(Counting()):
        for layers in (*LAYERS.values(), *SILENT.values()):
            for x, layer in zip(
                (torch.tensor(VALUES), paddle.to_tensor(VALUES)), layers, strict=True
            ):
                layer(x)
        for creators in CREATORS.values():
            for create in creators:
                create()
    assert (torch.rand(3).tolist(), paddle.rand([3]).tolist()) == expected


@pytest.mark.parametrize("side", ["torch", "paddle"])
def test_of_two_nested_blocks_the_inner_draws(side: str) -> None:
    shared_random, framework = (
        (torch_random.shared_random, torch) if side == "torch" else (SIDES[1], paddle)
    )
    outer, inner = Counting(), Counting()
    with shared_random(outer):
        framework.rand([2])
        with shared_random(inner):
            framework.rand([3])
        framework.rand([4])
    assert outer.asked == [("uniform", (2,)), ("uniform", (4,))]
    assert inner.asked == [("uniform", (3,))]


def float64(layer: Any) -> Any:
    """Layer.to stumbles over the empty buffer that Paddle's RNNs keep."""
    for parameter in layer.parameters():
        layer._transform(parameter, None, "float64", True)
    return layer


RNNS = {"LSTM": "LSTM", "GRU": "GRU", "RNN": "SimpleRNN"}


def rnn_pair(name: str, layers: int, both_ways: bool, p: float, size: int) -> tuple[Any, Any, Any]:
    """A PyTorch RNN, Paddle's with the same weights, and their pairs of parameters."""
    more: dict[str, Any] = {"proj_size": size} if size else {}
    torch_rnn = getattr(torch.nn, name)(
        4, 3, layers, batch_first=True, dropout=p, bidirectional=both_ways, **more
    ).double()
    direction = "bidirect" if both_ways else "forward"
    paddle_rnn = getattr(paddle.nn, RNNS[name])(4, 3, layers, direction, dropout=p, **more)
    pairs = list(zip(torch_rnn.parameters(), _in_torch_order(float64(paddle_rnn)), strict=True))
    for ours, theirs in pairs:
        value = ours.detach().numpy()
        theirs.set_value(value if tuple(theirs.shape) == value.shape else value.T)
    return torch_rnn, paddle_rnn, pairs


def _in_torch_order(rnn: Any) -> Iterator[Any]:
    for layer in rnn:
        cells = [layer.cell] if hasattr(layer, "cell") else [layer.cell_fw, layer.cell_bw]
        for cell in cells:
            yield from (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
            if getattr(cell, "proj_size", 0):
                yield cell.weight_ho


@pytest.mark.filterwarnings(r"ignore:[\s\S]*sequence_mask")  # Paddle's own projected LSTM calls it
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("lengths", [None, [2, 5, 3], [4, 5, 4]])
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("name, size", [("LSTM", 0), ("GRU", 0), ("RNN", 0), ("LSTM", 2)])
def test_rnns_drop_the_same_between_their_layers(
    name: str, size: int, both_ways: bool, lengths: list[int] | None, training: bool
) -> None:
    torch_rnn, paddle_rnn, pairs = rnn_pair(name, 3, both_ways, 0.4, size)
    torch_rnn.train(training)
    paddle_rnn.train() if training else paddle_rnn.eval()
    x = np.random.default_rng(0).normal(size=(3, 5, 4))  # (B, T, C)
    torch_draws, paddle_draws = Counting(), Counting()
    expected = torch_rnn_outputs(torch_rnn, x, lengths, torch_draws)
    actual = paddle_rnn_outputs(paddle_rnn, x, lengths, paddle_draws)
    gradients = [(ours.grad.numpy(), theirs.grad.numpy()) for ours, theirs in pairs]
    for one, other in (*zip(expected, actual, strict=True), *gradients):
        assert_rounding(other if other.shape == one.shape else other.T, one)
    assert torch_draws.asked == paddle_draws.asked and len(torch_draws.asked) == 2 * training


def torch_rnn_outputs(rnn: Any, x: Any, lengths: list[int] | None, draws: Draws) -> list[Any]:
    with torch_random.shared_random(draws):
        inputs = torch.tensor(x, requires_grad=True)
        if lengths is None:
            outputs, states = rnn(inputs)
        else:
            pack = torch.nn.utils.rnn.pack_padded_sequence
            packed, states = rnn(pack(inputs, lengths, batch_first=True, enforce_sorted=False))
            outputs, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        outputs.square().sum().backward()
    states = states if isinstance(states, tuple) else (states,)
    return [each.detach().numpy() for each in (outputs, inputs.grad, *states)]


def paddle_rnn_outputs(rnn: Any, x: Any, lengths: list[int] | None, draws: Draws) -> list[Any]:
    with paddle_random.shared_random(draws):
        inputs = paddle.to_tensor(x, stop_gradient=False)
        known = None if lengths is None else paddle.to_tensor(lengths)
        outputs, states = rnn(inputs, None, known)
        if lengths is not None:  # the projected LSTM leaves values beyond the end
            outputs = outputs * (paddle.arange(5) < known.unsqueeze(1)).astype(P64).unsqueeze(2)
        outputs.square().sum().backward()
    states = states if isinstance(states, tuple) else (states,)
    return [each.numpy() for each in (outputs, inputs.grad, *states)]


def test_an_rnn_takes_a_single_initial_state() -> None:
    torch_rnn, paddle_rnn, _ = rnn_pair("GRU", 2, False, 0.4, 0)
    x, state = (np.random.default_rng(0).normal(size=size) for size in ((3, 5, 4), (2, 3, 3)))
    with torch_random.shared_random(Counting()), paddle_random.shared_random(Counting()):
        expected = torch_rnn(torch.tensor(x), torch.tensor(state))[0].detach().numpy()
        actual = paddle_rnn(paddle.to_tensor(x), paddle.to_tensor(state))[0].numpy()
    assert_rounding(actual, expected)


@contextmanager
def both(torch_draws: Draws, paddle_draws: Draws) -> Iterator[None]:
    with torch_random.shared_random(torch_draws), paddle_random.shared_random(paddle_draws):
        yield


def copy_attention(torch_layer: Any, paddle_layer: Any) -> None:
    weights, biases = torch_layer.in_proj_weight.chunk(3), torch_layer.in_proj_bias.chunk(3)
    for name, weight, bias in zip("qkv", weights, biases, strict=True):
        getattr(paddle_layer, f"{name}_proj").weight.set_value(weight.detach().numpy().T)
        getattr(paddle_layer, f"{name}_proj").bias.set_value(bias.detach().numpy())
    copy_layer(torch_layer.out_proj, paddle_layer.out_proj)


def copy_layer(torch_layer: Any, paddle_layer: Any) -> None:
    for name, parameter in torch_layer.named_parameters():
        getattr(paddle_layer, name).set_value(parameter.detach().numpy().T)


@pytest.mark.parametrize("need_weights", [True, False])
def test_multi_head_attention_drops_the_same(need_weights: bool) -> None:
    torch_layer = torch.nn.MultiheadAttention(8, 2, dropout=0.4, batch_first=True).double()
    paddle_layer = float64(paddle.nn.MultiHeadAttention(8, 2, dropout=0.4))
    copy_attention(torch_layer, paddle_layer)
    x = np.random.default_rng(0).normal(size=(3, 5, 8))
    ours, theirs = Counting(), Counting()
    with both(ours, theirs):
        expected, _ = torch_layer(*[torch.tensor(x)] * 3, need_weights=need_weights)
        actual = paddle_layer(paddle.to_tensor(x))
    assert_rounding(actual.numpy(), expected.detach().numpy())
    assert _counts(ours) == _counts(theirs) == [3 * 2 * 5 * 5]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layers_drop_the_same(norm_first: bool, training: bool) -> None:
    eps = 2.0**-17  # exact in float32: Paddle's LayerNorm rounds it
    torch_layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, 0.3, layer_norm_eps=eps, batch_first=True, norm_first=norm_first
    ).double()
    paddle_layer = paddle.nn.TransformerEncoderLayer(
        8, 2, 16, 0.3, normalize_before=norm_first, layer_norm_eps=eps
    )
    copy_attention(torch_layer.self_attn, float64(paddle_layer).self_attn)
    for name in ("linear1", "linear2", "norm1", "norm2"):
        copy_layer(getattr(torch_layer, name), getattr(paddle_layer, name))
    torch_layer.train(training)
    paddle_layer.train() if training else paddle_layer.eval()
    ours, theirs = Counting(), Counting()
    expected, actual = encoder_outputs(torch_layer, paddle_layer, ours, theirs)
    for one, other in zip(expected, actual, strict=True):
        assert_rounding(other, one)
    # the attention's weights, what it gives, the hidden layer, what the feed-forward block gives
    assert ours.asked == theirs.asked
    shapes = [(3, 2, 5, 5), (3, 5, 8), (3, 5, 16), (3, 5, 8)]
    assert [shape for _, shape in ours.asked] == (shapes if training else [])


def encoder_outputs(torch_layer: Any, paddle_layer: Any, ours: Draws, theirs: Draws) -> Any:
    values = np.random.default_rng(0).normal(size=(3, 5, 8))
    x = torch.tensor(values, requires_grad=True)
    y = paddle.to_tensor(values, stop_gradient=False)
    with both(ours, theirs):
        expected, actual = torch_layer(x), paddle_layer(y)
        (expected**3).sum().backward()
        (actual**3).sum().backward()
    for name in ("linear1", "linear2"):
        ours_grad = getattr(torch_layer, name).weight.grad.numpy()
        theirs_grad = getattr(paddle_layer, name).weight.grad.numpy()
        assert_rounding(theirs_grad.T, ours_grad)
    return (expected.detach().numpy(), x.grad.numpy()), (actual.numpy(), y.grad.numpy())
