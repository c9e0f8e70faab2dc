"""Do both sides' parameters start from the same distributions? (Guide, section 3.10.)

What is the same with every seed must be equal; what is random is compared by four tests on values of
all seeds, at a family-wise level by Holm's rule. Says also how small a difference would have been
seen: not to see one is no proof that there is none.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reprod_align.base.atomic import write_text
from reprod_align.base.json import to_plain, write_json
from reprod_align.base.text import table
from reprod_align.errors import ReprodError, one_line
from reprod_align.initialisation.family import describe, remedy
from reprod_align.initialisation.sample import Array, Moments, ParameterSample, Samples
from reprod_align.records.official import as_text, closing_line

import numpy as np
from scipy import stats

ALPHA = 1e-3  # the chance that a faithful model is refused
TESTS = ("distribution", "mean", "spread", "support")
_POWER = 0.95  # the chance with which a difference of the stated size is seen
_FEW = 1000  # below, a kurtosis is too uncertain to be believed when it is less than a normal's
_SAME_CONSTANT = 4 * float(np.finfo(np.float32).eps)
_RENAMED = {"_weight": "weight", "scale": "weight"}  # Paddle's PReLU and InstanceNorm


@dataclass(frozen=True)
class ParameterResult:
    """What was found about one parameter."""

    torch_name: str
    paddle_name: str
    torch_shape: tuple[int, ...]
    paddle_shape: tuple[int, ...]
    torch: Moments
    paddle: Moments
    p_values: Mapping[str, float]
    """by test, adjusted by Holm's rule over all tests and parameters: at most alpha is significant"""
    std_ratio: tuple[float, float, float] | None
    """Paddle's standard deviation in PyTorch's: estimate, and its interval at the level alpha"""
    seen: float
    """the relative difference of the standard deviations that would have been seen"""
    problems: tuple[str, ...]
    words: tuple[str, str]
    """what each side starts from: PyTorch's, Paddle's"""
    remedy: str
    """what to set in Paddle; "" if nothing is wrong"""

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    @property
    def p(self) -> float | None:
        """The smallest of the adjusted p values; None where nothing is random."""
        return min(self.p_values.values(), default=None)


@dataclass(frozen=True)
class InitialisationReport:
    """The verdict on a pair of models."""

    results: tuple[ParameterResult, ...]
    alpha: float

    @property
    def passed(self) -> bool:
        """Whether no parameter differs."""
        return all(result.passed for result in self.results)

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        failing = sum(not result.passed for result in self.results)
        total, level = len(self.results), f"family-wise level {self.alpha:g}"
        if failing:
            return f"initialisation: DIFFERENT: {failing} of {total} parameters ({level})"
        seen = [result.seen for result in self.results if result.p_values]
        fixed = f"{total - len(seen)} constant ones equal"
        if not seen:
            return f"initialisation: {fixed}, none is random"
        return (
            f"initialisation: no difference seen in {len(seen)} random parameters ({level}), {fixed}; a "
            f"standard deviation off by {_percent(min(seen))} in the largest, {_percent(max(seen))} in the "
            "smallest would have been seen"
        )

    def text(self) -> str:
        """Return the table, the findings with their remedies, and the verdict."""
        findings = [line for result in self.results for line in _finding(result)]
        return "\n".join([*_table(self.results), "", *findings, self.headline])

    def to_json(self) -> dict[str, Any]:
        """Return everything in types of JSON."""
        results = [to_plain(result) | {"passed": result.passed} for result in self.results]
        return {
            "passed": self.passed,
            "alpha": self.alpha,
            "headline": self.headline,
            "parameters": results,
        }


