"""Do both sides' parameters start from the same distributions? (Guide, section 3.10.)

Elements that are the same with every seed must be equal. Random ones are compared by four tests on
values of all seeds, at a family-wise level by Holm's rule. The report also says how small a difference
would have been seen, since seeing none does not prove that there is none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from reprod_align.base.atomic import write_text
from reprod_align.base.json import write_json
from reprod_align.errors import ReprodError
from reprod_align.initialisation.family import describe, write_remedy
from reprod_align.initialisation.report import InitialisationReport, ParameterResult
from reprod_align.initialisation.sample import ParameterSample, Samples
from reprod_align.initialisation.statistics import adjust_by_holm, compare_spreads, compute_p_values
from reprod_align.records.official import as_text, closing_line

import numpy as np

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
        problems = _exact_problems(torch[name], paddle[other])
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
    closing = closing_line("" if report.passed else report.headline)
    write_text(log, as_text([*report.text().splitlines(), closing]))
    write_json(log.with_suffix(".json"), report.to_json())
    print(report.text())
    return 0 if report.passed else 1


def _pair_names(torch: Samples, paddle: Samples, name_map: Mapping[str, str]) -> dict[str, str]:
    """Return {PyTorch name: Paddle name}; ReprodError if a name or a shape has no partner."""
    by_role = {_as_torch_name(name): name for name in paddle}
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


def _as_torch_name(name: str) -> str:
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


def _exact_problems(torch: ParameterSample, paddle: ParameterSample) -> list[str]:
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
    ours = _first_alike({name: torch[name] for name in pairs})
    theirs = _first_alike({name: paddle[other] for name, other in pairs.items()})
    problems: dict[str, list[str]] = {name: [] for name in pairs}
    for name, found in problems.items():
        if ours[name] not in (name, theirs[name]):
            found.append(f"starts as a copy of {ours[name]} in PyTorch alone")
        if theirs[name] not in (name, ours[name]):
            found.append(f"starts as a copy of {theirs[name]} in Paddle alone")
    return problems


def _first_alike(samples: Samples) -> dict[str, str]:
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
