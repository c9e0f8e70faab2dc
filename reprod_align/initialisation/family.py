"""In words: which initialiser a parameter was probably drawn with, and what to set in Paddle.

`read_facts` returns what each framework draws by default, and whether equal arguments give equal
distributions. facts.tsv was measured by drawing from both frameworks with eight seeds, under the pinned
versions; the tests measure it again. calls.tsv names the initialisers on both sides.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from reprod_align.base.blocks import Array
from reprod_align.initialisation.sample import Moments, ParameterSample, count_fans

import numpy as np
import scipy  # its `stats` loads when it is asked for: 0.5 s

DistributionKind = Literal["uniform", "normal", "truncated normal", "orthogonal", "unknown"]

_WELL = 2.5  # sqrt(n) times the KS distance to a fitted family; above, the family is another one
_CUT = 2.0  # standard deviations: a truncated normal with other ends is not looked for
_NEAR = 4.0  # standard errors within which a formula's number is taken for the measured one
_ROUND = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_EXACT = 4 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class LikelyDraw:
    """The likely distribution of a parameter's random part."""

    kind: DistributionKind
    scale: float
    """half a uniform one's width, an orthogonal one's gain, else the standard deviation (before a cut)"""
    origin: str
    """the formula that gives the scale: "Kaiming a=sqrt(5): 1/sqrt(fan_in)"; "" if none is near"""
    centre: float = 0.0

    @property
    def words(self) -> str:
        """The family as text: "uniform on +-0.0884 (Xavier: ...)"."""
        if self.kind == "unknown":
            return f"of an unknown family, std {self.scale:.3g}, mean {self.centre:.3g}"
        origin = f" ({self.origin})" if self.origin else ""
        if self.kind == "orthogonal":
            return f"orthogonal, gain {self.scale:.3g}"
        if self.kind == "uniform" and self.centre:
            return f"uniform from {self._show_end(-1)} to {self._show_end(1)}"
        if self.kind == "uniform":
            return f"uniform on +-{self.scale:.3g}{origin}"
        around = "" if self.centre == 0 else f" around {self.centre:.3g}"
        cut = f", cut at {_CUT:.3g} std" if self.kind == "truncated normal" else ""
        return f"{self.kind}, std {self.scale:.3g}{cut}{around}{origin}"

    @property
    def paddle(self) -> str:
        """The Paddle initialiser that draws from it; "" where there is none."""
        scale, centre = f"{self.scale:.6g}", f"{self.centre:.6g}"
        if self.kind == "uniform":
            return f"nn.initializer.Uniform({self._show_end(-1)}, {self._show_end(1)})"
        if self.kind == "normal":
            return f"nn.initializer.Normal({centre}, {scale})"
        if self.kind == "truncated normal":
            ends = f"{self._show_end(-_CUT)}, {self._show_end(_CUT)}"
            return f"nn.initializer.TruncatedNormal({centre}, {scale}, {ends})"
        return f"nn.initializer.Orthogonal({scale})" if self.kind == "orthogonal" else ""

    def _show_end(self, scales: float) -> str:
        return f"{self.centre + scales * self.scale:.6g}"


def describe(sample: ParameterSample, weight: ParameterSample | None = None) -> str:
    """Return in words what the parameter starts from: "zeros", "uniform on +-0.051 (...)".

    weight: the same layer's; a bias is often drawn by its weight's fan_in.
    """
    if not sample.is_random:
        return _describe_fixed(sample.fixed)
    words = guess_family(sample, weight).words
    if not sample.fixed.size:
        return words
    return f"{_describe_fixed(sample.fixed)} in {_describe_places(sample)}, elsewhere {words}"


def write_remedy(
    name: str, reference: ParameterSample, weight: ParameterSample | None = None
) -> str:
    """Return what to set in Paddle so that parameter `name` starts as `reference` does in PyTorch."""
    if not reference.is_random:
        first = reference.fixed[0]
        constant = bool((reference.fixed == first).all())
        return (
            _write_setting(name, f"nn.initializer.Constant({first:.6g})") if constant else _CONVERT
        )
    code = guess_family(reference, weight).paddle
    if not code:
        return _CONVERT
    if not reference.fixed.size:
        return _write_setting(name, code)
    fixed = f"{_describe_fixed(reference.fixed)} in {_describe_places(reference)}"
    return f"{_write_setting(name, code)}, then {fixed}"


