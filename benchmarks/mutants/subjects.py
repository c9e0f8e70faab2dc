"""The ports whose lines are mutated: twins of this repository, PaddleNLP's modeling files, Paddle's networks.

`files.json` keeps two lists apart. With the files for development one may look at every mutant. Of the
files for the score only the table is looked at: who develops with them has no measure left.
"""

import importlib.util
import json
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import pipeline  # noqa: F401
from examples.zoo import torchvision_models
from examples.zoo.pair import Pair, move_weights, tokens
from examples.zoo.vision_table import PAIRS
from models import bert_config, pt_bert, pt_informer
from tests.alignment.test_real_ports import FAITHFUL, FAITHFUL_TOO, PAIRED, Built, port

import numpy as np
import paddle
import torch

Family = Literal["twin", "encoder", "decoder", "seq2seq", "vision"]
Use = Literal["development", "score"]
DRAWN_FOR_SCORE = 3  # of each family that has as many
_SEED = 26


@dataclass(frozen=True)
class Subject:
    """One port: its module, and how it is built from a mutated copy of that module."""

    module: str
    build: Callable[[ModuleType], Built]
    family: Family = "twin"
    seen: bool = True
    """whether an earlier benchmark mutated this file, so that it is for development"""

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


@dataclass(frozen=True)
class _Mutated:
    """A package's classes, those of the mutated module in the place of the originals."""

    module: ModuleType
    package: ModuleType

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name, None) or getattr(self.package, name)


def build_port(
    pair: Pair, ours: Callable[[], Any], theirs: Callable[[], ModuleType]
) -> Callable[[ModuleType], Built]:
    """Return what builds a pair of the zoo from a mutated module; ours, theirs: import the packages."""

    def build(module: ModuleType) -> Built:
        return pair.torch(ours()), pair.paddle(_Mutated(module, theirs())), pair.batch()

    return build


def _build_twin(name: str) -> Callable[[ModuleType], Built]:
    def build(module: ModuleType) -> Built:
        reference = import_module(f"benchmarks.mutants.pairs.pt_{name}")
        return reference.make(), module.make(), reference.inputs()

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


def _paddlenlp(name: str, family: Family, pair: Pair, seen: bool = True) -> Subject:
    build = build_port(
        pair,
        partial(import_module, "transformers"),
        partial(import_module, "paddlenlp.transformers"),
    )
    return Subject(f"paddlenlp.transformers.{name}.modeling", build, family, seen)


def _vision(file: str, name: str) -> Subject:
    pair = next(one for one in PAIRS if one.name == name)
    build = build_port(pair, lambda: torchvision_models, lambda: paddle.vision.models)
    return Subject(f"paddle.vision.models.{file}", build, "vision")


def _twin(name: str) -> Subject:
    return Subject(f"benchmarks.mutants.pairs.pd_{name}", _build_twin(name))


def _unseen(name: str, family: Family, *pair: str) -> Subject:
    return _paddlenlp(name, family, port(*pair or (name,)), seen=False)


