"""An initialiser is recognised from what it drew; facts.tsv is what both frameworks draw."""

import math
from collections.abc import Sequence

import pipeline  # noqa: F401  (quietens what follows)
from reprod_align.backends import paddle as paddle_init
from reprod_align.backends import torch as torch_init
from reprod_align.initialisation import ParameterResult, compare_initialisation
from reprod_align.initialisation.family import (
    InitFact,
    describe,
    describe_facts,
    guess_family,
    read_calls,
    read_facts,
    write_remedy,
)
from tests.conftest import REPOSITORY
from tests.initialisation import paddle_cases, torch_cases
from tests.initialisation.draws import (
    Draw,
    constant,
    normal,
    orthogonal,
    sampled,
    table,
    truncated,
    uniform,
)

import numpy as np
import pytest

KAIMING = 1 / math.sqrt(96)


@pytest.mark.parametrize(
    ("draw", "words", "code"),
    [
        (
            uniform(KAIMING, 160, 96),
            "uniform on +-0.102 (Kaiming a=sqrt(5)",
            "Uniform(-0.102062, 0.102062)",
        ),
        (normal(0.02, 160, 96), "normal, std 0.02", "Normal(0, 0.02)"),
        (normal(0.02, 160, 96, mean=1.0), "normal, std 0.02 around 1", "Normal(1, 0.02)"),
        (
            truncated(0.02, 160, 96),
            "truncated normal, std 0.02, cut at 2 std",
            "TruncatedNormal(0, 0.02, -0.04, 0.04)",
        ),
        (orthogonal(96, 96), "orthogonal, gain 1", "Orthogonal(1)"),
        (lambda draw: draw.uniform(1, 3, (160, 96)), "uniform from 1 to 3", "Uniform(1, 3)"),
        (lambda draw: draw.exponential(1.0, (160, 96)), "of an unknown family", ""),
    ],
)
def test_the_family(draw: Draw, words: str, code: str) -> None:
    sample = sampled(1, w=draw)["w"]
    assert describe(sample).startswith(words)
    assert guess_family(sample).paddle.endswith(code) and bool(guess_family(sample).paddle) == bool(
        code
    )


def test_a_bias_is_drawn_by_its_weights_fan_in() -> None:
    side = sampled(1, weight=uniform(KAIMING, 160, 96), bias=uniform(KAIMING, 160))
    assert "1/sqrt(fan_in) of its weight" in describe(side["bias"], side["weight"])
    assert "of its weight" not in describe(side["bias"])


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (constant(0.0, 9), "bias_attr=paddle.ParamAttr(initializer=nn.initializer.Constant(0))"),
        (table(0, 100, 96), "then zeros in row 0"),
        (lambda draw: np.arange(9.0), "convert PyTorch's initial weights"),
        (lambda draw: draw.exponential(1.0, (90, 9)), "convert PyTorch's initial weights"),
    ],
)
def test_the_remedy(draw: Draw, words: str) -> None:
    assert words in write_remedy("layer.bias", sampled(1, w=draw)["w"])


QUICK = [
    "Linear by default",
    "Conv2d groups=4 by default",
    "Embedding padding_idx=3 by default",
    "LSTM by default",
    "TransformerEncoder by default",
    "kaiming_normal_ on Linear",
    "kaiming_normal_ on Embedding",
    "kaiming_uniform_ a on Conv2d",
    "uniform_ on Linear",
    "orthogonal_ on ConvTranspose2d",
    "dirac_ on Conv2d",
]
OURS, THEIRS = torch_cases.cases(), paddle_cases.cases()
FACTS = read_facts()
ALPHA = 1e-5  # of a case, since there are more than a hundred
SHOWN = 3  # names of parameters that start alike; the others are counted


def measure(case: str) -> list[InitFact]:
    """Draw from both sides; a case is a Sequential of one layer, so names begin "0."."""
    ours = torch_init.sample_parameters(OURS[case])
    theirs = paddle_init.sample_parameters(THEIRS[case])
    crossed = {name: name.replace("multihead_attn", "cross_attn") for name in ours}
    name_map = {name: other for name, other in crossed.items() if name != other}
    alike: dict[tuple[str, ...], list[ParameterResult]] = {}
    for result in compare_initialisation(ours, theirs, ALPHA, name_map).results:
        alike.setdefault((*result.words, result.remedy, copied(result)), []).append(result)
    return [as_fact(case, results) for results in alike.values()]