def compare_initialisation(
    torch: Samples,
    paddle: Samples,
    alpha: float = ALPHA,
    name_map: Mapping[str, str] | None = None,
) -> InitialisationReport:
    """Compare what both sides start from.

    alpha: the chance that a faithful pair is refused. name_map: {PyTorch name: Paddle name}, where
    they differ. Raises ReprodError for names without a partner, shapes that do not correspond, or
    seeds that have no effect.
    """
    if not 0 < alpha < 1:
        raise ReprodError(f"alpha must lie between 0 and 1, got {alpha}")
    pairs = _pairs(torch, paddle, name_map or {})
    _require_random(torch, "PyTorch")
    _require_random(paddle, "Paddle")
    raw = {
        (name, test): p
        for name, other in pairs.items()
        for test, p in _tests(torch[name], paddle[other]).items()
    }
    adjusted, level = _holm(raw), alpha / max(len(raw), 1)
    copies = _copies(torch, paddle, pairs)
    results = []
    for name, other in pairs.items():
        found = {test: adjusted[name, test] for test in TESTS if (name, test) in adjusted}
        problems = [
            *_exact_problems(torch[name], paddle[other]),
            *_test_problems(found, alpha),
            *copies[name],
        ]
        sides, weights = (
            (torch[name], paddle[other]),
            (_weight(torch, name), _weight(paddle, other)),
        )
        results.append(_result((name, other), sides, weights, found, problems, level))
    return InitialisationReport(tuple(results), alpha)


def check_initialisation(torch: Samples, paddle: Samples, log: Path, alpha: float = ALPHA) -> int:
    """Print and log the verdict; return 0 if no difference was seen, 1 if one was.

    Writes `log` and, beside it, the same as JSON. Raises ReprodError where the two can't be compared.
    """
    for path in (log, log.with_suffix(".json")):
        path.unlink(missing_ok=True)
    report = compare_initialisation(torch, paddle, alpha)
    closing = closing_line("" if report.passed else report.headline)
    write_text(log, as_text([*report.text().splitlines(), closing]))
    write_json(log.with_suffix(".json"), report.to_json())
    print(report.text())
    return 0 if report.passed else 1


def _pairs(torch: Samples, paddle: Samples, name_map: Mapping[str, str]) -> dict[str, str]:
    """Return {PyTorch name: Paddle name}; ReprodError if a name or a shape has no partner."""
    by_role = {_as_torch_names(name): name for name in paddle}
    pairs = {name: name_map.get(name, by_role.get(name, name)) for name in torch}
    missing = sorted(set(pairs.values()) - set(paddle))
    extra = sorted(set(paddle) - set(pairs.values()))
    if missing or extra:
        raise ReprodError(
            f"the sides have different parameters: Paddle lacks {', '.join(missing) or 'none'}, "
            f"PyTorch lacks {', '.join(extra) or 'none'}; pair them by name_map"
        )
    for name, other in pairs.items():
        shapes = torch[name].layout_shape, paddle[other].layout_shape
        if shapes[0] != shapes[1]:
            raise ReprodError(f"{name} is {shapes[0]} in PyTorch, {shapes[1]} in Paddle")
    return pairs


def _as_torch_names(name: str) -> str:
    owner, dot, role = name.rpartition(".")
    return f"{owner}{dot}{_RENAMED.get(role, role)}"


def _require_random(samples: Samples, side: str) -> None:
    """Raise ReprodError where a side's models are the same with every seed, though not constant."""
    if any(sample.is_random for sample in samples.values()):
        return
    if any(len(np.unique(sample.fixed)) > 2 for sample in samples.values()):
        raise ReprodError(
            f"every seed gives the same {side} model: does it load weights, or seed itself?"
        )


def _tests(torch: ParameterSample, paddle: ParameterSample) -> dict[str, float]:
    """Return the p value of each of TESTS on the random parts; none where one side has none."""
    if min(torch.moments.count, paddle.moments.count) < 2:
        return {}
    if (
        not torch.values.size or not paddle.values.size
    ):  # too few random elements to be among the kept
        return {}
    return {
        "distribution": float(stats.ks_2samp(torch.values, paddle.values).pvalue),
        "mean": _mean_p(torch.moments, paddle.moments),
        "spread": _spread_p(torch.moments, paddle.moments),
        "support": _support_p(torch.values, paddle.values),
    }


