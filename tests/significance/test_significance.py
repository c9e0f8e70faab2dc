"""Statistics of runs that differ by chance: planted differences, false alarms, and claims kept small."""

import json
import math

from reprod_align.errors import ReprodError
from reprod_align.significance import (
    EXIT_CODES,
    NativeReport,
    compare_predictions,
    compare_runs,
    compare_seeds,
)

import numpy as np
import pytest

EXAMPLES = 872  # SST-2's dev set


class Task:
    """Examples of various difficulty; a run gets one right if its own noise lets it."""

    def __init__(self, stream: int, examples: int = EXAMPLES) -> None:
        self.draw = np.random.default_rng(stream)
        self.labels = self.draw.integers(0, 2, examples)
        self.ease = self.draw.normal(2.0, 1.6, examples)

    def runs(self, seeds: int, ease: float = 0.0, noise: float = 0.35) -> np.ndarray:
        """Predictions (seeds, examples); `ease` shifts all of them, to plant a better or worse side."""
        drawn = self.draw.normal(ease, noise, (seeds, len(self.labels)))
        return np.where(self.ease + drawn > 0, self.labels, 1 - self.labels)


def with_wrong(labels: np.ndarray, predicted: np.ndarray, count: int) -> np.ndarray:
    """The predictions, `count` of the right ones made wrong."""
    changed = predicted.copy()
    right = np.flatnonzero(predicted == labels)[:count]
    changed[right] = 1 - changed[right]
    return changed


def test_mcnemar_by_hand() -> None:
    """8 against 1: 2 * (C(9,0) + C(9,1)) / 2**9."""
    labels = np.zeros(20, int)
    ours, theirs = labels.copy(), labels.copy()
    ours[:1], theirs[1:9], ours[15:], theirs[15:] = 1, 1, 1, 1
    found = compare_predictions(labels, ours, theirs)
    assert (found.only_torch, found.only_paddle, found.both_right, found.both_wrong) == (8, 1, 6, 5)
    assert found.p == pytest.approx(2 * (1 + 9) / 2**9)
    assert found.accuracies == (0.7, 0.35)
    assert found.difference == pytest.approx(-0.35)
    assert found.interval.low < -0.35 < found.interval.high < 0
    assert found.words.startswith("different: 8 right in PyTorch alone, 1 in Paddle alone")


def test_a_model_one_percent_worse_on_872_sentences() -> None:
    """Seen in a single run where all else is equal: 9 sentences, and none the other way."""
    task = Task(0)
    (ours,) = task.runs(1)
    found = compare_predictions(task.labels, ours, with_wrong(task.labels, ours, 9))
    assert found.difference == pytest.approx(-9 / EXAMPLES)
    assert found.p == pytest.approx(2 * 0.5**9)
    report = compare_runs(task.labels, ours, with_wrong(task.labels, ours, 9))
    assert report.verdict == "different" and EXIT_CODES[report.verdict] == 1


def test_one_percent_drowns_in_the_noise_of_few_seeds_and_is_seen_with_many() -> None:
    few = compare_seeds([0.918, 0.925, 0.921], [0.908, 0.917, 0.912])
    assert few.p is not None and few.p > 0.05
    assert few.detectable is not None and few.detectable > 0.01, "and it is said"
    task = Task(1)
    report = compare_runs(task.labels, task.runs(20), task.runs(20, -0.12))
    assert report.seeds.difference == pytest.approx(-0.012, abs=0.005)
    assert report.verdict == "different"
    assert report.text().endswith("different, 20 and 20 seeds: a difference was seen")


def test_errors_of_another_kind_at_equal_accuracy() -> None:
    """As often right, but on other examples: Welch's test can't see it, the permutation test does."""
    task, other = Task(2), Task(3)
    theirs = np.where(other.runs(5) == other.labels, task.labels, 1 - task.labels)
    report = compare_runs(task.labels, task.runs(5), theirs)
    assert report.exchange is not None and report.exchange.p == report.exchange.smallest_p
    assert report.exchange.between > 2 * report.exchange.within
    assert report.verdict == "different"


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_few_runs_never_count_as_equal(seeds: int) -> None:
    task = Task(4)
    ours = task.runs(seeds)
    for theirs in (task.runs(seeds), ours):
        report = compare_runs(task.labels, ours, theirs)
        assert report.verdict == "undecided" and EXIT_CODES[report.verdict] == 2
        assert "compatible" in report.words and "equal" not in report.words


