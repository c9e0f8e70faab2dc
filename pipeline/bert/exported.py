"""BERT's weights, shape and vocabulary: what a Hugging Face checkpoint holds, what is exported of it."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from models.bert_config import BertConfig, upgrade_names
from pipeline.profiles import PROFILES, find_source, find_source_vocabulary, read_source_config
from pipeline.run import Run, make_run
from pipeline.settings import NUM_LABELS
from reprod_align.base.files import whole_file
from reprod_align.errors import RefusedError, ReprodError

import numpy as np
from numpy.typing import NDArray

SCRIPT = "weights/torch_bert_weight.py"
SPECIAL_TOKENS = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}
BERT_FILES = {"torch": "torch_weight.bin", "paddle": "paddle_weight.pdparams"}


def weight_files(run: Run, side: str) -> tuple[Path, Path]:
    """Return where the weights of BertModel and of the classifier lie; side: "torch" or "paddle".

    There is one file of classifier weights for each number of labels.
    """
    labels = run.task.num_labels
    suffix = "" if labels == NUM_LABELS else f"_{labels}"
    classifier = f"{side}_classifier_weights{suffix}.bin"
    return run.home / "weights" / BERT_FILES[side], run.home / "classifier_weights" / classifier


def description_file(run: Run) -> Path:
    """Return where the checkpoint's config.json lies; it has two entries of ours."""
    return run.home / "weights" / "config.json"


def read_config(run: Run) -> BertConfig:
    """Return the shape of the exported BERT, with as many labels as the task has."""
    _read_description(run)
    return replace(BertConfig.from_json_file(description_file(run)), num_labels=run.task.num_labels)


def find_vocabulary(run: Run) -> Path:
    """Return the vocabulary that both tokenizers read, checked."""
    path = run.require(run.home / "weights" / "vocab.txt", SCRIPT)
    require_vocabulary(path, read_config(run), f"run {run.command(SCRIPT)} again")
    return path


def reads_lower_case(run: Run) -> bool:
    """Return whether the tokenizers lower-case the sentences, as the checkpoint's own does."""
    return bool(_read_description(run)["do_lower_case"])


def layer_names(config: BertConfig) -> list[str]:
    """Return the layers whose outputs Step 1 compares, in the order of the forward pass."""
    encoder = [f"bert.encoder.layer.{number}" for number in range(config.num_hidden_layers)]
    return ["bert.embeddings", *encoder, "bert.pooler", "classifier"]


def find_exported_run(home: Path) -> Run:
    """Return a run of the profile whose weights lie in `home`; ReprodError if there are none."""
    return make_run(home=home, profile=_parse_description(make_run(home=home))["profile"])


def require_vocabulary(path: Path, config: BertConfig, remedy: str) -> None:
    """Raise ReprodError unless the file holds the special tokens, and at most the model's words."""
    words = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not SPECIAL_TOKENS <= set(words) or len(words) > config.vocab_size:
        tokens = ", ".join(sorted(SPECIAL_TOKENS))
        raise ReprodError(
            f"{path}: expected the vocabulary of this model (at most {config.vocab_size} words, among "
            f"them {tokens}), got {len(words)} words: {remedy}"
        )


def _read_description(run: Run) -> Mapping[str, object]:
    """Return config.json; ReprodError if it is missing, damaged or of another profile."""
    description = _parse_description(run)
    found = description["profile"]
    if found != run.profile.name:
        raise RefusedError(
            f"{description_file(run).parent} holds the weights of profile {found}, not "
            f"{run.profile.name}: add --profile {found}, or first run {run.command(SCRIPT)}"
        )
    return description


def _parse_description(run: Run) -> Mapping[str, object]:
    path = run.require(description_file(run), SCRIPT)
    try:
        description: dict[str, object] = json.loads(path.read_text())
        known = description["profile"] in PROFILES
        if not isinstance(description["do_lower_case"], bool):
            raise TypeError("true or false expected")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ReprodError(f"{path} is damaged: run {run.command(SCRIPT)} again") from error
    if not known:
        raise ReprodError(
            f"{path}: this version has no profile {description['profile']!r}: "
            f"run {run.command(SCRIPT)} again"
        )
    return description


PREFIX = "bert."
HEADS = ("cls.", "classifier.", "qa_outputs.")  # what checkpoints with a task keep beside the model

Weights = dict[str, NDArray[np.generic]]


def select_bert_weights(weights: Mapping[str, NDArray[np.generic]]) -> Weights:
    """Return the state dict of BertModel out of a checkpoint of BertModel or of a task's model."""
    named = dict(weights)
    upgrade_names(named)
    if not any(name.startswith(PREFIX) for name in named):
        return named
    own = {name: array for name, array in named.items() if not name.startswith(HEADS)}
    return {name.removeprefix(PREFIX): array for name, array in own.items()}


def write_description(run: Run) -> None:
    """Write weights/config.json and weights/vocab.txt, which the steps read beside the weights.

    Raises ReprodError, with nothing written, if the checkpoint's own are missing or damaged.
    """
    source = run.profile, run.options.weights
    folder, config, vocab = (
        find_source(*source),
        read_source_config(*source),
        find_source_vocabulary(*source),
    )
    require_vocabulary(vocab, config, "copy the checkpoint's own there")
    names = {"profile": run.profile.name, "do_lower_case": _lower_case(folder)}
    description = config.to_dict() | names
    with whole_file(run.home / "weights" / "config.json") as handle:
        handle.write(json.dumps(description, indent=2).encode())
    with whole_file(run.home / "weights" / "vocab.txt") as handle, vocab.open("rb") as words:
        shutil.copyfileobj(words, handle)


def _lower_case(folder: Path | None) -> bool:
    path = None if folder is None else folder / "tokenizer_config.json"
    if path is None or not path.is_file():
        return True  # every profile's vocabulary is uncased
    try:
        lower_case = json.loads(path.read_text()).get("do_lower_case", True)
    except (ValueError, AttributeError) as error:
        raise ReprodError(f"{path} is not a JSON object: {error}") from error
    if not isinstance(lower_case, bool):
        raise ReprodError(f"{path}: do_lower_case must be true or false, not {lower_case!r}")
    return lower_case
