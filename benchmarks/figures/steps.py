"""The five steps in float32 at bert-base's shape: `pipeline.align` beside scripts written plainly.

Both sides start from the same weights, fake data and sentences, and end with reprod_log's five logs. Plain
(`benchmarks/plain`): six scripts a side and a check after each, one process after another; each imports its
framework and reprod_log, builds BERT and loads it. Ours judges the same and more: the order of
batches, four schedules, six losses, five metrics, single outliers, and a report.
"""

import subprocess
import sys
from itertools import islice
from pathlib import Path

from benchmarks.figures.measure import ROOT
from benchmarks.figures.rows import Curve, Row

TITLE = (
    "The five steps in float32, beside plain scripts",
    "float32 的五个步骤，对比直接编写的脚本",
)
SENTENCES = {"train.tsv": 64, "dev.tsv": 16}
"""four steps of Step 5, and what it and Step 2 score"""
_PROFILE = "--profile random-base --dtype float32 --epochs 1"
_OURS = f"python -m pipeline.align {_PROFILE} --prepared --home . --data-dir ."
_PLAIN = "python -m benchmarks.plain . ."
_ONE_THREAD = "env OMP_NUM_THREADS=1"

ROWS = (
    Row(("the five steps, time: `pipeline.align --dtype float32` / plain scripts",
         "五个步骤，时间：`pipeline.align --dtype float32` / 直接编写的脚本"),
        _OURS, 0.5, _PLAIN, rounds=0),
    # the passes of the models are the same on both sides, so that this one has no target
    Row(("the five steps, processor time, one thread: `pipeline.align --dtype float32` / plain scripts",
         "五个步骤，处理器时间，单线程：`pipeline.align --dtype float32` / 直接编写的脚本"),
        f"{_ONE_THREAD} {_OURS}", None, f"{_ONE_THREAD} {_PLAIN}", "s of work", rounds=0),
)  # fmt: skip
CURVES: tuple[Curve, ...] = ()


def prepare(folder: Path) -> None:
    """Make weights, fake data and sentences, which both sides read."""
    from pipeline.align import PREPARATION
    from pipeline.corpus import DEMO_FOLDER

    for name, count in SENTENCES.items():
        with (DEMO_FOLDER / name).open(encoding="utf-8") as lines:
            (folder / name).write_text("".join(islice(lines, count + 1)), "utf-8")
    (folder / "plain").mkdir()
    for script in (script for scripts in PREPARATION for script in scripts):
        words = [
            sys.executable,
            str(ROOT / script),
            "--profile",
            "random-base",
            "--home",
            str(folder),
        ]
        subprocess.run(words, check=True, capture_output=True)
