"""What both BERT twins share and no framework is needed for: hyper-parameters and checkpoint names.

Field names and defaults are Hugging Face's, of bert-base-uncased.
source  https://github.com/huggingface/transformers/blob/main/src/transformers/models/bert/configuration_bert.py
"""

import json
import os
import reprlib
from collections.abc import Mapping, MutableMapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from reprod_align.errors import ReprodError

HIDDEN_ACTS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "num_labels",
)
_MOST_LAYERS, _MOST_WEIGHTS = 1000, 10**10
_ONLY = {"model_type": "bert", "position_embedding_type": "absolute"}


class ConfigError(ReprodError, ValueError):
    """A BERT configuration that cannot be read or cannot be built; the message is one line."""


@dataclass(frozen=True)
class BertConfig:
    """The hyper-parameters of a BERT.

    Raises ConfigError for a value of the wrong type or out of range.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    num_labels: int = 2
    classifier_dropout: float | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        for name in _SIZES:
            value = getattr(self, name)
            _require(_is_int(value) and value > 0, name, value, "a positive integer")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
            value = getattr(self, name)
            left_out = name == "classifier_dropout" and value is None
            _require(left_out or _is_number(value, 0.0, 1.0), name, value, "a number from 0 to 1")
        for name in ("initializer_range", "layer_norm_eps"):
            value = getattr(self, name)
            _require(_is_number(value, 0.0, 1.0), name, value, "a number from 0 to 1")
        self._check_combinations()
        self._check_size()

    def _check_combinations(self) -> None:
        heads, pad, act = self.num_attention_heads, self.pad_token_id, self.hidden_act
        multiple = f"a multiple of num_attention_heads ({heads})"
        _require(self.hidden_size % heads == 0, "hidden_size", self.hidden_size, multiple)
        id_range = f"a token id from 0 to {self.vocab_size - 1}"
        _require(_is_int(pad) and 0 <= pad < self.vocab_size, "pad_token_id", pad, id_range)
        _require(act in HIDDEN_ACTS, "hidden_act", act, f"one of {', '.join(HIDDEN_ACTS)}")

    def _check_size(self) -> None:
        """Refuse what no machine could build, before it is tried."""
        layers, width = self.num_hidden_layers, self.hidden_size
        _require(layers <= _MOST_LAYERS, "num_hidden_layers", layers, f"at most {_MOST_LAYERS}")
        rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        rows += self.num_labels + layers * (4 * width + 2 * self.intermediate_size)
        fits = rows * width <= _MOST_WEIGHTS
        _require(fits, "the number of weights", rows * width, f"at most {_MOST_WEIGHTS:.0e}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "BertConfig":
        """Take the fields that are known and ignore the rest; `num_labels` may stand as `id2label`.

        Raises ConfigError for a wrong value, or a model other than BERT with absolute positions.
        """
        for name, only in _ONLY.items():
            _require(values.get(name, only) == only, name, values.get(name), repr(only))
        known = {field.name for field in fields(cls)}
        chosen = {name: value for name, value in values.items() if name in known}
        labels = values.get("id2label")
        if "num_labels" not in chosen and isinstance(labels, dict):
            chosen["num_labels"] = len(labels)
        return cls(**chosen)

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> "BertConfig":
        """Read a Hugging Face `config.json`.

        Raises ConfigError, naming the file, if it is missing, no JSON object, or not such a BERT.
        """
        try:
            return cls.from_dict(_read_json_object(Path(path)))
        except ConfigError as error:
            raise ConfigError(f"{os.fspath(path)}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, and what else Hugging Face needs to recognise a BERT."""
        return _ONLY | asdict(self)

    def to_json_file(self, path: str | os.PathLike[str]) -> None:
        """Write a `config.json` that `from_json_file` and Hugging Face read."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")


def upgrade_names(state_dict: MutableMapping[str, Any], prefix: str = "") -> None:
    """Bring a checkpoint's names up to date, in place, for the model that begins at `prefix`.

    The old LayerNorm.gamma and beta become weight and bias; the old buffer position_ids is dropped;
    the two tied names of the language-model head, which safetensors files leave out, are put back.
    What has both its old and its new name is left for the strict loader to refuse.
    """
    for name in list(state_dict):
        new = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        new = new.replace("LayerNorm.beta", "LayerNorm.bias")
        if new not in state_dict:
            state_dict[new] = state_dict.pop(name)
        if name.endswith("embeddings.position_ids"):
            del state_dict[name]
    head, words = f"{prefix}cls.predictions.", f"{prefix}bert.embeddings.word_embeddings.weight"
    if f"{head}bias" in state_dict and words in state_dict:
        state_dict.setdefault(f"{head}decoder.weight", state_dict[words])
        state_dict.setdefault(f"{head}decoder.bias", state_dict[f"{head}bias"])


def _read_json_object(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"expected a JSON object, got {reprlib.repr(values)}")
    return values


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{name} must be {expected}, got {reprlib.repr(value)}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