def _mean_p(ours: Moments, theirs: Moments) -> float:
    """Return the p value of Welch's test."""
    sides = (ours.mean, ours.std, ours.count, theirs.mean, theirs.std, theirs.count)
    return float(stats.ttest_ind_from_stats(*sides, equal_var=False).pvalue)


def _spread_p(ours: Moments, theirs: Moments) -> float:
    """Return the p value of an F test of the variances, its degrees of freedom set by the kurtoses."""
    if min(ours.std, theirs.std) == 0:
        return 1.0 if ours.std == theirs.std else 0.0
    ratio = stats.f(_freedom(theirs), _freedom(ours))
    observed = (theirs.std / ours.std) ** 2
    return float(min(1.0, 2 * min(ratio.sf(observed), ratio.cdf(observed))))


def _freedom(moments: Moments) -> float:
    """Return the degrees of freedom of a variance: count - 1 for normal values, more for uniform ones."""
    few = moments.count < _FEW
    kurtosis = max(moments.kurtosis, 3.0) if few else moments.kurtosis
    return 2 * (moments.count - 1) / max(kurtosis - 1, 0.1)


def _support_p(ours: Array, theirs: Array) -> float:
    """Return the p value of how many values of one side lie beyond all of the other's, at either end."""
    ends = ((ours, theirs), (theirs, ours), (-ours, -theirs), (-theirs, -ours))
    return min(1.0, 4 * min(_beyond_p(first, second) for first, second in ends))


def _beyond_p(ours: Array, theirs: Array) -> float:
    """Return the chance that, of values in random order, so many of `ours` come last."""
    beyond = int((ours > theirs.max()).sum())
    total = len(ours) + len(theirs)
    left = math.lgamma(len(ours) + 1) - math.lgamma(len(ours) - beyond + 1)
    return math.exp(left - math.lgamma(total + 1) + math.lgamma(total - beyond + 1))


