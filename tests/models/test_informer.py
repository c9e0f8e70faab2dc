"""Informer: the PyTorch side is the original, the Paddle side is its faithful port, faults are named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from models import pd_informer, pt_informer
from models.informer_arguments import InformerArguments, InformerError, sparse_count
from reprod_align import Report, align
from reprod_align.backends import paddle as paddle_init
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.backends import torch as torch_init
from reprod_align.errors import ReprodError
from reprod_align.initialisation import compare_initialisation

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import torch

NAMES = (Path(__file__).parent / "informer_state_dict.txt").read_text()
SIZES = {"enc_in": 3, "dec_in": 3, "c_out": 2, "seq_len": 12, "label_len": 6, "out_len": 4}
WIDTHS = {"d_model": 8, "n_heads": 2, "e_layers": 2, "d_layers": 1, "d_ff": 12}
SMALL = {**SIZES, **WIDTHS, "factor": 1, "dropout": 0.2, "embed": "timeF"}
ROWS = (13, 32, 7, 24, 4)  # of the tables of months, days, weekdays, hours and quarters

Pair = tuple[torch.nn.Module, paddle.nn.Layer]
Plant = Callable[[Any], None]


def pair(**changes: Any) -> Pair:
    """Return both sides of a small Informer, or of an InformerStack if `e_layers` is a list."""
    chosen = SMALL | changes
    name = "InformerStack" if isinstance(chosen["e_layers"], list) else "Informer"
    torch.manual_seed(0)
    return getattr(pt_informer, name)(**chosen), getattr(pd_informer, name)(**chosen)


def batch(arguments: InformerArguments) -> tuple[np.ndarray, ...]:
    """Return x_enc (2, 12, 3), its marks, x_dec (2, 10, 3), its marks."""
    random, columns = np.random.default_rng(0), arguments.mark_columns

    def marks(length: int) -> np.ndarray:
        if arguments.embed == "timeF":
            return random.uniform(-0.5, 0.5, (2, length, columns))
        tables = [random.integers(0, rows, (2, length)) for rows in ROWS[:columns]]
        return np.stack(tables, -1).astype("float64")

    return random.normal(size=(2, 12, 3)), marks(12), random.normal(size=(2, 10, 3)), marks(10)


def aligned(torch_model: Any, paddle_model: Any, **options: Any) -> Report:
    return align(torch_model, paddle_model, batch(torch_model.arguments), **options)


def worst(report: Report, *stages: str) -> float:
    found = [check.relative for check in report.checks if check.stage in stages and not check.noise]
    assert found
    return max(found)


# --- the PyTorch side is the original


@pytest.mark.parametrize(
    ("heading", "name", "changes"),
    [
        ("Informer embed=timeF", "Informer", {"embed": "timeF", "e_layers": 2, "d_layers": 1}),
        ("Informer embed=fixed", "Informer", {"embed": "fixed", "e_layers": 2, "d_layers": 1}),
        ("InformerStack embed=timeF", "InformerStack", {"embed": "timeF", "d_layers": 2}),
    ],
)
def test_the_state_dict_is_the_originals(heading: str, name: str, changes: dict[str, Any]) -> None:
    model = getattr(pt_informer, name)(7, 7, 7, 96, 48, 24, d_ff=2048, **changes)
    expected = NAMES.split(f"[{heading}]\n")[1].split("\n[")[0].splitlines()
    state = model.state_dict()
    assert [" ".join([key, *map(str, state[key].shape)]) for key in state] == expected
    checkpoint = {key: torch.full_like(value, 2) for key, value in state.items()}
    model.load_state_dict(checkpoint, strict=True)
    assert all((value == 2).all() for value in model.state_dict().values())


# The first forecast of the first sequence, and the sum of the squares of all: printed by the original's
# own code, float64, on torch 2.13.0, with the seeds that the test sets; eval mode, then train mode
ORIGINAL: list[tuple[dict[str, Any], list[list[float]]]] = [
    (
        {},
        [
            [-0.219373003700, -0.746953384795, 3.886841774095],
            [-0.735788188137, -0.576481856311, 3.275868185922],
        ],
    ),
    (
        {"attn": "full"},
        [
            [0.593790563746, -0.418197015444, 3.275627252792],
            [0.430842840489, -0.474235144728, 3.495401470756],
        ],
    ),
    (
        {"e_layers": [3, 2], "embed": "fixed", "freq": "t", "factor": 2},
        [
            [0.503201429225, 0.548800206085, 6.817688513461],
            [0.777935732909, 0.705507578903, 8.618268109830],
        ],
    ),
    (
        {
            "e_layers": 3,
            "d_layers": 2,
            "embed": "learned",
            "mix": False,
            "distil": False,
            "activation": "relu",
        },
        [
            [-0.258790594425, 0.352900713109, 5.876860269844],
            [-0.135173770684, -0.464481203266, 6.887978040011],
        ],
    ),
]


@pytest.mark.parametrize(("changes", "expected"), ORIGINAL)
def test_the_outputs_are_the_originals(changes: dict[str, Any], expected: list[Any]) -> None:
    model = pair(**changes)[0].double()
    inputs = [torch.tensor(array) for array in batch(model.arguments)]
    for training, numbers in zip((False, True), expected, strict=True):
        torch.manual_seed(1)
        output = model.train(training)(*inputs)
        actual = [*output[0, 0].tolist(), output.square().sum().item()]
        # the initial weights are float32, and may be rounded otherwise on another machine
        np.testing.assert_allclose(actual, numbers, atol=1e-4)


def test_a_mask_of_the_users_replaces_the_triangle() -> None:
    for model, tensor in zip(pair(attn="full"), (torch.tensor, paddle.to_tensor), strict=True):
        model.eval()
        inputs = [tensor(array.astype("float32")) for array in batch(model.arguments)]
        triangle = np.triu(np.ones((2, 1, 10, 10), dtype=bool), 1)
        plain = model(*inputs).detach().numpy()
        same = model(*inputs, dec_self_mask=tensor(triangle)).detach().numpy()
        other = model(*inputs, dec_self_mask=tensor(np.zeros_like(triangle))).detach().numpy()
        assert (plain == same).all() and (plain != other).any()


# --- the Paddle side is its port


@pytest.mark.parametrize(
    "changes",
    [
        {"factor": 2, "output_attention": True},
        {"attn": "full", "output_attention": True, "activation": "relu"},
        {"mix": False, "embed": "fixed"},
        {"distil": False, "embed": "learned", "freq": "t"},
        {"e_layers": [2, 1], "freq": "w", "d_layers": 2, "output_attention": True},
        {"e_layers": [1, 2], "attn": "full", "distil": False, "embed": "fixed", "freq": "t"},
    ],
)
def test_every_kind_is_faithful(changes: dict[str, Any]) -> None:
    report = aligned(*pair(**changes))
    assert report.verdict == "faithful" and not report.remarks, str(report)
    assert worst(report, "forward") < 1e-12
    assert worst(report, "backward") < 1e-10


def test_every_freq_has_its_time_features() -> None:
    for freq in ("h", "t", "s", "m", "a", "w", "d", "b"):
        torch_model, paddle_model = pair(freq=freq)
        pd_backend.load_weights(paddle_model, _converted(torch_model, paddle_model))
        arrays = [array.astype("float32") for array in batch(torch_model.arguments)]
        ours = torch_model.eval().enc_embedding(*map(torch.tensor, arrays[:2])).detach().numpy()
        paddle_model.eval()
        theirs = paddle_model.enc_embedding(*map(paddle.to_tensor, arrays[:2])).numpy()
        np.testing.assert_allclose(theirs, ours, atol=1e-5)


def _converted(torch_model: Any, paddle_model: Any) -> dict[str, Any]:
    linears = pd_backend.linear_weights(paddle_model)
    renamed = {"running_mean": "_mean", "running_var": "_variance"}
    converted = {}
    for name, array in pt_backend.weights_of(torch_model).items():
        owner, _, last = name.rpartition(".")
        if last != "num_batches_tracked":
            here = f"{owner}.{renamed.get(last, last)}"
            converted[here] = array.T if here in linears else array
    return converted


def _squared_error(output: Any) -> Any:
    return ((output - 0.5) ** 2).mean()


@pytest.mark.parametrize("attn", ["prob", "full"])
def test_ten_training_steps_are_the_same(attn: str) -> None:
    report = aligned(
        *pair(attn=attn),
        torch_loss=_squared_error,
        paddle_loss=_squared_error,
        torch_optimizer=lambda model: torch.optim.Adam(model.parameters(), lr=1e-3),
        paddle_optimizer=lambda model: paddle.optimizer.Adam(1e-3, parameters=model.parameters()),
        steps=10,
    )
    assert report.verdict == "faithful" and not report.remarks, str(report)
    assert worst(report, "forward", "loss") < 1e-12
    # The verdict judges the updates. Their figure is no bound to set here: the bias of a key has no
    # gradient, Adam steps by its rounding, and what is noted is a share of the noise measured there.
    [losses] = (check for check in report.checks if check.what == "loss of 10 training steps")
    assert losses.relative < 1e-12


def test_both_sides_start_from_the_same_distributions() -> None:
    for changes in ({"embed": "learned"}, {}):
        ours = torch_init.sample_parameters(lambda: pt_informer.Informer(**SMALL | changes))  # noqa: B023
        theirs = paddle_init.sample_parameters(lambda: pd_informer.Informer(**SMALL | changes))  # noqa: B023
        found = compare_initialisation(ours, theirs)
        assert found.passed, found.text()


def test_the_running_variance_is_pytorchs() -> None:
    values = np.random.default_rng(0).normal(size=(2, 4, 5))
    ours = torch.nn.BatchNorm1d(4).double()
    theirs = pd_informer.BatchNorm1D(4)
    theirs.to(dtype="float64")
    for _ in range(3):
        expected, actual = ours(torch.tensor(values)), theirs(paddle.to_tensor(values))
    np.testing.assert_allclose(actual.numpy(), expected.detach(), atol=1e-14)
    np.testing.assert_allclose(theirs._mean.numpy(), ours.running_mean, atol=1e-15)
    np.testing.assert_allclose(theirs._variance.numpy(), ours.running_var, atol=1e-15)


# --- a fault in the port is named


class OneSampleMore(pd_informer.ProbAttention):
    def most_active(self, query: Any, key: Any) -> Any:
        L, S = query.shape[2], key.shape[2]
        sample = paddle.randint(0, S, [L, sparse_count(self.factor, S) + 1])
        sampled = paddle.index_select(key, sample.flatten(), 2)
        sampled = sampled.reshape([*query.shape[:3], -1, query.shape[3]])
        found = (query.unsqueeze(-2) * sampled).sum(-1)
        activity = found.amax(-1) - found.sum(-1) / S
        return paddle.topk(activity, sparse_count(self.factor, L), sorted=False)[1]


class MeanForSumSoFar(pd_informer.ProbAttention):
    def initial_context(self, value: Any, L: int) -> Any:
        return value.mean(2, keepdim=True).expand([-1, -1, L, -1])


class ZerosForTheOthers(pd_informer.ProbAttention):
    def all_probabilities(self, probs: Any, top: Any) -> Any:
        return super().all_probabilities(probs, top) * 0.5


def _replaced(path: str, layer: Callable[[], Any]) -> Plant:
    def plant(model: Any) -> None:
        owner, _, last = path.rpartition(".")
        setattr(model if not owner else _at(model, owner), last, layer())

    return plant


def _turned_into(path: str, kind: type) -> Plant:
    return lambda model: setattr(_at(model, path), "__class__", kind)


def _at(model: Any, path: str) -> Any:
    return dict(model.named_sublayers())[path]


def _zeros_around() -> Any:
    return paddle.nn.Conv1D(3, 8, 3, padding=1)


ATTENTION = "encoder.attn_layers.0.attention.inner_attention"
DISTILLING = "encoder.conv_layers.0"
TOKENS = "enc_embedding.value_embedding.tokenConv"
OWN = "decoder.layers.0.self_attention"
FAULTS: dict[str, tuple[Plant, str, str]] = {
    "zeros for the ring": (_replaced(TOKENS, _zeros_around), TOKENS, "padding_mode='circular'"),
    "ELU's alpha": (
        _replaced(f"{DISTILLING}.activation", lambda: paddle.nn.ELU(0.5)),
        f"{DISTILLING}.activation",
        "set alpha=1 in Paddle",
    ),
    "the pool's padding": (
        _replaced(f"{DISTILLING}.maxPool", lambda: paddle.nn.MaxPool1D(3, 2, 0)),
        f"{DISTILLING}.maxPool",
        "set padding=(1) in Paddle",
    ),
    "the factor": (
        lambda model: setattr(_at(model, ATTENTION), "factor", 2),
        ATTENTION,
        "factor: PyTorch 1, Paddle 2",
    ),
    "mix": (lambda model: setattr(_at(model, OWN), "mix", False), OWN, "mix: PyTorch True"),
    "one sample more": (_turned_into(ATTENTION, OneSampleMore), ATTENTION, "its output"),
    "mean for sum so far": (
        _turned_into(f"{OWN}.inner_attention", MeanForSumSoFar),
        f"{OWN}.inner_attention",
        "its inputs agree and its output does not",
    ),
    "attention returned": (_turned_into(ATTENTION, ZerosForTheOthers), ATTENTION, "its output"),
    "GELU's approximation": (
        lambda model: setattr(
            _at(model, "encoder.attn_layers.0"), "activation", lambda x: F.gelu(x, True)
        ),
        "encoder.attn_layers.0",
        "approximate='tanh'",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_its_place(name: str) -> None:
    plant, place, words = FAULTS[name]
    torch_model, paddle_model = pair(output_attention=name == "attention returned")
    plant(paddle_model)
    report = aligned(torch_model, paddle_model)
    assert not report.passed
    first = report.findings[0]
    assert (first.stage, first.paddle_name) == ("forward", place)
    assert words in first.message


# --- wrong values are refused in one line


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attn": "log"}, "attn must be one of prob, full, got 'log'"),
        ({"embed": "timef"}, "embed must be one of timeF, fixed, learned, got 'timef'"),
        ({"freq": "15min"}, "freq must be one of h, t, s, m, a, w, d, b, got '15min'"),
        ({"activation": "elu"}, "activation must be one of gelu, relu, got 'elu'"),
        ({"factor": 0}, "factor must be a whole number of at least 1, got 0"),
        ({"d_model": 9}, "d_model must be even (sine and cosine), got 9"),
        ({"n_heads": 16}, "d_model must be a whole number of at least 16, got 8"),
        ({"dropout": 1.5}, "dropout must be a number from 0 to 1, got 1.5"),
        ({"out_len": 2.0}, "out_len must be a whole number of at least 1, got 2.0"),
        ({"e_layers": 0}, "e_layers must be a whole number of at least 1, got 0"),
        ({"e_layers": [2, 0]}, "each of e_layers must be a whole number of at least 1, got 0"),
        ({"e_layers": []}, "e_layers must be a list of layers, one number an encoder, got []"),
    ],
)
def test_a_bad_argument_is_refused(changes: dict[str, Any], message: str) -> None:
    for make in (lambda: pair(**changes)[0], lambda: pair(**changes)[1]):
        with pytest.raises(ValueError) as caught:
            make()
        assert str(caught.value) == message and isinstance(caught.value, ReprodError)


def test_a_batch_that_does_not_fit_is_refused() -> None:
    for model, tensor in zip(pair(freq="t"), (torch.tensor, paddle.to_tensor), strict=True):
        x_enc, mark_enc, x_dec, mark_dec = map(tensor, batch(model.arguments))
        with pytest.raises(InformerError, match=r"x_enc must be \(batch, length, 3\), got \[2, 3,"):
            model(x_enc.reshape([2, 3, 12]), mark_enc, x_dec, mark_dec)
        wanted = r"x_mark_dec must be \[2, 10, 5\] with embed='timeF', freq='t', got \[2, 10, 4\]"
        with pytest.raises(InformerError, match=wanted):
            model(x_enc, mark_enc, x_dec, mark_dec[:, :, :4])
    with pytest.raises(InformerError, match="needs 2 positions or more, got 1: use attn='full'"):
        sparse_count(5, 1)
    assert [sparse_count(5, length) for length in (2, 24, 72, 96)] == [2, 20, 25, 25]
