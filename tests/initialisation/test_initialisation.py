"""Initialisation compared as distributions: planted faults, false alarms, and what was measured."""

import json
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pipeline  # noqa: F401  (quietens what follows)
from models import pd_bert, pt_bert
from models.bert_config import BertConfig
from reprod_align.backends import paddle as paddle_init
from reprod_align.backends import torch as torch_init
from reprod_align.errors import ReprodError
from reprod_align.initialisation import (
    InitialisationReport,
    ParameterResult,
    adjust_by_holm,
    check_initialisation,
    compare_initialisation,
    compare_spreads,
    compute_p_values,
)
from reprod_align.initialisation.family import describe_facts, read_facts
from reprod_align.initialisation.sample import Collector, Moments, ParameterSample
from tests.conftest import one_line_error, run_script
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
import paddle
import pytest
import torch

FAITHFUL: dict[str, Draw] = {
    "words.weight": table(0, 1000, 96),
    "dense.weight": normal(0.02, 768, 768),
    "dense.bias": constant(0.0, 768),
    "wide.weight": uniform(1 / math.sqrt(96), 160, 96),
    "wide.bias": uniform(1 / math.sqrt(96), 160),
    "norm.weight": constant(1.0, 96),
    "cut.weight": truncated(0.02, 160, 96),
    "other.weight": normal(1 / math.sqrt(96), 96, 96),
}
KAIMING, XAVIER = 1 / math.sqrt(96), math.sqrt(6 / (160 + 96))

# What is planted in Paddle, what must be said of it, and what to set
FAULTS: dict[str, tuple[str, Draw, str, str]] = {
    "std 0.021": ("dense.weight", normal(0.021, 768, 768), "spread differs", "Normal(0, 0.02)"),
    "mean 0.001": ("dense.weight", normal(0.02, 768, 768, mean=1e-3), "mean differs", "Normal(0,"),
    "Xavier": ("wide.weight", uniform(XAVIER, 160, 96), "support differs", "Uniform(-0.102062"),
    "swapped fan": (
        "wide.weight",
        uniform(1 / math.sqrt(160), 160, 96),
        "support differs",
        "Uniform(-0.102062, 0.102062)",
    ),
    "normal, same std": (
        "wide.weight",
        normal(KAIMING / math.sqrt(3), 160, 96),
        "distribution differs",
        "Uniform(-0.102062, 0.102062)",
    ),
    "not cut": (
        "cut.weight",
        normal(0.02 * 0.8796, 160, 96),
        "support differs",
        "TruncatedNormal(0, 0.02, -0.04, 0.04)",
    ),
    "no padding row": (
        "words.weight",
        table(None, 1000, 96),
        "96 of 96000 elements are fixed in PyTorch, 0 in Paddle",
        "Normal(0, 0.02)), then zeros in row 0",
    ),
    "another padding row": ("words.weight", table(1, 1000, 96), "elsewhere", "zeros in row 0"),
    "bias random": ("dense.bias", uniform(0.036, 768), "768 of 768", "bias_attr"),
    "bias 0.01": ("dense.bias", constant(0.01, 768), "fixed elements differ", "Constant(0)"),
    "bias zero": ("wide.bias", constant(0.0, 160), "0 of 160", "Uniform(-0.102062, 0.102062)"),
    "norm zero": ("norm.weight", constant(0.0, 96), "fixed elements differ", "Constant(1)"),
    "orthogonal": ("other.weight", orthogonal(96, 96), "orthogonal in Paddle alone", "Normal(0"),
}


def judged(**changed: Draw) -> InitialisationReport:
    return compare_initialisation(sampled(1, **FAITHFUL), sampled(2, **FAITHFUL | changed))


def test_a_faithful_pair() -> None:
    report = judged()
    assert report.passed
    assert "no difference seen in 6 random parameters" in report.headline
    assert "DIFFERENT" not in report.text()


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found_where_they_are(fault: str) -> None:
    name, draw, said, remedy = FAULTS[fault]
    report = judged(**{name: draw})
    (failing,) = (result for result in report.results if not result.passed)
    assert failing.paddle_name == name
    assert said in "; ".join(failing.problems)
    assert remedy in failing.remedy
    assert report.headline.startswith("initialisation: DIFFERENT: 1 of 8 parameters")
    assert json.loads(json.dumps(report.to_json()))["passed"] is False


