"""A small BERT on both sides, with the same weights, and what recording it writes."""

from pathlib import Path
from typing import Any

import pipeline  # noqa: F401
from models import pd_bert, pt_bert
from models.bert_config import BertConfig
from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import torch as torch_backend
from reprod_align.backends.paddle import trace as paddle_trace
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.traces import load_trace
from reprod_align.traces.diff import TraceDiff, compare_traces

import numpy as np
import paddle
import torch

SMALL = BertConfig(
    vocab_size=120,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=32,
)
IDS = np.random.default_rng(0).integers(1, 120, (4, 16))
LABELS = np.array([0, 1, 1, 1])
LAYER = "bert.encoder.layer.1"


def bert_pair(dtype: str = "float64") -> tuple[Any, Any]:
    torch_backend.set_precision(dtype)
    paddle_backend.set_precision(dtype)
    torch.manual_seed(7)
    ours = pt_bert.BertForSequenceClassification(SMALL)
    theirs = pd_bert.BertForSequenceClassification(SMALL)
    turned = paddle_backend.linear_weights(theirs)
    weights = torch_backend.weights_of(ours)
    paddle_backend.load_weights(theirs, {k: v.T if k in turned else v for k, v in weights.items()})
    ours.eval()
    theirs.eval()
    return ours, theirs


def torch_loss(model: Any) -> Any:
    return torch.nn.functional.cross_entropy(model(torch.tensor(IDS)), torch.tensor(LABELS))


def paddle_loss(model: Any) -> Any:
    logits = model(paddle.to_tensor(IDS))
    return paddle.nn.functional.cross_entropy(logits, paddle.to_tensor(LABELS))


def record(folder: Path, ours: Any, theirs: Any, *modes: str) -> tuple[Path, Path]:
    first, second = modes or ("whole", "whole")
    paths = folder / f"torch_{first}.trace", folder / f"paddle_{second}.trace"
    with torch_trace.record_trace(ours, paths[0], mode=first):
        torch_loss(ours).backward()
    with paddle_trace.record_trace(theirs, paths[1], mode=second):
        paddle_loss(theirs).backward()
    return paths


def compared(paths: tuple[Path, Path], **options: Any) -> TraceDiff:
    return compare_traces(load_trace(paths[0]), load_trace(paths[1]), **options)