def test_equivalence_needs_a_small_spread_or_many_seeds() -> None:
    near = np.linspace(-2e-4, 2e-4, 5)
    shown = compare_seeds(0.92 + near, 0.9201 + near)
    assert [margin.equivalent for margin in shown.margins] == [True, True]
    wide = compare_seeds(0.92 + 20 * near, 0.9201 + 20 * near)
    assert [margin.equivalent for margin in wide.margins] == [False, False]
    assert [margin.official for margin in wide.margins] == [True, True]
    needed = [margin.seeds_needed for margin in wide.margins]
    assert needed[0] > needed[1] > 5
    refused = wide.margins[0].official_refuses_faithful
    assert refused is not None and 0.5 < refused < 0.9


def test_a_difference_inside_the_margin_is_named() -> None:
    labels = np.zeros(20_000, int)
    ours, theirs = (
        [(np.arange(20_000) < wrong + 2 * seed).astype(int) for seed in range(6)]
        for wrong in (1600, 1640)
    )
    report = compare_runs(labels, ours, theirs)
    assert report.different and report.within == 0.0025
    assert report.words.endswith("a difference was seen, by less than 0.25% on average")


def test_without_spread_nothing_is_claimed() -> None:
    same = compare_seeds([0.92, 0.92, 0.92], [0.92, 0.92, 0.92])
    assert same.p is None and same.interval is None
    assert not any(margin.equivalent for margin in same.margins)
    task = Task(6)
    (run,) = task.runs(1)
    report = compare_runs(task.labels, [run] * 3, [run] * 3)
    assert report.verdict == "undecided" and "the seeds show no spread" in report.words


def rate(found: list[bool]) -> float:
    return sum(found) / len(found)


def test_false_alarms_are_as_rare_as_stated() -> None:
    """Both sides alike: the verdict is "different" in at most 5 % of cases, for one seed and for five."""
    for seeds, rounds in ((1, 300), (5, 100)):
        tasks = [Task(1000 + r) for r in range(rounds)]
        reports = [compare_runs(t.labels, t.runs(seeds), t.runs(seeds)) for t in tasks]
        alarms = rate([report.different for report in reports])
        assert 0 < alarms <= 0.05 + 3 * math.sqrt(0.05 / rounds), seeds
        assert not any(report.verdict == "equivalent" for report in reports)


def test_equivalence_is_rarely_shown_where_there_is_none() -> None:
    """The true difference lies at the margin: shown in at most 5 %, though often if there is none."""
    draw = np.random.default_rng(7)
    shown = {
        true: [
            compare_seeds(draw.normal(0.92, 0.001, 8), draw.normal(0.92 + true, 0.001, 8))
            .margins[0]
            .equivalent
            for _ in range(600)
        ]
        for true in (0.0, 0.0015)
    }
    assert 0.01 < rate(shown[0.0015]) < 0.05 + 3 * math.sqrt(0.05 / 600)
    assert rate(shown[0.0]) > 0.7


def test_the_power_statements_hold() -> None:
    """What is called detectable is found in about 80 % of cases: over seeds, and in one pair."""
    draw = np.random.default_rng(8)
    error = 0.004 * math.sqrt(2 / 6)
    true = error * 3.12  # t_0.975 + t_0.8 with 10 degrees of freedom
    results = [
        compare_seeds(draw.normal(0.92, 0.004, 6), draw.normal(0.92 + true, 0.004, 6))
        for _ in range(600)
    ]
    assert 0.74 < rate([result.p is not None and result.p <= 0.05 for result in results]) < 0.86
    assert np.mean([result.detectable for result in results]) == pytest.approx(true, rel=0.05)
    labels = np.zeros(EXAMPLES, int)
    pair = compare_predictions(labels, draw.random(EXAMPLES) < 0.03, draw.random(EXAMPLES) < 0.03)
    share = 0.5 + pair.detectable * EXAMPLES / pair.discordant / 2
    first = draw.binomial(pair.discordant, share, 600)
    found = [compare_counts(int(one), pair.discordant - int(one)) <= 0.05 for one in first]
    assert 0.68 < rate(found) < 0.88


def compare_counts(first: int, second: int) -> float:
    """McNemar's p for examples that the first alone, or the second alone, gets right."""
    labels = np.zeros(first + second + 1, int)
    ours, theirs = labels.copy(), labels.copy()
    theirs[:first], ours[first : first + second] = 1, 1
    return compare_predictions(labels, ours, theirs).p


