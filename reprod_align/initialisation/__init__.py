"""Do both sides' parameters start from the same distributions? (Guide, section 3.10.)

Elements that are the same with every seed must be equal. Random ones are compared by four tests on
values of all seeds, at a family-wise level by Holm's rule. The report also says how small a difference
would have been seen, since seeing none does not prove that there is none.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reprod_align.base.blocks import Array
from reprod_align.base.files import to_plain, write_json, write_text
from reprod_align.base.text import table
from reprod_align.errors import ReprodError, join_lines, one_line
from reprod_align.initialisation.family import describe, write_remedy
from reprod_align.initialisation.sample import Moments, ParameterSample, Samples
from reprod_align.records.gate import as_text, make_closing_line

import numpy as np
import scipy  # its `stats` loads when it is asked for: 0.5 s

_HEADERS = ("parameter", "PyTorch", "Paddle", "mean", "", "std", "", "p", "std seen", "verdict")
POWER: Final = 0.95  # the chance with which a difference of the stated size is seen
_FEW: Final = 1000  # with fewer values, a kurtosis below a normal's is too uncertain to be believed
__all__ = [
    "ALPHA",
    "InitialisationReport",
    "ParameterResult",
    "check_initialisation",
    "compare_initialisation",
]
ALPHA = 1e-3  # the chance that a faithful model is refused
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
    """Paddle's standard deviation over PyTorch's: estimate, and its interval at the level alpha"""
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
        if not seen:
            return f"initialisation: all {total} parameters are constant and equal"
        return (
            f"initialisation: no difference seen in {len(seen)} random parameters ({level}), "
            f"{total - len(seen)} constant ones equal; a standard deviation off by {100 * min(seen):.2g}% "
            f"in the largest, {100 * max(seen):.2g}% in the smallest would have been seen"
        )

    def text(self) -> str:
        """Return the table, the findings with their remedies, and the verdict."""
        rows = table([_HEADERS, *map(_describe_row, self.results)])
        findings = [line for result in self.results for line in _list_finding_lines(result)]
        return join_lines([*rows, "", *findings, self.headline])

    def to_json(self) -> dict[str, Any]:
        """Return everything in types of JSON."""
        parameters = [to_plain(result) | {"passed": result.passed} for result in self.results]
        summary = {"passed": self.passed, "alpha": self.alpha, "headline": self.headline}
        return summary | {"parameters": parameters}


def _list_finding_lines(result: ParameterResult) -> list[str]:
    if result.passed:
        return []
    ours, theirs = result.words
    lines = [
        f"  {one_line(result.paddle_name)}: {'; '.join(result.problems)}",
        f"    {theirs} in Paddle, {ours} in PyTorch",
    ]
    if result.std_ratio is not None:
        ratio, low, high = (f"{number:.4g}" for number in result.std_ratio)
        lines.append(f"    std in Paddle {ratio} times PyTorch's, between {low} and {high}")
    return [*lines, f"    set {result.remedy}"]


def _describe_row(result: ParameterResult) -> tuple[str, ...]:
    verdict = "ok" if result.passed else "DIFFERENT"
    shapes = ("x".join(map(str, s)) or "()" for s in (result.torch_shape, result.paddle_shape))
    start = (one_line(result.paddle_name), *shapes)
    if result.p is None:
        ours, theirs = (words if len(words) < 12 else "..." for words in result.words)
        return (*start, ours, theirs, "", "", "", "", verdict)
    means = (f"{side.mean:.1e}" for side in (result.torch, result.paddle))
    stds = (f"{side.std:.4g}" for side in (result.torch, result.paddle))
    return (*start, *means, *stds, f"{result.p:.2g}", f"{100 * result.seen:.2g}%", verdict)


def compute_p_values(torch: ParameterSample, paddle: ParameterSample) -> dict[str, float]:
    """Return the p value of each test on the random parts; {} if a side has too few random values."""
    if min(torch.moments.count, paddle.moments.count) < 2:
        return {}
    if not (torch.values.size and paddle.values.size):  # the kept values may all be fixed ones
        return {}
    return {
        "distribution": float(scipy.stats.ks_2samp(torch.values, paddle.values).pvalue),
        "mean": _test_means(torch.moments, paddle.moments),
        "spread": _test_spreads(torch.moments, paddle.moments),
        "support": _test_support(torch.values, paddle.values),
    }


def adjust_by_holm(raw: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return the p values adjusted for their number: at most alpha is significant at level alpha."""
    adjusted, highest = {}, 0.0
    for place, key in enumerate(sorted(raw, key=lambda key: raw[key])):
        highest = max(highest, min(1.0, (len(raw) - place) * raw[key]))
        adjusted[key] = highest
    return adjusted


