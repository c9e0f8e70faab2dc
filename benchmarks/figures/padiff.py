"""`align` beside PaDiff 0.2.0: what either costs on a faithful bert-base, and what it finds in the suite.

PaDiff patches both frameworks when it is imported, so it lies in a folder of its own, `.padiff/`, which only
its processes see. It runs eval mode, forward and backward, in float32; `align` runs eval and train
mode in float64, then float32: its work has no target here, its verdicts have.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.figures.align import draw_ids, make_pair
from benchmarks.figures.rows import COUNT, Curve, Row, Unmeasurable

TITLE = ("`align`, beside PaDiff 0.2.0", "`align`，对比 PaDiff 0.2.0")
_ROOT = Path(__file__).parents[2]
PADIFF = _ROOT / ".padiff"
_REQUIREMENTS = _ROOT / "benchmarks" / "requirements-padiff.txt"
EVERY = 25
"""every n-th case of the suite's families is judged: 20 planted faults, 6 faithful pairs"""
_HERE = "benchmarks.figures.padiff"
_FAITHFUL = "benchmarks.figures.align:judge_faithful"
_RULES = {
    "default": ("PaDiff's own rule", "PaDiff 的默认规则"),
    "strict": ("PaDiff, every element to 1e-4", "PaDiff，每个元素误差 1e-4"),
}
_COSTS = {
    "s of work": ("a faithful bert-base, work: `align` / {}", "忠实的 bert-base，计算量：`align` / {}"),
    "MB": ("a faithful bert-base, memory: `align` / {}", "忠实的 bert-base，内存：`align` / {}"),
}  # fmt: skip
_COUNTS = {
    "missed": ("planted faults missed: `align`, and {}", "漏掉的植入错误：`align`，以及 {}"),
    "unnamed": ("planted faults whose module is not named first: `align`, and {}",
                "首先指出的不是出错模块的植入错误：`align`，以及 {}"),
    "accused": ("faithful pairs flagged: `align`, and {}", "被误报的忠实模型对：`align`，以及 {}"),
}  # fmt: skip


def _make_row(names: tuple[str, str], rule: str, ours: str, theirs: str, unit: str) -> Row:
    english, chinese = (name.format(word) for name, word in zip(names, _RULES[rule], strict=True))
    target = 0.0 if unit == COUNT else None
    return Row((english, chinese), ours, target, f"{_HERE}:{theirs}", unit, rounds=0)


ROWS = (
    *(_make_row(names, rule, _FAITHFUL, f"run_{rule}", unit)
      for unit, names in _COSTS.items() for rule in _RULES),
    *(_make_row(names, rule, f"{_HERE}:{count}_by_align", f"{count}_by_{rule}", COUNT)
      for count, names in _COUNTS.items() for rule in _RULES),
)  # fmt: skip
CURVES: tuple[Curve, ...] = ()

Work = Callable[[], object]
_Verdicts = list[dict[str, bool]]


def prepare(folder: Path) -> None:
    """Install PaDiff, unless it is there."""
    if (PADIFF / "padiff").is_dir():
        return
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--target", str(PADIFF), "-r", str(_REQUIREMENTS)]  # fmt: skip
    if subprocess.run(words).returncode:
        raise Unmeasurable(f"{_REQUIREMENTS.name} can't be installed into {PADIFF.name}/")


def run_padiff(folder: Path, rule: str) -> Work:
    """Return PaDiff's call on the faithful pair that `align` gets."""
    _import_padiff(folder)
    from benchmarks.padiff_cases import ask_padiff
    from tests.pairs.case import Pair

    pair = Pair(*make_pair(), {"input_ids": draw_ids()})
    return lambda: ask_padiff(pair, rule)


def _import_padiff(folder: Path) -> None:
    os.environ["PADIFF_CUDA_MEMORY"] = "OFF"
    sys.path[:0] = [
        str(folder),
        str(PADIFF),
    ]  # in the first it makes, and empties, a folder diff_log
    import padiff  # type: ignore[import-not-found]  # noqa: F401


def count(folder: Path, tool: str, what: str) -> Callable[[], int]:
    """Return the counting of a tool's wrong verdicts; it judges the cases the first time."""
    kept = folder / f"{tool}.json"
    if not kept.exists():
        if tool != "align":
            _import_padiff(folder)
        from benchmarks.padiff_cases import judge_cases

        kept.write_text(json.dumps(list(judge_cases(tool, EVERY))))
    verdicts: _Verdicts = json.loads(kept.read_text())
    return lambda: count_wrong(verdicts, what)


def count_wrong(verdicts: _Verdicts, what: str) -> int:
    """Return how many faulty pairs were missed, or unnamed, or how many faithful ones accused."""
    if what == "accused":
        return sum(one["flagged"] for one in verdicts if not one["faulty"])
    right = "flagged" if what == "missed" else "named"
    return sum(not one[right] for one in verdicts if one["faulty"])


run_default, run_strict = (partial(run_padiff, rule=rule) for rule in _RULES)
missed_by_align, unnamed_by_align, accused_by_align = (
    partial(count, tool="align", what=what) for what in _COUNTS
)
missed_by_default, unnamed_by_default, accused_by_default = (
    partial(count, tool="default", what=what) for what in _COUNTS
)
missed_by_strict, unnamed_by_strict, accused_by_strict = (
    partial(count, tool="strict", what=what) for what in _COUNTS
)
