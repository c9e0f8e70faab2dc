"""Two workers beside one process: rows of the zoo, and a large model in sections.

The workers' start is part of it: a scheduler, and two processes that import both frameworks and make their
own models.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.figures.rows import Curve, Row

TITLE = ("Two workers beside one process", "两个 worker 对比一个进程")
ZOO: Final = ("bert", "ernie", "gpt")
_LAYERS: Final = 5
_SECTIONS: Final = f"python -m benchmarks.sections llama --layers {_LAYERS} --jobs"

ROWS = (
    Row(("18 rows of the zoo, time: `--jobs 2` / `--jobs 1`", "模型库 18 行，时间：`--jobs 2` / `--jobs 1`"),
        "benchmarks.figures.workers:judge_in_two", 0.6, "benchmarks.figures.workers:judge_in_one", rounds=1),
    Row(("a LLaMA of 5 layers in TinyLlama's shape in sections, time: `--jobs 2` / `--jobs 1`",
         "TinyLlama 形状的 5 层 LLaMA 分段检验，时间：`--jobs 2` / `--jobs 1`"),
        f"{_SECTIONS} 2", 0.6, f"{_SECTIONS} 1", rounds=1),
)  # fmt: skip
CURVES: tuple[Curve, ...] = ()


def prepare(folder: Path) -> None:
    """Do nothing: the first turn, which does not count, writes the weights."""


def judge_in_one(folder: Path) -> Callable[[], None]:
    """Return the judgement of the rows in this process."""
    return partial(_judge, 1, ZOO)


def judge_in_two(folder: Path) -> Callable[[], None]:
    """Return the judgement of the rows in two workers."""
    return partial(_judge, 2, ZOO)


def _judge(jobs: int, words: Sequence[str]) -> None:
    import pipeline  # noqa: F401  (quietens the frameworks)
    from examples.zoo import running
    from examples.zoo.tables import choose
    from reprod_align.base.tasks import Workers

    chosen = [(table, pair) for table, pair in choose(words) if not any(table.environments)]
    with tempfile.TemporaryDirectory() as folder:
        running.ROWS = Path(folder)
        rows = dict(running.judge_pairs(chosen, 60.0, Workers(jobs)))
    if len(rows) != len(chosen):
        raise RuntimeError(f"{len(rows)} rows of {len(chosen)}")
