"""Measures rows and curves: one process for each call, the two sides in turns."""

import os
import platform
import resource
import shlex
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.figures.rows import COUNT, Curve, Figure, Row, divide_medians, fit_exponent

ROOT = Path(__file__).parents[2]
UNITS = ("s", "s of work", "MB", COUNT, "GB of I/O")
"""in the order in which a child prints them"""
_PACKAGES = ("numpy", "torch", "paddlepaddle", "reprod_log")


def measure_row(row: Row, folder: Path) -> Figure:
    """Run the two sides in turns; the first turn, in which files are read from the disk, does not count."""
    ours: list[float] = []
    peer: list[float] = []
    for turn in range(row.rounds + 1):
        for work, kept in ((row.ours, ours), (row.peer, peer)):
            if work:
                measured = run_once(work, folder, row.unit)
                if turn or not row.rounds:
                    kept.append(measured)
    found = divide_medians(ours, peer, row.is_ratio)
    return Figure(*found, date.today().isoformat(), describe_machine())


def measure_curve(curve: Curve, folder: Path) -> tuple[Figure, list[float]]:
    """Return the exponent, with the time at the smallest and largest size, and the time at each."""
    seconds: list[list[float]] = [[] for _ in curve.sizes]
    for turn in range(curve.rounds + 1):
        for kept, size in zip(seconds, curve.sizes, strict=True):
            measured = run_once(curve.work, folder, "s", size)
            if turn:
                kept.append(measured)
    medians = [median(times) for times in seconds]
    exponent = fit_exponent(list(curve.sizes), medians)
    today = date.today().isoformat()
    return Figure(exponent, medians[-1], medians[0], today, describe_machine()), medians


def run_once(work: str, folder: Path, unit: str, *sizes: int) -> float:
    """Return what one call or command took, in `unit`."""
    module = work.partition(":")[0]
    if " " not in work and module.startswith("benchmarks."):
        words = [sys.executable, "-m", "benchmarks.figures.child", work, str(folder)]
        found = _run([*words, *map(str, sizes)]).split()
        return float(found[UNITS.index(unit)])
    start, worked = time.perf_counter(), _count_work()
    _run([sys.executable if word == "python" else word for word in shlex.split(work)], folder)
    return time.perf_counter() - start if unit == "s" else _count_work() - worked


def _count_work() -> float:
    """Return the processor time of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(words: list[str], folder: Path = ROOT) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)} failed: {done.stderr.strip()[-500:]}")
    return done.stdout.splitlines()[-1] if done.stdout else ""


def describe_machine() -> str:
    """Return cores, processor, system and versions in one line."""
    cores = len(os.sched_getaffinity(0))
    python = f"Python {platform.python_version()}"
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"{cores} cores, {_read_processor()}, {platform.system()}, {python}, {packages}"


def _read_processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