def guess_family(sample: ParameterSample, weight: ParameterSample | None = None) -> LikelyDraw:
    """Return the likely family of the random part, which must not be empty; weight as in `describe`."""
    moments, values, shape = sample.moments, np.sort(sample.values), sample.layout_shape
    formulas = _list_formulas(shape, None if weight is None else weight.layout_shape)
    if sample.orthogonal:
        longer = max(shape[0], sample.size // shape[0])
        return LikelyDraw("orthogonal", _round_to(moments.std * math.sqrt(longer), 1e-4), "")
    error = moments.std / math.sqrt(max(moments.count, 1))
    centre = 0.0 if abs(moments.mean) < _NEAR * error else _round_to(moments.mean, error)
    kind = _choose_kind(values, moments, centre)
    if kind == "uniform":
        return _fit_uniform(values, centre, formulas["uniform"])
    shrunk = float(scipy.stats.truncnorm.std(-_CUT, _CUT)) if kind == "truncated normal" else 1.0
    relative = math.sqrt(max(moments.kurtosis - 1, 0.1) / (4 * max(moments.count, 1)))
    known = formulas["normal"] if kind != "unknown" else {}
    return LikelyDraw(kind, *_find_nearest(moments.std / shrunk, _NEAR * relative, known), centre)


def _fit_uniform(values: Array, centre: float, formulas: Mapping[str, float]) -> LikelyDraw:
    """Return the uniform family that ends where the sorted values do."""
    gap = float(values[-1] - values[0]) / len(values)  # about as far as the true ends lie beyond
    if centre:
        middle, half = float(values[-1] + values[0]) / 2, gap * (len(values) + 2) / 2
        return LikelyDraw(
            "uniform", _round_to(half, _NEAR * gap), "", _round_to(middle, _NEAR * gap)
        )
    half = float(max(-values[0], values[-1])) + gap / 2
    return LikelyDraw("uniform", *_find_nearest(half, _NEAR * gap / half, formulas))


def _choose_kind(values: Array, moments: Moments, centre: float) -> DistributionKind:
    """Return the likeliest family of the sorted values."""
    half = float(max(abs(values[0] - centre), abs(values[-1] - centre)))
    if not half or not moments.std:
        return "unknown"
    fitted: dict[DistributionKind, Any] = {
        "uniform": scipy.stats.uniform(centre - half, 2 * half),
        "normal": scipy.stats.norm(moments.mean, moments.std),
        "truncated normal": scipy.stats.truncnorm(-_CUT, _CUT, centre, half / _CUT),
    }
    likelihood = {kind: float(law.logpdf(values).sum()) for kind, law in fitted.items()}
    best = max(likelihood, key=lambda kind: likelihood[kind])
    distance = float(scipy.stats.ks_1samp(values, fitted[best].cdf, method="asymp").statistic)
    return "unknown" if distance * math.sqrt(len(values)) > _WELL else best


def _find_nearest(scale: float, limit: float, formulas: Mapping[str, float]) -> tuple[float, str]:
    """Return the number of the nearest formula within `limit` (relative), and the formula in words."""
    known = {f"{number:g}": number for number in _ROUND} | dict(formulas)
    best = min(known, key=lambda words: abs(math.log(scale / known[words])))
    if abs(math.log(scale / known[best])) > limit + _EXACT:
        return _round_to(scale, limit * scale / _NEAR), ""
    return known[best], best if best in formulas else ""


def _list_formulas(
    shape: tuple[int, ...], weight: tuple[int, ...] | None
) -> Mapping[str, dict[str, float]]:
    """Return {formula in words: its number}, for uniform and for normal weights."""
    found = count_fans(shape)
    if found is None:
        owner = None if weight is None else count_fans(weight)
        near = {} if owner is None else {"1/sqrt(fan_in) of its weight": 1 / math.sqrt(owner[0])}
        return {"uniform": near, "normal": {}}
    ins, outs = found
    one = {"1/sqrt(fan_out)": 1 / math.sqrt(outs)}
    uniform = {
        "Xavier: sqrt(6/(fan_in+fan_out))": math.sqrt(6 / (ins + outs)),
        "Kaiming a=sqrt(5): 1/sqrt(fan_in)": 1 / math.sqrt(ins),
        "Kaiming: sqrt(6/fan_in)": math.sqrt(6 / ins),
        "Kaiming, linear: sqrt(3/fan_in)": math.sqrt(3 / ins),
        "Kaiming fan_out: sqrt(6/fan_out)": math.sqrt(6 / outs),
    }
    normal = {
        "Xavier: sqrt(2/(fan_in+fan_out))": math.sqrt(2 / (ins + outs)),
        "Kaiming: sqrt(2/fan_in)": math.sqrt(2 / ins),
        "Kaiming fan_out: sqrt(2/fan_out)": math.sqrt(2 / outs),
        "1/sqrt(fan_in)": 1 / math.sqrt(ins),
    }
    return {"uniform": uniform | one, "normal": normal | one}


def _describe_fixed(fixed: Array) -> str:
    first = float(fixed[0])
    if not (fixed == first).all():
        zeros_and_ones = set(np.unique(fixed)) == {0.0, 1.0}
        return "fixed zeros and ones" if zeros_and_ones else "fixed values that are not all alike"
    return {0.0: "zeros", 1.0: "ones"}.get(first, f"all {first:.6g}")


def _describe_places(sample: ParameterSample) -> str:
    """Return where the fixed elements lie: "row 0", "3 rows", "12 of 64 elements"."""
    width = sample.size // sample.layout_shape[0] if sample.layout_shape else 1
    rows, counts = np.unique(sample.fixed_at // max(width, 1), return_counts=True)
    if width > 1 and (counts == width).all():
        return f"row {rows[0]}" if len(rows) == 1 else f"{len(rows)} rows (the first: {rows[0]})"
    return f"{sample.fixed.size} of {sample.size} elements (the first: {sample.fixed_at[0]})"


def _round_to(number: float, error: float) -> float:
    """Return a number in as many digits as it is known to."""
    digits = max(0, -math.floor(math.log10(_NEAR * error))) if error else 6
    return round(number, digits)


def _write_setting(name: str, code: str) -> str:
    role = name.rpartition(".")[2]
    if role in ("weight", "bias"):
        return f"{role}_attr=paddle.ParamAttr(initializer={code})"
    return f"{code}(parameter) after the layer is built"


_CONVERT = "convert PyTorch's initial weights: Paddle's known initialisers do not give them"


@dataclass(frozen=True)
class InitFact:
    """One parameter of a case, or several that start alike."""

    case: str
    """"kaiming_normal_ on Embedding", "Linear by default" """
    parameters: str
    torch: str
    """what they start from in PyTorch, in words"""
    paddle: str
    remedy: str
    """what to set in Paddle; "" if both sides start alike"""

    @property
    def same(self) -> bool:
        """Whether both sides draw from the same distribution."""
        return not self.remedy


@cache
def read_facts() -> tuple[InitFact, ...]:
    """Return every case that was measured."""
    return tuple(InitFact(**row) for row in _read_rows("facts.tsv"))


@cache
def read_calls() -> Mapping[str, tuple[str, str]]:
    """Return {initialiser: (PyTorch's call, Paddle's call)}."""
    return {row["initialiser"]: (row["torch"], row["paddle"]) for row in _read_rows("calls.tsv")}


def describe_facts(facts: Sequence[InitFact]) -> str:
    """Return a paragraph for each case: the calls, then what each parameter starts from."""
    lines = []
    for case in dict.fromkeys(fact.case for fact in facts):
        calls = read_calls().get(case.partition(" on ")[0], ())
        lines.append("  ".join((case, *(f"[{call}]" for call in calls))))
        for fact in (fact for fact in facts if fact.case == case):
            words = fact.torch if fact.same else f"PyTorch {fact.torch}; Paddle {fact.paddle}"
            lines.append(f"  {'same' if fact.same else 'DIFFERENT':9}  {fact.parameters}: {words}")
            lines += [] if fact.same else [f"             set {fact.remedy}"]
    return "\n".join(lines)


def _read_rows(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
