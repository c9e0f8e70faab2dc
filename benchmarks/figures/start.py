"""Starting a command that needs no framework: on small files, to its end."""

from pathlib import Path

from benchmarks.figures.rows import Curve, Row

import numpy as np

TITLE = ("Starting a command", "启动命令")
_LIMIT = 0.3  # seconds; on an idle machine they are the time that passes


def _row(words: str) -> Row:
    name = f"`reprod-align {words}`"
    names = f"{name}, processor time", f"{name}，处理器时间"
    return Row(names, f"python -m reprod_align {words}", _LIMIT, unit="s of work")


ROWS = (
    _row("compare a.npy a.npy"),
    _row("diff a.trace a.trace"),
    _row("curves a.csv a.csv"),
)
CURVES: tuple[Curve, ...] = ()


def prepare(folder: Path) -> None:
    """Write a small record, a small trace and a training log."""
    from reprod_align import save_record
    from reprod_align.traces import RecordedTrace, TraceTensor, save_trace

    array = np.ones((4, 4), np.float32)
    save_record(folder / "a.npy", {"x": array})
    place = ("layer", 0, 0, "", "output", "float32", array.shape, True, False, False)
    save_trace(folder / "a.trace", RecordedTrace("PyTorch", "whole", (TraceTensor(*place, array),)))
    lines = [f"{step},{2 - step / 100:.4f}" for step in range(100)]
    (folder / "a.csv").write_text("\n".join(["step,loss", *lines]))