def test_both_sides_are_named_in_words() -> None:
    (result,) = (
        r for r in judged(**{"wide.weight": uniform(XAVIER, 160, 96)}).results if r.problems
    )
    assert result.words == (
        "uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in))",
        "uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out)))",
    )


def test_a_copy_of_another_layer() -> None:
    def copied(*names: str) -> dict[str, ParameterSample]:
        collected = Collector(range(8))
        for seed in range(8):
            draw = np.random.default_rng([len(names), seed])
            first = draw.normal(size=(40, 30)).astype(np.float32)
            for name in ("a.weight", "b.weight"):
                drawn = draw.normal(size=(40, 30)).astype(np.float32)
                collected.add(name, first if name in names else drawn, first.shape)
        return collected.samples()

    report = compare_initialisation(copied("a.weight", "b.weight"), copied("a.weight"))
    assert [result.passed for result in report.results] == [True, False]
    assert "starts as a copy of a.weight in PyTorch alone" in report.text()
    assert compare_initialisation(
        copied("a.weight", "b.weight"), copied("a.weight", "b.weight")
    ).passed


def test_false_alarms_are_as_rare_as_stated() -> None:
    """At 5 %, since 0.1 % would take thousands of models; Holm's rule is conservative."""
    draws = {"a": normal(0.02, 2, 32), "b": uniform(0.1, 40), "c": truncated(0.02, 8, 16)}
    draws |= {"d": orthogonal(24, 16), "e": normal(0.02, 3), "f": uniform(0.1, 32, 16)}
    rounds = 120
    reports = [
        compare_initialisation(sampled(2 * r, **draws), sampled(2 * r + 1, **draws), alpha=0.05)
        for r in range(rounds)
    ]
    alarms = sum(not report.passed for report in reports)
    assert 1 <= alarms <= rounds * 0.05 + 3 * math.sqrt(rounds * 0.05)


def test_what_would_have_been_seen_is_seen() -> None:
    """The stated difference of the standard deviations is found in about 95 % of cases."""
    found, rounds = 0, 60
    for r in range(rounds):
        ours = sampled(2 * r, w=normal(0.02, 20, 30))
        (faithful,) = compare_initialisation(ours, sampled(1, w=normal(0.02, 20, 30))).results
        theirs = sampled(2 * r + 1, w=normal(0.02 * (1 + faithful.seen), 20, 30))
        found += not compare_initialisation(ours, theirs).passed
    assert found >= 0.85 * rounds


CONFIG = BertConfig(
    vocab_size=500,
    hidden_size=96,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=160,
)


@pytest.fixture(scope="module")
def torch_bert() -> dict[str, ParameterSample]:
    return torch_init.sample_parameters(partial(pt_bert.BertForSequenceClassification, CONFIG))


def paddle_bert(config: BertConfig = CONFIG) -> dict[str, ParameterSample]:
    return paddle_init.sample_parameters(partial(pd_bert.BertForSequenceClassification, config))


def test_the_bert_twins(torch_bert: dict[str, ParameterSample]) -> None:
    report = compare_initialisation(torch_bert, paddle_bert())
    assert report.passed, report.text()
    shapes = {r.torch_name: (r.torch_shape, r.paddle_shape) for r in report.results}
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    assert shapes[name] == ((160, 96), (96, 160))