def compare_spreads(
    ours: Moments, theirs: Moments, level: float
) -> tuple[tuple[float, float, float] | None, float]:
    """Return their std in ours, with its interval at `level`, and the relative difference it can see.

    None in place of the ratio where a side has no spread.
    """
    # of log(ratio)
    error = math.sqrt(sum(1 / (2 * _count_freedom(side)) for side in (ours, theirs)))
    reach = float(scipy.stats.norm.isf(level / 2))
    seen = math.expm1((reach + float(scipy.stats.norm.ppf(POWER))) * error)
    if min(ours.std, theirs.std) == 0:
        return None, seen
    ratio, factor = theirs.std / ours.std, math.exp(reach * error)
    return (ratio, ratio / factor, ratio * factor), seen


def _test_means(ours: Moments, theirs: Moments) -> float:
    """Return the p value of Welch's test."""
    sides = (ours.mean, ours.std, ours.count, theirs.mean, theirs.std, theirs.count)
    return float(scipy.stats.ttest_ind_from_stats(*sides, equal_var=False).pvalue)


def _test_spreads(ours: Moments, theirs: Moments) -> float:
    """Return the p value of an F test of the variances, its degrees of freedom set by the kurtoses."""
    if min(ours.std, theirs.std) == 0:
        return 1.0 if ours.std == theirs.std else 0.0
    ratio = scipy.stats.f(_count_freedom(theirs), _count_freedom(ours))
    observed = (theirs.std / ours.std) ** 2
    return float(min(1.0, 2 * min(ratio.sf(observed), ratio.cdf(observed))))


def _count_freedom(moments: Moments) -> float:
    """Return a variance's degrees of freedom: count - 1 for normal values, more for uniform ones."""
    few = moments.count < _FEW
    kurtosis = max(moments.kurtosis, 3.0) if few else moments.kurtosis
    return 2 * (moments.count - 1) / max(kurtosis - 1, 0.1)


def _test_support(ours: Array, theirs: Array) -> float:
    """Return the p value of how many values of one side lie beyond all of the other's, at either end."""
    ends = ((ours, theirs), (theirs, ours), (-ours, -theirs), (-theirs, -ours))
    return min(1.0, 4 * min(_test_beyond(first, second) for first, second in ends))


def _test_beyond(ours: Array, theirs: Array) -> float:
    """Return the chance that, of values in random order, so many of `ours` come last."""
    beyond = int((ours > theirs.max()).sum())
    return float(scipy.stats.hypergeom.pmf(beyond, len(ours) + len(theirs), len(ours), beyond))


def compare_initialisation(
    torch: Samples, paddle: Samples, alpha: float = ALPHA, name_map: Mapping[str, str] | None = None
) -> InitialisationReport:
    """Compare what both sides start from.

    alpha: the chance that a faithful pair is refused. name_map: {PyTorch name: Paddle name}, where
    they differ. Raises ReprodError for names without a partner, shapes that do not correspond, or
    seeds that have no effect.
    """
    if not 0 < alpha < 1:
        raise ReprodError(f"alpha must lie between 0 and 1, got {alpha}")
    pairs = _pair_names(torch, paddle, name_map or {})
    _require_random(torch, "PyTorch")
    _require_random(paddle, "Paddle")
    raw = {
        (name, test): p
        for name, other in pairs.items()
        for test, p in compute_p_values(torch[name], paddle[other]).items()
    }
    adjusted, level = adjust_by_holm(raw), alpha / max(len(raw), 1)
    copies = _find_copies(torch, paddle, pairs)
    results = []
    for name, other in pairs.items():
        p_values = {test: adjusted[key, test] for key, test in raw if key == name}
        problems = _list_exact_problems(torch[name], paddle[other])
        problems += [f"{test} differs, p {p:.1e}" for test, p in p_values.items() if not p > alpha]
        problems += copies[name]
        results.append(_describe_pair(torch, paddle, (name, other), p_values, problems, level))
    return InitialisationReport(tuple(results), alpha)


