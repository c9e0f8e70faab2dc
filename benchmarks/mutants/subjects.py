"""The ports whose lines are mutated: two twins of this repository, and PaddleNLP's modeling files."""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pipeline  # noqa: F401
from examples.zoo.pair import Pair, move_weights, tokens
from models import bert_config, pt_bert, pt_informer
from tests.alignment.test_real_ports import FAITHFUL, FAITHFUL_TOO, PAIRED, Built

import numpy as np
import paddle
import torch


@dataclass(frozen=True)
class Subject:
    """One port: its module, and how it is built from a mutated copy of that module."""

    module: str
    build: Callable[[ModuleType], Built]

    @property
    def path(self) -> Path:
        """Where the source lies."""
        found = importlib.util.find_spec(self.module)
        assert found is not None and found.origin is not None
        return Path(found.origin)

    def load(self, path: Path) -> ModuleType:
        """Import the copy at `path`, in the place of the original as far as its own imports go."""
        spec = importlib.util.spec_from_file_location(f"{self.module}_mutant", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    def make(self, module: ModuleType) -> Built:
        """Build both models from fixed seeds; PyTorch's weights are moved away from their constants."""
        torch.manual_seed(0)
        paddle.seed(0)
        first, second, inputs = self.build(module)
        return move_weights(first), second, inputs


class _Zoo:
    """PaddleNLP's classes, those of the mutated module in the place of the originals."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        from paddlenlp import transformers

        return getattr(self._module, name, None) or getattr(transformers, name)


def _build_port(pair: Pair) -> Callable[[ModuleType], Built]:
    def build(module: ModuleType) -> Built:
        import transformers

        return pair.torch(transformers), pair.paddle(_Zoo(module)), pair.batch()

    return build


def _build_bert(module: ModuleType) -> Built:
    config = bert_config.BertConfig(
        vocab_size=101, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=20, num_labels=3,
    )  # fmt: skip
    mask = np.ones((2, 10), "int64")
    mask[-1, -3:] = 0
    types = np.zeros((2, 10), "int64")
    types[:, 5:] = 1
    models = [it.BertForSequenceClassification(config) for it in (pt_bert, module)]
    inputs = {"input_ids": tokens(), "attention_mask": mask, "token_type_ids": types}
    return models[0], models[1], inputs


def _build_informer(module: ModuleType) -> Built:
    sizes = dict(enc_in=3, dec_in=3, c_out=2, seq_len=12, label_len=6, out_len=4, d_model=8)
    sizes |= dict(n_heads=2, e_layers=2, d_layers=1, d_ff=12, factor=1, dropout=0.2, embed="timeF")
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 12, 3)), random.normal(size=(2, 10, 3))
    models = [it.Informer(**sizes) for it in (pt_informer, module)]
    columns = models[0].arguments.mark_columns
    marks = [random.uniform(-0.5, 0.5, (2, length, columns)) for length in (12, 10)]
    return models[0], models[1], (x, marks[0], y, marks[1])


def _paddlenlp(name: str, pair: Pair) -> Subject:
    return Subject(f"paddlenlp.transformers.{name}.modeling", _build_port(pair))


SUBJECTS: Final[Mapping[str, Subject]] = {
    "pd_bert": Subject("models.pd_bert", _build_bert),
    "pd_informer": Subject("models.pd_informer", _build_informer),
    "bert": _paddlenlp("bert", FAITHFUL["bert, classifier"]),
    "electra": _paddlenlp("electra", FAITHFUL["electra, masked words"]),
    "gpt": _paddlenlp("gpt", FAITHFUL["gpt2"]),
    "clip": _paddlenlp("clip", FAITHFUL["clip"]),
    "rw": _paddlenlp("rw", FAITHFUL["falcon"]),
    "roberta": _paddlenlp("roberta", FAITHFUL_TOO["roberta"]),
    "ernie": _paddlenlp("ernie", FAITHFUL_TOO["ernie"]),
    "convbert": _paddlenlp("convbert", FAITHFUL_TOO["convbert"]),
    "squeezebert": _paddlenlp("squeezebert", FAITHFUL_TOO["squeezebert"]),
    "mobilebert": _paddlenlp("mobilebert", FAITHFUL_TOO["mobilebert"]),
    "albert": _paddlenlp("albert", FAITHFUL_TOO["albert with gelu"]),
    "mpnet": _paddlenlp("mpnet", FAITHFUL_TOO["mpnet"]),
    "luke": _paddlenlp("luke", FAITHFUL_TOO["luke with its epsilon"]),
    "bart": _paddlenlp("bart", FAITHFUL_TOO["bart"]),
    "pegasus": _paddlenlp("pegasus", FAITHFUL_TOO["pegasus"]),
    "opt": _paddlenlp("opt", FAITHFUL_TOO["opt, no mask"]),
    "dpt": _paddlenlp("dpt", FAITHFUL_TOO["dpt"]),
    "bit": _paddlenlp("bit", FAITHFUL_TOO["bit"]),
    "llama": _paddlenlp("llama", PAIRED["llama, fused"][0]),
}
