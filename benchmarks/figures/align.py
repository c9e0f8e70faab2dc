"""What `align` costs at bert-base's shape: 12 layers, 2 x 64 tokens, one thread, float64.

A pass is the forward and backward pass of both models in float64, with nothing recorded or compared.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.figures.rows import Curve, Row

import numpy as np

TITLE = ("`align`, beside a forward and backward pass of both models in float64",
         "`align`，对比两个模型各一次 float64 前向和反向")  # fmt: skip
_BATCH, _LENGTH, _LAYERS = 2, 64, 12
_PARAMETERS = 109_483_778
_BYTES = 24  # for each parameter
_HERE = "benchmarks.figures.align"
_WORKING = ExitStack()
"""what stays in force until the process ends: a stack of a function's own would be left with it"""

ROWS = (
    Row(("a faithful pair", "忠实的模型对"), f"{_HERE}:judge_faithful", 2.0, f"{_HERE}:run_both",
        "s of work"),
    Row(("one LayerNorm's epsilon is wrong", "一个 LayerNorm 的 epsilon 错误"), f"{_HERE}:judge_wrong", 5.0,
        f"{_HERE}:run_both", "s of work"),
    Row(("memory beyond the two models, a faithful pair", "除两个模型外的内存，忠实的模型对"),
        f"{_HERE}:judge_faithful", _BYTES * _PARAMETERS / 2**20, unit="MB"),
)  # fmt: skip
CURVES: tuple[Curve, ...] = ()


def prepare(folder: Path) -> None:
    """Need nothing: the weights are random."""


def judge_faithful(folder: Path) -> Callable[[], None]:
    """Return `align` on a faithful pair."""
    return _judge(None)


def judge_wrong(folder: Path) -> Callable[[], None]:
    """Return `align` on a pair in which one LayerNorm of the port has another epsilon."""
    return _judge(1e-5)


def _judge(epsilon: float | None) -> Callable[[], None]:
    ours, theirs = make_pair()
    from reprod_align import align

    if epsilon is not None:
        theirs.bert.encoder.layer[_LAYERS // 2].output.LayerNorm._epsilon = epsilon
    ids = draw_ids()

    def judge() -> None:
        report = align(ours, theirs, {"input_ids": ids})
        assert report.passed == (epsilon is None), report.summary()

    return judge


def run_both(folder: Path) -> Callable[[], None]:
    """Return a forward and backward pass of both models in float64; both have run once."""
    ours, theirs = make_pair()
    from reprod_align.pair import paddle_side, torch_side

    import paddle
    import torch

    ids = draw_ids()
    for side in (torch_side(ours), paddle_side(theirs)):
        _WORKING.enter_context(side.working("float64"))

    def run() -> None:
        outputs = ours(torch.tensor(ids)), theirs(paddle.to_tensor(ids))
        assert (outputs[0].dtype, outputs[1].dtype) == (torch.float64, paddle.float64)
        for output in outputs:
            output.sum().backward()
        ours.zero_grad()
        theirs.clear_gradients(set_to_zero=False)

    run()
    return run


def make_pair() -> tuple[Any, Any]:
    """Return BERT in both frameworks, in float32 and eval mode; one thread from now on."""
    os.environ["OMP_NUM_THREADS"] = "1"  # read when the frameworks are imported
    from models import pd_bert, pt_bert
    from models.bert_config import BertConfig

    import torch

    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=_LAYERS)
    theirs = pd_bert.BertForSequenceClassification(config)
    theirs.eval()
    return pt_bert.BertForSequenceClassification(config).eval(), theirs


def draw_ids() -> np.ndarray:
    """Return the sentences' tokens, (2, 64)."""
    return np.random.default_rng(0).integers(1, 1000, (_BATCH, _LENGTH))
