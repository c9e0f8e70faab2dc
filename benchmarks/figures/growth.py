"""How the time of `align` on a faithful pair grows with the model and the batch; one thread, float64."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures.rows import Curve, Row, Texts

import numpy as np

TITLE = ("How `align` grows", "`align` 的增长")
_HERE = "benchmarks.figures.growth"
_LENGTH, _WORDS = 32, 1000

ROWS: tuple[Row, ...] = ()


def _grow(name: str, work: str, sizes: tuple[int, ...], axis: Texts, target: float) -> Curve:
    names = f"`align` against {name}", f"`align` 随{axis[1]}的变化"
    return Curve(names, f"{_HERE}:{work}", sizes, axis, target, rounds=2)


CURVES = (
    _grow("depth", "judge_deep", (2, 4, 8, 16), ("layers", "层数"), 1.1),
    _grow("width", "judge_wide", (128, 256, 512, 1024), ("hidden size", "隐藏维度"), 2.1),
    _grow("batch", "judge_batch", (4, 8, 16, 32), ("sentences", "句子数"), 1.1),
    _grow("tensors", "judge_tensors", (32, 64, 128, 256), ("Linear layers", "Linear 层数"), 1.1),
)


def prepare(folder: Path) -> None:
    """Need nothing: the weights are random."""


def judge_deep(folder: Path, layers: int) -> Callable[[], None]:
    """Return `align` on a BERT of so many layers."""
    return _judge_bert(layers=layers)


def judge_wide(folder: Path, hidden: int) -> Callable[[], None]:
    """Return `align` on a BERT of this hidden size, whose weights grow with its square."""
    return _judge_bert(hidden=hidden)


def judge_batch(folder: Path, sentences: int) -> Callable[[], None]:
    """Return `align` on so many sentences."""
    return _judge_bert(sentences=sentences)


def judge_tensors(folder: Path, count: int) -> Callable[[], None]:
    """Return `align` on so many small Linear layers, each with a weight and a bias."""
    _use_one_thread()
    import paddle
    import torch

    ours = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(count)])
    theirs = paddle.nn.Sequential(*[paddle.nn.Linear(16, 16) for _ in range(count)])
    return _judge(ours, theirs, {"input": np.random.default_rng(0).normal(size=(4, 16))})


def _judge_bert(layers: int = 2, hidden: int = 256, sentences: int = 4) -> Callable[[], None]:
    _use_one_thread()
    from models import pd_bert, pt_bert
    from models.bert_config import BertConfig

    config = BertConfig(
        vocab_size=_WORDS,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * hidden,
    )
    models = (half.BertForSequenceClassification(config) for half in (pt_bert, pd_bert))
    ids = np.random.default_rng(0).integers(1, _WORDS, (sentences, _LENGTH))
    return _judge(*models, {"input_ids": ids})


def _use_one_thread() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # read when the frameworks are imported


def _judge(ours: Any, theirs: Any, inputs: dict[str, np.ndarray]) -> Callable[[], None]:
    from reprod_align import align

    def judge() -> None:
        report = align(ours, theirs, inputs)
        assert report.passed, report.summary()

    return judge