def copied(result: ParameterResult) -> str:
    """Return the side on which the parameter starts as a copy of another; "" for neither."""
    problems = [text for text in result.problems if text.startswith("starts as a copy")]
    return problems[0].rpartition(" in ")[2].removesuffix(" alone") if problems else ""


def as_fact(case: str, results: Sequence[ParameterResult]) -> InitFact:
    first, side = results[0], copied(results[0])
    names = [result.paddle_name.partition(".")[2] for result in results]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    torch, paddle = first.words
    also = "; a copy of the first layer's"
    return InitFact(
        case,
        ", ".join(names[:SHOWN]) + more,
        torch + also * (side == "PyTorch"),
        paddle + also * (side == "Paddle"),
        first.remedy,
    )


def initialiser_table(headings: Sequence[str]) -> str:
    """Return the initialisers as Markdown: both calls, layers where they agree and differ."""
    rows = []
    for name, calls in read_calls().items():
        on = {f.case.partition(" on ")[2]: f for f in FACTS if f.case.partition(" on ")[0] == name}
        same = ", ".join(layer for layer, fact in on.items() if fact.same)
        other = "; ".join(f"{at}: {f.torch} / {f.paddle}" for at, f in on.items() if not f.same)
        rows.append((*(f"`{call}`" for call in calls), same, other))
    return markdown(headings, rows)


def default_table(headings: Sequence[str]) -> str:
    """Return the layers' own initialisation as Markdown."""
    own = [(fact.case.removesuffix(" by default"), fact) for fact in FACTS]
    rows = [
        (layer, fact.parameters, fact.torch, fact.paddle, "=" if fact.same else "≠")
        for layer, fact in own
        if layer != fact.case
    ]
    return markdown(headings, rows)


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def test_both_sides_have_the_same_cases() -> None:
    assert list(OURS) == list(THEIRS) == list(dict.fromkeys(fact.case for fact in FACTS))


@pytest.mark.parametrize("case", QUICK)
def test_the_facts_are_what_is_drawn(case: str) -> None:
    assert measure(case) == [fact for fact in FACTS if fact.case == case]


@pytest.mark.longer
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")  # of torch's own
@pytest.mark.parametrize("case", [case for case in OURS if case not in QUICK])
def test_all_the_facts_are_what_is_drawn(case: str) -> None:
    assert measure(case) == [fact for fact in FACTS if fact.case == case]


def test_initialisers_differ_where_the_docs_say() -> None:
    differing = {fact.case for fact in FACTS if " on " in fact.case and not fact.same}
    expected = {case for case in OURS if case.startswith("kaiming_") and case.endswith("Embedding")}
    expected |= {case for case in OURS if case.startswith(("kaiming_uniform_ a on", "uniform_ on"))}
    assert differing == expected


HEADINGS = {
    "initialisation.md": (
        ("PyTorch", "Paddle", "equal on", "different on: PyTorch / Paddle"),
        ("layer", "parameters", "PyTorch", "Paddle", ""),
    ),
    "initialisation_cn.md": (
        ("PyTorch", "Paddle", "分布相同", "分布不同：PyTorch / Paddle"),
        ("层", "参数", "PyTorch", "Paddle", ""),
    ),
}


@pytest.mark.parametrize("name", HEADINGS)
def test_the_docs_show_the_facts(name: str) -> None:
    text = (REPOSITORY / "docs" / name).read_text()
    initialisers, defaults = HEADINGS[name]
    assert initialiser_table(initialisers) in text
    assert default_table(defaults) in text


def test_the_text_shows_calls_differences_and_remedies() -> None:
    facts = [fact for fact in FACTS if fact.case == "uniform_ on Linear"]
    assert describe_facts(facts).splitlines() == [
        "uniform_ on Linear  [uniform_(w)]  [Uniform()]",
        f"  DIFFERENT  weight: PyTorch {facts[0].torch}; Paddle {facts[0].paddle}",
        f"             set {facts[0].remedy}",
    ]
