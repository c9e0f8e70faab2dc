"""BERT from PyTorch to Paddle: which models a checkpoint belongs to, their names, and the proof.

The one module of the pipeline that needs both frameworks at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models import pd_bert, pt_bert
from models.bert_config import BertConfig, upgrade_names
from pipeline import settings
from pipeline.bert.hf_checkpoint import Weights
from reprod_align import STRICT, compare_records
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.errors import WeightsError
from reprod_align.weights.convert import Row, convert

import numpy as np
import paddle
import torch

# Quick start, section 3.2, for PaddleNLP 2.8.1. Applied in this order: the attention's output must
# be renamed before the layer's output, which ends alike.
PADDLENLP_NAMES = {
    "embeddings.LayerNorm": "embeddings.layer_norm",
    "encoder.layer.": "encoder.layers.",
    "attention.self.query": "self_attn.q_proj",
    "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj",
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
    "predictions.transform.dense": "predictions.transform",
    "predictions.transform.LayerNorm": "predictions.layer_norm",
    "predictions.bias": "predictions.decoder_bias",
}

# Names that PaddleNLP gives its models, and Hugging Face the same ones
PADDLENLP_CLASSES = {"BertForPreTraining": "BertForPretraining"}


@dataclass(frozen=True)
class Pair:
    """A checkpoint's model in both frameworks, in float64, and the Paddle name of each PyTorch name."""

    torch: torch.nn.Module
    paddle: paddle.nn.Layer
    paddle_name: Callable[[str], str]


def convert_checkpoint(path: Path, config: BertConfig, target: str) -> tuple[Pair, list[Row]]:
    """Convert a checkpoint for `target` ("pd_bert" or "paddlenlp"); WeightsError if it does not fit."""
    weights = pt_backend.read_weights(path)
    upgrade_names(weights)
    pair = (_build_paddlenlp_pair if target == "paddlenlp" else _build_twins)(
        _find_architecture(weights), config
    )
    layouts = pt_backend.layout(pair.torch), pd_backend.layout(pair.paddle)
    return pair, convert(weights, *layouts, pair.paddle_name)


def verify(pair: Pair, rows: list[Row]) -> float:
    """Run both models on the same sentences, one of them padded, and compare every output in float64.

    Returns the largest relative difference. Raises WeightsError if an output differs.
    """
    pt_backend.load_weights(pair.torch, {row.torch_name: row.torch for row in rows})
    pd_backend.load_weights(pair.paddle, {row.paddle_name: row.paddle for row in rows})
    words, token_types = _find_table_size(rows, "word"), _find_table_size(rows, "token_type")
    input_ids = np.random.default_rng(settings.SEED).integers(1, words, size=(2, 16))
    attention_mask, token_type_ids = np.ones_like(input_ids), np.zeros_like(input_ids)
    attention_mask[1, 10:] = 0
    token_type_ids[0, 8:] = token_types - 1
    batch = {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "token_type_ids": token_type_ids,
    }
    expected = _run_model(pair.torch, torch.from_numpy, batch)
    actual = _run_model(pair.paddle, paddle.to_tensor, batch)
    comparison = compare_records(expected, actual, rule=STRICT)
    if not comparison.passed:
        raise WeightsError(f"the converted weights give another result: {comparison.reason}")
    return max(result.difference.max_rel for result in comparison.results)


def _find_architecture(weights: Weights) -> str:
    heads = {
        "cls.seq_relationship.weight": "BertForPreTraining",
        "cls.predictions.bias": "BertForMaskedLM",
        "classifier.weight": "BertForSequenceClassification",
    }
    return next((name for head, name in heads.items() if head in weights), "BertModel")


def _build_twins(architecture: str, config: BertConfig) -> Pair:
    if architecture == "BertForPreTraining":
        raise WeightsError("models/pd_bert.py has no next-sentence head: use --target paddlenlp")
    _set_precision("float64")
    models = (getattr(module, architecture) for module in (pt_bert, pd_bert))
    return Pair(*(model(config) for model in models), paddle_name=lambda name: name)


def _build_paddlenlp_pair(architecture: str, config: BertConfig) -> Pair:
    import transformers
    from paddlenlp import transformers as paddlenlp_transformers

    _set_precision("float64")
    shape = config.to_dict()
    pt_model = getattr(transformers, architecture)
    pd_model = getattr(paddlenlp_transformers, PADDLENLP_CLASSES.get(architecture, architecture))
    return Pair(
        pt_model(transformers.BertConfig(**shape)),
        pd_model(paddlenlp_transformers.BertConfig(**shape)),
        _rename_for_paddlenlp,
    )


def _rename_for_paddlenlp(name: str) -> str:
    for torch_part, paddle_part in PADDLENLP_NAMES.items():
        name = name.replace(torch_part, paddle_part)
    return name


def _set_precision(dtype: str) -> None:
    paddle.set_device("cpu")
    pt_backend.set_precision(dtype)
    pd_backend.set_precision(dtype)


def _find_table_size(rows: list[Row], kind: str) -> int:
    name = f"embeddings.{kind}_embeddings.weight"
    return next(len(row.torch) for row in rows if row.torch_name.endswith(name))


def _run_model(
    model: Any, tensor: Callable[[Any], Any], batch: Mapping[str, Any]
) -> Mapping[str, Any]:
    model.eval()
    with torch.no_grad(), paddle.no_grad():
        output = model(**{name: tensor(array) for name, array in batch.items()})
    parts = output.to_tuple() if hasattr(output, "to_tuple") else output
    parts = parts if isinstance(parts, tuple) else (parts,)
    return {f"output_{i}": part.numpy() for i, part in enumerate(parts) if part is not None}