def check_initialisation(torch: Samples, paddle: Samples, log: Path, alpha: float = ALPHA) -> int:
    """Print and log the verdict; return 0 if no difference was seen, 1 if one was.

    Writes `log` and, beside it, the same as JSON. Raises ReprodError where the two can't be compared.
    """
    for path in (log, log.with_suffix(".json")):
        path.unlink(missing_ok=True)
    report = compare_initialisation(torch, paddle, alpha)
    closing = make_closing_line("" if report.passed else report.headline)
    write_text(log, as_text([*report.text().splitlines(), closing]))
    write_json(log.with_suffix(".json"), report.to_json())
    print(report.text())
    return 0 if report.passed else 1


def _pair_names(torch: Samples, paddle: Samples, name_map: Mapping[str, str]) -> dict[str, str]:
    """Return {PyTorch name: Paddle name}; ReprodError if a name or a shape has no partner."""
    by_role = {_find_torch_name(name): name for name in paddle}
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


def _find_torch_name(name: str) -> str:
    owner, dot, role = name.rpartition(".")
    return f"{owner}{dot}{_RENAMED.get(role, role)}"


def _require_random(samples: Samples, side: str) -> None:
    """Raise ReprodError if a side's models are the same with every seed, and are not constant."""
    if any(sample.is_random for sample in samples.values()):
        return
    if any(len(np.unique(sample.fixed)) > 2 for sample in samples.values()):
        raise ReprodError(
            f"every seed gives the same {side} model: does it load weights, or seed itself?"
        )


def _list_exact_problems(torch: ParameterSample, paddle: ParameterSample) -> list[str]:
    """Return what differs in the fixed elements, and in being orthogonal."""
    problems = []
    if not np.array_equal(torch.fixed_at, paddle.fixed_at):
        elsewhere = ", elsewhere" if torch.fixed.size == paddle.fixed.size else ""
        problems.append(
            f"{torch.fixed.size} of {torch.size} elements are fixed in PyTorch, "
            f"{paddle.fixed.size} in Paddle{elsewhere}"
        )
    elif not np.allclose(paddle.fixed, torch.fixed, rtol=_SAME_CONSTANT, atol=0):
        problems.append("the fixed elements differ")
    if torch.orthogonal != paddle.orthogonal:
        problems.append(f"orthogonal in {'PyTorch' if torch.orthogonal else 'Paddle'} alone")
    return problems


def _find_copies(torch: Samples, paddle: Samples, pairs: Mapping[str, str]) -> dict[str, list[str]]:
    """Return, by PyTorch name, what starts as a copy of an earlier parameter on one side alone."""
    ours = _find_first_alike({name: torch[name] for name in pairs})
    theirs = _find_first_alike({name: paddle[other] for name, other in pairs.items()})
    problems: dict[str, list[str]] = {name: [] for name in pairs}
    for name, found in problems.items():
        if ours[name] not in (name, theirs[name]):
            found.append(f"starts as a copy of {ours[name]} in PyTorch alone")
        if theirs[name] not in (name, ours[name]):
            found.append(f"starts as a copy of {theirs[name]} in Paddle alone")
    return problems


def _find_first_alike(samples: Samples) -> dict[str, str]:
    """Return, for each name, the first one with the same random values with the same seed."""
    first: dict[tuple[str, str], str] = {}
    return {
        name: first.setdefault((sample.digest, "" if sample.is_random else name), name)
        for name, sample in samples.items()
    }


def _describe_pair(
    torch: Samples,
    paddle: Samples,
    names: tuple[str, str],
    p_values: Mapping[str, float],
    problems: Sequence[str],
    level: float,
) -> ParameterResult:
    ours, theirs = torch[names[0]], paddle[names[1]]
    ratio, seen = compare_spreads(ours.moments, theirs.moments, level) if p_values else (None, 0.0)
    weight = _find_weight(torch, names[0])
    words = describe(ours, weight), describe(theirs, _find_weight(paddle, names[1]))
    return ParameterResult(
        *names,
        ours.shape,
        theirs.shape,
        ours.moments,
        theirs.moments,
        p_values,
        ratio,
        seen,
        tuple(problems),
        words,
        write_remedy(names[1], ours, weight) if problems else "",
    )


def _find_weight(samples: Samples, name: str) -> ParameterSample | None:
    """Return the weight of the layer that owns a bias; None for any other parameter."""
    owner, _, role = name.rpartition(".")
    return samples.get(f"{owner}.weight") if role == "bias" else None
