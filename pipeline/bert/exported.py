"""What weights/torch_bert_weight.py exported: BERT's weights, shape and vocabulary."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from models.bert_config import BertConfig
from pipeline.profiles import PROFILES
from pipeline.run import Run, make_run
from pipeline.settings import NUM_LABELS
from reprod_align.errors import RefusedError, ReprodError

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