def _holm(raw: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return the p values adjusted for their number: at most alpha is significant at level alpha."""
    adjusted, highest = {}, 0.0
    for place, key in enumerate(sorted(raw, key=lambda key: raw[key])):
        highest = max(highest, min(1.0, (len(raw) - place) * raw[key]))
        adjusted[key] = highest
    return adjusted


def _exact_problems(torch: ParameterSample, paddle: ParameterSample) -> list[str]:
    """Return what differs in the parts that do not vary, and in being orthogonal."""
    problems = []
    same_places = np.array_equal(torch.fixed_at, paddle.fixed_at)
    if not same_places:
        problems.append(
            f"{torch.fixed.size} of {torch.size} elements are fixed in PyTorch, "
            f"{paddle.fixed.size} in Paddle"
            + (", elsewhere" if torch.fixed.size == paddle.fixed.size else "")
        )
    elif not np.allclose(paddle.fixed, torch.fixed, rtol=_SAME_CONSTANT, atol=0):
        problems.append("the fixed elements differ")
    if torch.orthogonal != paddle.orthogonal:
        side = "PyTorch" if torch.orthogonal else "Paddle"
        problems.append(f"orthogonal in {side} alone")
    return problems


def _test_problems(found: Mapping[str, float], alpha: float) -> list[str]:
    return [f"{test} differs, p {p:.1e}" for test, p in found.items() if not p > alpha]


def _copies(torch: Samples, paddle: Samples, pairs: Mapping[str, str]) -> dict[str, list[str]]:
    """Return, by PyTorch name, what starts as a copy of an earlier parameter on one side alone."""
    ours = _first_alike({name: torch[name] for name in pairs})
    theirs = _first_alike({name: paddle[other] for name, other in pairs.items()})
    problems: dict[str, list[str]] = {}
    for name in pairs:
        copied = [
            f"starts as a copy of {first} in {side} alone"
            for side, first, other in (
                ("PyTorch", ours[name], theirs[name]),
                ("Paddle", theirs[name], ours[name]),
            )
            if first not in (name, other)
        ]
        problems[name] = copied
    return problems


def _first_alike(samples: Samples) -> dict[str, str]:
    """Return, for each name, the first one with the same random values with the same seed."""
    first: dict[tuple[str, bool, str], str] = {}
    return {
        name: first.setdefault((s.digest, s.is_random, "" if s.is_random else name), name)
        for name, s in samples.items()
    }


def _result(
    names: tuple[str, str],
    samples: tuple[ParameterSample, ParameterSample],
    weights: tuple[ParameterSample | None, ParameterSample | None],
    found: Mapping[str, float],
    problems: Sequence[str],
    level: float,
) -> ParameterResult:
    torch, paddle = samples
    ours, theirs = weights
    error = _log_ratio_error(torch.moments, paddle.moments) if found else 0.0
    reach = float(stats.norm.isf(level / 2))
    return ParameterResult(
        *names,
        torch.shape,
        paddle.shape,
        torch.moments,
        paddle.moments,
        found,
        _ratio(torch.moments, paddle.moments, reach * error) if found else None,
        math.expm1((reach + float(stats.norm.ppf(_POWER))) * error),
        tuple(problems),
        (describe(torch, ours), describe(paddle, theirs)),
        remedy(names[1], torch, ours) if problems else "",
    )


def _weight(samples: Samples, name: str) -> ParameterSample | None:
    """Return the weight of the layer that owns a bias; None for any other parameter."""
    owner, _, role = name.rpartition(".")
    return samples.get(f"{owner}.weight") if role == "bias" else None


def _log_ratio_error(ours: Moments, theirs: Moments) -> float:
    """Return the standard error of the logarithm of the ratio of the standard deviations."""
    return math.sqrt(sum(1 / (2 * _freedom(side)) for side in (ours, theirs)))


def _ratio(ours: Moments, theirs: Moments, reach: float) -> tuple[float, float, float] | None:
    if min(ours.std, theirs.std) == 0:
        return None
    ratio = theirs.std / ours.std
    return ratio, ratio * math.exp(-reach), ratio * math.exp(reach)


def _finding(result: ParameterResult) -> list[str]:
    if result.passed:
        return []
    ours, theirs = result.words
    ratio, low, high = result.std_ratio or (math.nan, math.nan, math.nan)
    spread = f"    std in Paddle {ratio:.4g} times PyTorch's, between {low:.4g} and {high:.4g}"
    return [
        f"  {one_line(result.paddle_name)}: {'; '.join(result.problems)}",
        f"    {theirs} in Paddle, {ours} in PyTorch",
        *([spread] if result.std_ratio else []),
        f"    set {result.remedy}",
    ]


def _table(results: Sequence[ParameterResult]) -> list[str]:
    head = ("parameter", "PyTorch", "Paddle", "mean", "", "std", "", "p", "std seen", "verdict")
    rows = [head, *(_row(result) for result in results)]
    return table(rows)


def _row(result: ParameterResult) -> tuple[str, ...]:
    verdict = "ok" if result.passed else "DIFFERENT"
    shapes = tuple("x".join(map(str, s)) or "()" for s in (result.torch_shape, result.paddle_shape))
    start = (one_line(result.paddle_name), *shapes)
    if result.p is None:
        ours, theirs = (words if len(words) < 12 else "..." for words in result.words)
        return (*start, ours, theirs, "", "", "", "", verdict)
    means = (f"{side.mean:.1e}" for side in (result.torch, result.paddle))
    stds = (f"{side.std:.4g}" for side in (result.torch, result.paddle))
    return (*start, *means, *stds, f"{result.p:.2g}", _percent(result.seen), verdict)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"