def test_the_intervals_cover() -> None:
    draw = np.random.default_rng(9)
    covered = []
    for _ in range(400):
        labels = np.zeros(EXAMPLES, int)
        hard = draw.random(EXAMPLES) < 0.05
        ours = (hard & (draw.random(EXAMPLES) < 0.3)).astype(int)
        theirs = (hard & (draw.random(EXAMPLES) < 0.5)).astype(int)
        interval = compare_predictions(labels, ours, theirs).interval
        covered.append(interval.low <= -0.05 * 0.2 <= interval.high)
    assert 0.92 < rate(covered) < 0.99


def test_identical_predictions_still_have_an_interval() -> None:
    task = Task(10)
    (run,) = task.runs(1)
    pair = compare_predictions(task.labels, run, run)
    assert pair.p == 1.0 and pair.disagreeing == 0 and not pair.can_tell
    assert pair.interval.low < -0.002 and pair.interval.high > 0.002
    assert pair.words.startswith("both sides get the same examples right; anything from -0.32%")


def test_too_few_discordant_examples_are_said_to_be() -> None:
    task = Task(11)
    (run,) = task.runs(1)
    pair = compare_predictions(task.labels, run, with_wrong(task.labels, run, 5))
    assert pair.p > 0.05 and pair.words.startswith("too few to tell: 5 right in PyTorch alone")


def test_more_splits_than_can_be_counted_are_sampled() -> None:
    task = Task(12)
    report = compare_runs(task.labels, task.runs(9), task.runs(9, -1.0))
    assert report.exchange is not None and report.exchange.p < 0.01
    assert report.verdict == "different"


def test_unequal_numbers_of_runs() -> None:
    task = Task(13)
    report = compare_runs(task.labels, task.runs(2), task.runs(4))
    assert len(report.pairs) == 2 and len(report.seeds.paddle.accuracies) == 4
    assert report.exchange is not None and report.exchange.smallest_p == pytest.approx(1 / 15)


def test_classes_of_which_both_are_wrong() -> None:
    pair = compare_predictions([0, 1, 2], [1, 1, 2], [2, 1, 2])
    assert (pair.both_wrong, pair.disagreeing, pair.discordant) == (1, 1, 0)


def test_json_and_text() -> None:
    task = Task(14)
    report: NativeReport = compare_runs(task.labels, task.runs(3), task.runs(3))
    content = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert content["verdict"] == "undecided" and len(content["pairs"]) == 3
    text = report.text()
    for words in (
        "McNemar p",
        "Welch p",
        "TOST p",
        "official rule",
        "permutation p",
        "80% of cases",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("labels", "ours", "theirs", "message"),
    [
        ([], [], [], "labels must be"),
        ([[0, 1]], [0, 1], [0, 1], r"labels must be \(N,\)"),
        ([0, 1], [0, 1, 1], [0, 1], r"PyTorch's predictions must be \(seeds, 2\)"),
        ([0, 1], [0, 1], np.zeros((2, 2, 2)), "Paddle's predictions must be"),
        ([0, 1], [0, 1], np.zeros((0, 2)), "Paddle's predictions must be"),
    ],
)
def test_inputs_that_do_not_fit(labels, ours, theirs, message: str) -> None:
    with pytest.raises(ReprodError, match=message):
        compare_runs(labels, ours, theirs)


def test_numbers_out_of_range() -> None:
    with pytest.raises(ReprodError, match="Paddle's accuracies must be"):
        compare_seeds([0.9, 0.91], [92.0, 91.0])
    with pytest.raises(ReprodError, match="PyTorch's accuracies must be"):
        compare_seeds([], [0.9])
    with pytest.raises(ReprodError, match="PyTorch's accuracies must be"):
        compare_seeds([math.nan], [0.9])
    with pytest.raises(ReprodError, match="margins must lie between 1e-06 and 1"):
        compare_seeds([0.9], [0.9], margins=[0.15, 25])
    with pytest.raises(ReprodError, match="alpha must lie"):
        compare_runs([0, 1], [0, 1], [0, 1], alpha=5)
    with pytest.raises(ReprodError, match="alpha must lie"):
        compare_predictions([0, 1], [0, 1], [0, 1], alpha=0)