_CLASSIFIER = "ForSequenceClassification"
SUBJECTS: Final[Mapping[str, Subject]] = {
    "pd_bert": Subject("models.pd_bert", _build_bert),
    "pd_informer": Subject("models.pd_informer", _build_informer),
    "bert": _paddlenlp("bert", "encoder", FAITHFUL["bert, classifier"]),
    "electra": _paddlenlp("electra", "encoder", FAITHFUL["electra, masked words"]),
    "gpt": _paddlenlp("gpt", "decoder", FAITHFUL["gpt2"]),
    "clip": _paddlenlp("clip", "vision", FAITHFUL["clip"]),
    "rw": _paddlenlp("rw", "decoder", FAITHFUL["falcon"]),
    "roberta": _paddlenlp("roberta", "encoder", FAITHFUL_TOO["roberta"]),
    "ernie": _paddlenlp("ernie", "encoder", FAITHFUL_TOO["ernie"]),
    "convbert": _paddlenlp("convbert", "encoder", FAITHFUL_TOO["convbert"]),
    "squeezebert": _paddlenlp("squeezebert", "encoder", FAITHFUL_TOO["squeezebert"]),
    "mobilebert": _paddlenlp("mobilebert", "encoder", FAITHFUL_TOO["mobilebert"]),
    "albert": _paddlenlp("albert", "encoder", FAITHFUL_TOO["albert with gelu"]),
    "mpnet": _paddlenlp("mpnet", "encoder", FAITHFUL_TOO["mpnet"]),
    "luke": _paddlenlp("luke", "encoder", FAITHFUL_TOO["luke with its epsilon"]),
    "bart": _paddlenlp("bart", "seq2seq", FAITHFUL_TOO["bart"]),
    "pegasus": _paddlenlp("pegasus", "seq2seq", FAITHFUL_TOO["pegasus"]),
    "opt": _paddlenlp("opt", "decoder", FAITHFUL_TOO["opt, no mask"]),
    "dpt": _paddlenlp("dpt", "vision", FAITHFUL_TOO["dpt"]),
    "bit": _paddlenlp("bit", "vision", FAITHFUL_TOO["bit"]),
    "llama": _paddlenlp("llama", "decoder", PAIRED["llama, fused"][0]),
    "mpnet-words": _paddlenlp("mpnet", "encoder", FAITHFUL["mpnet, masked words"]),
    "bert-words": _paddlenlp("bert", "encoder", FAITHFUL_TOO["bert, masked words"]),
    "bigbird": _unseen("bigbird", "encoder"),
    "funnel": _unseen("funnel", "encoder", "funnel", _CLASSIFIER),
    "layoutlm": _unseen("layoutlm", "encoder", "layoutlm", _CLASSIFIER),
    "nezha": _unseen("nezha", "encoder", "nezha", _CLASSIFIER),
    "nystromformer": _unseen("nystromformer", "encoder", "nystromformer", _CLASSIFIER),
    "roformer": _unseen("roformer", "encoder", "roformer", "ForMaskedLM"),
    "tinybert": _unseen("tinybert", "encoder", "tinybert", "ForQuestionAnswering"),
    "bloom": _unseen("bloom", "decoder", "bloom", "ForCausalLM"),
    "ctrl": _paddlenlp("ctrl", "decoder", port("ctrl", "LMHeadModel")),
    "xlm": _unseen("xlm", "decoder", "xlm", "WithLMHeadModel"),
    "mbart": _unseen("mbart", "seq2seq"),
    "mt5": _unseen("mt5", "seq2seq"),
    "t5": _unseen("t5", "seq2seq"),
    "blip": _unseen("blip", "vision", "blip", "ForConditionalGeneration"),
    "chineseclip": _unseen("chineseclip", "vision"),
    "clipseg": _unseen("clipseg", "vision"),
    "translator": _twin("translator"),
    "recommender": _twin("recommender"),
    "graph": _twin("graph"),
    "series": _twin("series"),
    "denoiser": _twin("denoiser"),
    "speech": _twin("speech"),
    "resnet": _vision("resnet", "resnet18"),
    "mobilenetv2": _vision("mobilenetv2", "mobilenet_v2"),
    "mobilenetv3": _vision("mobilenetv3", "mobilenet_v3_small"),
    "shufflenetv2": _vision("shufflenetv2", "shufflenet_v2_x0_5"),
    "densenet": _vision("densenet", "densenet121"),
    "vgg": _vision("vgg", "vgg11"),
}
_LISTS = Path(__file__).with_name("files.json")


def load_lists() -> Mapping[Use, list[str]]:
    """Return the names of the files for development and of those for the score."""
    lists: Mapping[Use, list[str]] = json.loads(_LISTS.read_text(encoding="utf-8"))["files"]
    return lists


def draw_lists() -> dict[Use, list[str]]:
    """Draw the files for the score, as many of each family, from those that nobody has mutated yet.

    `files.json` holds what this returned; a subject that is added later is for development, unless
    the measure is frozen anew.
    """
    source = random.Random(_SEED)
    families: dict[str, list[str]] = {}
    for name, subject in SUBJECTS.items():
        if not subject.seen:
            families.setdefault(subject.family, []).append(name)
    drawn = (source.sample(it, min(len(it), DRAWN_FOR_SCORE)) for it in families.values())
    score = {name for names in drawn for name in names}
    return {
        "development": [name for name in SUBJECTS if name not in score],
        "score": [name for name in SUBJECTS if name in score],
    }
