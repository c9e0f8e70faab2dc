"""BERT from PyTorch to Paddle: which models a checkpoint belongs to, and what proves the result.

The one module of the pipeline that needs both frameworks at once.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from models import pd_bert, pt_bert
from models.bert_config import BertConfig, upgrade_names
from pipeline import settings
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.base.text import shorten
from reprod_align.conversion import Conversion, ConversionResult, convert
from reprod_align.conversion.weight_map import ModelPair
from reprod_align.errors import WeightsError
from reprod_align.pair import paddle_side, torch_side
from reprod_align.weights.reading import Checkpoint, open_checkpoint

import numpy as np
import paddle
import torch

Models = tuple[torch.nn.Module, paddle.nn.Layer]


# Names that PaddleNLP gives its models, and Hugging Face the same ones
PADDLENLP_CLASSES = {"BertForPreTraining": "BertForPretraining"}


@dataclass(frozen=True)
class ConvertedTensor:
    """One converted tensor: how it is called, shaped and distributed on both sides."""

    torch_name: str
    paddle_name: str
    torch: np.ndarray
    paddle: np.ndarray
    transposed: bool

    HEADERS = ("torch name", "paddle name", "torch shape", "paddle shape", "transposed",
               "torch mean", "paddle mean", "torch std", "paddle std")  # fmt: skip

    def cells(self) -> tuple[str, ...]:
        """Return what stands under HEADERS."""
        means = (f"{side.mean():.3e}" for side in (self.torch, self.paddle))
        stds = (f"{side.std():.3e}" for side in (self.torch, self.paddle))
        shapes = (str(side.shape) for side in (self.torch, self.paddle))
        transposed = "yes" if self.transposed else "no"
        return (self.torch_name, self.paddle_name, *shapes, transposed, *means, *stds)


def convert_checkpoint(
    path: Path, output: Path, config: BertConfig, target: str
) -> tuple[list[ConvertedTensor], str]:
    """Convert a checkpoint for `target` ("pd_bert" or "paddlenlp"), once both models' outputs agree.

    Returns the tensors, and the agreement in words. Raises WeightsError, with nothing written, if a
    tensor does not fit or an output differs.
    """
    source = open_checkpoint(path)
    content = dict(source.content)
    upgrade_names(content)
    source = replace(source, content=content)
    build = _build_paddlenlp_pair if target == "paddlenlp" else _build_twins
    ours, theirs = build(_find_architecture(source), config)
    pair = ModelPair(torch_side(ours), paddle_side(theirs), _make_batch(config))
    done = convert(Conversion(source, output), pair)
    if done.faults:
        raise WeightsError(f"the weights do not fit the model: {shorten(done.faults, 8, '; ')}")
    if done.agreement is None or not done.agreement.passed:
        raise WeightsError(str(done.agreement and done.agreement.summary()))
    return _list_rows(done, source, open_checkpoint(output)), done.agreement.summary()


def _list_rows(
    done: ConversionResult, source: Checkpoint, written: Checkpoint
) -> list[ConvertedTensor]:
    """Return the tensors of both files, one to one as BERT's are, in the checkpoint's order."""
    rules = {rule.name: rule for rule in done.map.rules if rule.paddle} if done.map else {}
    return [
        ConvertedTensor(
            name,
            rules[name].paddle[0],
            tensor.values(),
            written.tensors[rules[name].paddle[0]].values(),
            all(rules[name].transposed),
        )
        for name, tensor in source.tensors.items()
        if name in rules
    ]


def _make_batch(config: BertConfig) -> dict[str, np.ndarray]:
    """Return two sentences, (2, 16) each: one is padded, the other has two segments."""
    words = np.random.default_rng(settings.SEED).integers(1, config.vocab_size, size=(2, 16))
    attention_mask, token_type_ids = np.ones_like(words), np.zeros_like(words)
    attention_mask[1, 10:] = 0
    token_type_ids[0, 8:] = config.type_vocab_size - 1
    return {
        "input_ids": words,
        "attention_mask": attention_mask,
        "token_type_ids": token_type_ids,
    }


def _find_architecture(source: Checkpoint) -> str:
    heads = {
        "cls.seq_relationship.weight": "BertForPreTraining",
        "cls.predictions.bias": "BertForMaskedLM",
        "classifier.weight": "BertForSequenceClassification",
    }
    return next((name for head, name in heads.items() if head in source.content), "BertModel")


def _build_twins(architecture: str, config: BertConfig) -> Models:
    if architecture == "BertForPreTraining":
        raise WeightsError("models/pd_bert.py has no next-sentence head: use --target paddlenlp")
    _build_in_float32()
    return getattr(pt_bert, architecture)(config), getattr(pd_bert, architecture)(config)


def _build_paddlenlp_pair(architecture: str, config: BertConfig) -> Models:
    import transformers
    from paddlenlp import transformers as paddlenlp_transformers

    _build_in_float32()
    shape = config.to_dict()
    pt_model = getattr(transformers, architecture)
    pd_model = getattr(paddlenlp_transformers, PADDLENLP_CLASSES.get(architecture, architecture))
    return (
        pt_model(transformers.BertConfig(**shape)),
        pd_model(paddlenlp_transformers.BertConfig(**shape)),
    )


def _build_in_float32() -> None:  # the conversion works in float64, on copies
    paddle.set_device("cpu")
    pt_backend.set_precision("float32")
    pd_backend.set_precision("float32")