def test_paddles_own_initialisation(
    torch_bert: dict[str, ParameterSample], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port that forgot `_init_weights`: every Linear and Embedding is found, no norm is."""
    monkeypatch.setattr(pd_bert.BertPreTrainedModel, "_init_weights", lambda self, module: None)
    report = compare_initialisation(torch_bert, paddle_bert())
    failing = {result.paddle_name: result for result in report.results if not result.passed}
    weights = {n for n in torch_bert if n.endswith("weight") and "LayerNorm" not in n}
    assert set(failing) == weights
    intermediate = failing["bert.encoder.layer.0.intermediate.dense.weight"]
    assert intermediate.words == (
        "normal, std 0.02",
        "uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out)))",
    )
    assert "Normal(0, 0.02)" in intermediate.remedy


def test_a_wrong_std_in_paddle(torch_bert: dict[str, ParameterSample]) -> None:
    changed = BertConfig(**vars(CONFIG) | {"initializer_range": 0.021})
    report = compare_initialisation(torch_bert, paddle_bert(changed))
    missed = [r for r in report.results if r.passed and r.p_values]
    assert not report.passed
    assert all(result.seen > 0.05 for result in missed), "what is missed is said to be too small"


def set_up(remedy: str) -> dict[str, paddle.ParamAttr]:
    names = {"paddle": paddle, "nn": paddle.nn}
    return eval(f"dict({remedy})", names)  # what a user would paste


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: torch.nn.Linear(96, 160), partial(paddle.nn.Linear, 96, 160)),
        (lambda: torch.nn.Conv2d(24, 40, 3), partial(paddle.nn.Conv2D, 24, 40, 3)),
        (
            lambda: torch.nn.ConvTranspose1d(24, 40, 3),
            partial(paddle.nn.Conv1DTranspose, 24, 40, 3),
        ),
        (lambda: torch.nn.Embedding(120, 72), partial(paddle.nn.Embedding, 120, 72)),
    ],
)
def test_the_remedy_remedies(
    ours: Callable[[], torch.nn.Module], theirs: Callable[..., object]
) -> None:
    reference = torch_init.sample_parameters(lambda: torch.nn.Sequential(ours()))

    def report(**options: object) -> InitialisationReport:
        built = paddle_init.sample_parameters(lambda: paddle.nn.Sequential(theirs(**options)))
        return compare_initialisation(reference, built)

    before = report()
    assert not before.passed
    remedies = [set_up(result.remedy) for result in before.results if result.problems]
    assert report(**{name: attr for chosen in remedies for name, attr in chosen.items()}).passed


@pytest.mark.parametrize(("backend", "layer"), [(torch_init, torch.nn), (paddle_init, paddle.nn)])
def test_the_generators_are_left_as_they_were(backend, layer) -> None:
    random = torch.rand if backend is torch_init else paddle.rand

    def following() -> list[float]:
        torch.manual_seed(3)
        paddle.seed(3)
        np.random.seed(3)
        if interrupted:
            backend.sample_parameters(lambda: layer.Sequential(layer.Linear(3, 4)))
        return [random([1]).item(), float(np.random.rand())]

    interrupted = False
    expected = following()
    interrupted = True
    assert following() == expected


@pytest.mark.parametrize(("backend", "layer"), [(torch_init, torch.nn), (paddle_init, paddle.nn)])
def test_a_norms_statistics_are_no_parameters(backend, layer) -> None:
    norm = layer.BatchNorm1d if backend is torch_init else layer.BatchNorm1D
    assert list(backend.sample_parameters(lambda: norm(4))) == ["weight", "bias"]


@pytest.mark.parametrize(("backend", "layer"), [(torch_init, torch.nn), (paddle_init, paddle.nn)])
def test_models_that_draw_with_numpy(backend, layer) -> None:
    tensor = torch.tensor if backend is torch_init else paddle.to_tensor

    def build() -> object:
        model = layer.Sequential(layer.Linear(30, 40))
        array = np.random.normal(size=model[0].weight.shape).astype(np.float32)
        if backend is torch_init:
            model[0].weight.data = tensor(array)
        else:
            model[0].weight.set_value(tensor(array))
        return model

    assert backend.sample_parameters(build)["0.weight"].is_random


def test_seeds_without_effect() -> None:
    fixed = sampled(1, w=lambda draw: np.random.default_rng(0).normal(size=(20, 30)))
    with pytest.raises(ReprodError, match="every seed gives the same Paddle model"):
        compare_initialisation(sampled(1, w=normal(1.0, 20, 30)), fixed)


def test_what_cannot_be_compared() -> None:
    ours = sampled(1, a=normal(1.0, 4, 3), b=normal(1.0, 4))
    with pytest.raises(ReprodError, match="Paddle lacks b, PyTorch lacks c"):
        compare_initialisation(ours, sampled(2, a=normal(1.0, 4, 3), c=normal(1.0, 4)))
    with pytest.raises(ReprodError, match=r"a is \(4, 3\) in PyTorch, \(3, 4\) in Paddle"):
        compare_initialisation(ours, sampled(2, a=normal(1.0, 3, 4), b=normal(1.0, 4)))
    with pytest.raises(ReprodError, match="alpha must lie between 0 and 1"):
        compare_initialisation(ours, ours, alpha=0.0)
    with pytest.raises(ReprodError, match="3 different seeds"):
        Collector([1, 1, 1])
    with pytest.raises(ReprodError, match="starts with NaN or infinity"):
        sampled(1, a=constant(math.nan, 3))
    with pytest.raises(ReprodError, match="no parameters"):
        sampled(1)
    renamed = sampled(2, a=normal(1.0, 4, 3), c=normal(1.0, 4))
    assert compare_initialisation(ours, renamed, name_map={"b": "c"}).passed


def test_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = sampled(1, w=normal(0.02, 40, 30))
    log = tmp_path / "init_diff.log"
    assert check_initialisation(ours, sampled(2, w=normal(0.02, 40, 30)), log) == 0
    assert log.read_text().endswith("reprod_align: passed\n")
    assert check_initialisation(ours, sampled(2, w=normal(0.03, 40, 30)), log) == 1
    assert "reprod_align: FAILED: initialisation: DIFFERENT" in log.read_text()
    assert json.loads(log.with_suffix(".json").read_text())["passed"] is False
    assert "spread differs" in capsys.readouterr().out


NO_PAD_ROW = (
    "import paddle; from models import pd_bert; kept = pd_bert.BertPreTrainedModel._init_weights\n"
    "def faulty(self, module):\n"
    "    if isinstance(module, paddle.nn.Embedding): module.padding_idx = None\n"
    "    kept(self, module)\n"
    "pd_bert.BertPreTrainedModel._init_weights = faulty"
)


def test_the_scripts(tmp_path: Path) -> None:
    check, ours, theirs = (f"pipeline/Step5/{name}_init.py" for name in ("check", "pt", "pd"))
    assert "first run python weights/torch_bert_weight.py" in one_line_error(
        run_script(ours, tmp_path)
    )
    assert run_script("weights/torch_bert_weight.py", tmp_path).returncode == 0
    for script in (ours, theirs):
        finished = run_script(script, tmp_path)
        assert finished.returncode == 0 and finished.stderr == "", finished.stderr
    finished = run_script(check, tmp_path)
    assert finished.returncode == 0, finished.stdout
    assert run_script(theirs, tmp_path, fault=NO_PAD_ROW).returncode == 0
    finished = run_script(check, tmp_path)
    assert finished.returncode == 1 and "then zeros in row 0" in finished.stdout
    record = tmp_path / "log_reprod" / "strict" / "init_torch.npy"
    os.utime(record, (0, 0))
    assert "is older than" in one_line_error(run_script(check, tmp_path))
    record.unlink()
    assert "first run python pipeline/Step5/pt_init.py" in one_line_error(
        run_script(check, tmp_path)
    )
    finished = run_script(check, tmp_path, "--table")
    assert finished.returncode == 0 and finished.stdout.strip() == describe_facts(read_facts())


ZEROS = Moments(0, 0.0, 0.0, 0.0)
CONSTANT = ParameterResult(
    "b", "b", (4,), (4,), ZEROS, ZEROS, {}, None, 0.0, (), ("zeros", "zeros"), ""
)
DRAWN = ParameterResult(
    torch_name="w",
    paddle_name="w",
    torch_shape=(4, 3),
    paddle_shape=(3, 4),
    torch=Moments(96, 0.0, 0.02, 3.0),
    paddle=Moments(96, 0.0, 0.04, 3.0),
    p_values={"mean": 0.5, "spread": 1e-9},
    std_ratio=(2.0, 1.5, 2.5),
    seen=0.25,
    problems=("spread differs, p 1.0e-09",),
    words=("normal, std 0.02", "normal, std 0.04"),
    remedy="weight_attr=...",
)


def test_a_difference_is_shown_with_its_remedy() -> None:
    report = InitialisationReport((CONSTANT, DRAWN), 1e-3)
    lines = report.text().splitlines()
    assert lines[1].split() == ["b", "4", "4", "zeros", "zeros", "ok"]
    assert lines[2].split()[-3:] == ["1e-09", "25%", "DIFFERENT"] and lines[2].split()[1:3] == [
        "4x3",
        "3x4",
    ]
    assert lines[4:8] == [
        "  w: spread differs, p 1.0e-09",
        "    normal, std 0.04 in Paddle, normal, std 0.02 in PyTorch",
        "    std in Paddle 2 times PyTorch's, between 1.5 and 2.5",
        "    set weight_attr=...",
    ]
    assert lines[-1] == "initialisation: DIFFERENT: 1 of 2 parameters (family-wise level 0.001)"
    found = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert not found["passed"] and [each["passed"] for each in found["parameters"]] == [True, False]


def test_constants_alone() -> None:
    headline = InitialisationReport((CONSTANT,), 1e-3).headline
    assert headline == "initialisation: all 1 parameters are constant and equal"


def p_values(ours: Draw, theirs: Draw) -> dict[str, float]:
    return compute_p_values(sampled(1, w=ours)["w"], sampled(2, w=theirs)["w"])


def test_holm_by_hand() -> None:
    raw = {("a", "x"): 0.01, ("a", "y"): 0.03, ("b", "x"): 0.02, ("b", "y"): 0.9}
    found = adjust_by_holm(raw)
    assert found == pytest.approx(
        {("a", "x"): 0.04, ("b", "x"): 0.06, ("a", "y"): 0.06, ("b", "y"): 0.9}
    )


@pytest.mark.parametrize(
    ("theirs", "test"),
    [
        (normal(0.02, 40, 50, mean=0.002), "mean"),
        (normal(0.023, 40, 50), "spread"),
        (uniform(0.02 * math.sqrt(3), 40, 50), "distribution"),
        (truncated(0.02, 40, 50), "support"),
    ],
)
def test_each_test_sees_its_fault(theirs: Draw, test: str) -> None:
    ours = normal(0.02, 40, 50)
    assert min(p_values(ours, normal(0.02, 40, 50)).values()) > 1e-3
    assert p_values(ours, theirs)[test] < 1e-6


def test_constants_are_not_tested() -> None:
    assert p_values(constant(1.0, 9), normal(1.0, 9)) == {}


def test_values_beyond_the_others_by_hand() -> None:
    """Of 4 and 4 values in random order, the 4 of one side come last in 1 of 70 cases."""
    ours, theirs = Moments(4, 0.0, 1.0, 3.0), Moments(4, 0.0, 1.0, 3.0)
    sample = sampled(1, 4, w=lambda draw: draw.uniform(0, 1, 1))["w"]
    other = sampled(2, 4, w=lambda draw: draw.uniform(2, 3, 1))["w"]
    assert compute_p_values(sample, other)["support"] == pytest.approx(4 / 70)
    assert compare_spreads(ours, theirs, 0.05)[0] is not None


def test_the_ratio_has_its_interval() -> None:
    ratio, seen = compare_spreads(Moments(1001, 0, 1.0, 3.0), Moments(1001, 0, 1.1, 3.0), 0.05)
    assert ratio is not None
    estimate, low, high = ratio
    assert estimate == pytest.approx(1.1) and low * high == pytest.approx(1.1**2)
    error = math.sqrt(2 / (2 * 1000))
    assert math.log(high / estimate) == pytest.approx(1.959964 * error, rel=1e-6)
    assert seen == pytest.approx(math.expm1((1.959964 + 1.644854) * error), rel=1e-6)
    assert compare_spreads(Moments(9, 0, 0.0, 0.0), Moments(9, 0, 1.0, 3.0), 0.05)[0] is None
