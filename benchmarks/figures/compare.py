"""Comparing two records, two traces and the files of a step: 1 GB of float32 on each side."""

import os
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures.rows import Curve, Row

import numpy as np

TITLE = ("Comparing what was recorded", "比较记录的结果")
_HERE = "benchmarks.figures.compare"
_SIZE = int(os.environ.get("BENCH_COMPARE_MB", 1024))
"""of each side, in MB"""
_TENSORS = 16

Work = Callable[[], object]


def _row(
    english: str, chinese: str, ours: str, target: float, peer: str = "", unit: str = "s"
) -> Row:
    return Row((english, chinese), f"{_HERE}:{ours}", target, peer and f"{_HERE}:{peer}", unit)


ROWS = (
    _row("two records: `compare_records` / `reprod_log`",
         "两个记录：`compare_records` / `reprod_log`",
         "compare_ours", 0.5, "compare_reprod_log"),
    _row("two records: `compare_records` / `cat`, cached",
         "两个记录：`compare_records` / `cat`（已缓存）",
         "compare_ours", 2.0, "read_files"),
    _row("two records: `compare_records` / `torch.testing.assert_close`",
         "两个记录：`compare_records` / `torch.testing.assert_close`",
         "compare_ours", 0.5, "compare_assert_close"),
    _row("two records: memory beside the mapped files, MB",
         "两个记录：映射文件以外的内存，MB",
         "compare_ours", 300, unit="MB"),
    _row("two traces: `diff` / `reprod_log` on the same arrays",
         "两个 trace：`diff` / 对相同数组的 `reprod_log`",
         "diff_ours", 0.5, "compare_reprod_log"),
    _row("two traces: memory beside the mapped files, MB",
         "两个 trace：映射文件以外的内存，MB",
         "diff_ours", 300, unit="MB"),
    _row("a step's check by both rules / `reprod_log` with its report",
         "步骤检查（两条规则）/ `reprod_log` 及其报告",
         "check_ours", 0.5, "report_reprod_log"),
    _row("a step's check: memory beside the mapped files, MB",
         "步骤检查：映射文件以外的内存，MB",
         "check_ours", 300, unit="MB"),
)  # fmt: skip

CURVES = (
    Curve(
        ("`compare_records` against size", "`compare_records` 随大小的变化"),
        f"{_HERE}:compare_part",
        tuple(size for size in (32, 64, 128, 256, 512) if size <= _SIZE),
        ("MB on each side", "每边的 MB 数"),
        1.05,
    ),
)


def prepare(folder: Path) -> None:
    """Write two records and two traces that agree up to rounding, and smaller records for the curve."""
    from reprod_align import save_record
    from reprod_align.traces import RecordedTrace, TraceTensor, save_trace

    for side in ("torch", "paddle"):
        record = {f"layer.{number}": _draw(number, side) for number in range(_TENSORS)}
        save_record(folder / f"forward_{side}.npy", record)
        tensors = tuple(
            TraceTensor(name, 0, order, "", "output", "float32", array.shape, True, False, False, array)
            for order, (name, array) in enumerate(record.items())
        )  # fmt: skip
        save_trace(folder / f"{side}.trace", RecordedTrace(side, "whole", tensors))
        for size in CURVES[0].sizes:
            part = next(iter(record.values())).reshape(-1)
            whole = np.resize(part, size * 2**18)
            save_record(folder / f"part_{size}_{side}.npy", {"x": whole})


def _draw(number: int, side: str) -> np.ndarray:
    random = np.random.default_rng(number)
    array = random.standard_normal((_SIZE * 2**18 // _TENSORS // 1024, 1024), np.float32)
    if side == "paddle":
        array *= 1 + np.float32(6e-8) * random.integers(-1, 2, array.shape, np.int8)
    return array


def _paths(folder: Path, name: str = "forward_{}.npy") -> list[Path]:
    return [folder / name.format(side) for side in ("torch", "paddle")]


def compare_ours(folder: Path) -> Work:
    """Return the comparison of the two records."""
    from reprod_align import compare_records, load_record

    return lambda: _require(compare_records(*map(load_record, _paths(folder))).passed)


def compare_part(folder: Path, size: int) -> Work:
    """Return the comparison of two records of `size` MB."""
    from reprod_align import compare_records, load_record

    paths = _paths(folder, f"part_{size}_{{}}.npy")
    return lambda: _require(compare_records(*map(load_record, paths)).passed)


def diff_ours(folder: Path) -> Work:
    """Return the comparison of the two traces."""
    from reprod_align.traces import load_trace
    from reprod_align.traces.diff import compare_traces

    paths = _paths(folder, "{}.trace")
    return lambda: _require(compare_traces(*map(load_trace, paths)).passed)


def check_ours(folder: Path) -> Work:
    """Return the check of a step, as check_stepN.py makes it."""
    from reprod_align import Gate, check, official_rule

    _new_helper()  # imports Paddle
    pair = tuple(_paths(folder))
    gate = Gate("forward", pair, pair, folder / "ours.log", "", strict_rule=official_rule(1e-6))
    return lambda: _require(check(gate) == 0)


def compare_reprod_log(folder: Path) -> Work:
    """Return reprod_log's comparison of the two records."""
    helper = _new_helper()

    def work() -> None:
        helper.compare_info(*(helper.load_info(str(path)) for path in _paths(folder)))

    return work


def report_reprod_log(folder: Path) -> Work:
    """Return the same with reprod_log's report."""
    helper = _new_helper()

    def work() -> None:
        helper.compare_info(*(helper.load_info(str(path)) for path in _paths(folder)))
        helper.report(path=str(folder / "theirs.log"))

    return work


def compare_assert_close(folder: Path) -> Work:
    """Return torch's comparison of the two records, loaded with numpy."""
    import torch

    def work() -> None:
        ours, theirs = (np.load(path, allow_pickle=True).item() for path in _paths(folder))
        torch.testing.assert_close(
            *({name: torch.from_numpy(array) for name, array in side.items()} for side in (ours, theirs))
        )  # fmt: skip

    return work


def read_files(folder: Path) -> Work:
    """Return `cat` of the two records."""
    cat = shutil.which("cat") or "cat"
    return lambda: subprocess.run([cat, *_paths(folder)], stdout=subprocess.DEVNULL, check=True)


def _new_helper() -> "ReprodDiffHelper":  # type: ignore[name-defined]  # noqa: F821
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from reprod_log import ReprodDiffHelper
    return ReprodDiffHelper()


def _require(passed: bool) -> None:
    if not passed:
        raise SystemExit("the two sides should agree")
