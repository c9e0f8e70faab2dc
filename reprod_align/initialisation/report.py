"""The verdict on what two models start from, as a value: a result for each parameter, text and JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reprod_align.base.json import to_plain
from reprod_align.base.text import table
from reprod_align.errors import join_lines, one_line
from reprod_align.initialisation.sample import Moments

_HEADERS = ("parameter", "PyTorch", "Paddle", "mean", "", "std", "", "p", "std seen", "verdict")


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
            f"{total - len(seen)} constant ones equal; a standard deviation off by "
            f"{_percent(min(seen))} in the largest, {_percent(max(seen))} in the smallest would have "
            "been seen"
        )

    def text(self) -> str:
        """Return the table, the findings with their remedies, and the verdict."""
        rows = table([_HEADERS, *map(_row, self.results)])
        findings = [line for result in self.results for line in _finding_lines(result)]
        return join_lines([*rows, "", *findings, self.headline])

    def to_json(self) -> dict[str, Any]:
        """Return everything in types of JSON."""
        parameters = [to_plain(result) | {"passed": result.passed} for result in self.results]
        summary = {"passed": self.passed, "alpha": self.alpha, "headline": self.headline}
        return summary | {"parameters": parameters}


def _finding_lines(result: ParameterResult) -> list[str]:
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


def _row(result: ParameterResult) -> tuple[str, ...]:
    verdict = "ok" if result.passed else "DIFFERENT"
    shapes = ("x".join(map(str, s)) or "()" for s in (result.torch_shape, result.paddle_shape))
    start = (one_line(result.paddle_name), *shapes)
    if result.p is None:
        ours, theirs = (words if len(words) < 12 else "..." for words in result.words)
        return (*start, ours, theirs, "", "", "", "", verdict)
    means = (f"{side.mean:.1e}" for side in (result.torch, result.paddle))
    stds = (f"{side.std:.4g}" for side in (result.torch, result.paddle))
    return (*start, *means, *stds, f"{result.p:.2g}", _percent(result.seen), verdict)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"
