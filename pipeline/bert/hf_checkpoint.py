"""What a Hugging Face BERT checkpoint holds: which tensors are BertModel's, and what describes it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from models.bert_config import upgrade_names
from pipeline.bert.exported import require_vocabulary
from pipeline.profiles import find_source, find_source_vocabulary, read_source_config
from pipeline.run import Run
from reprod_align.base.files import whole_file
from reprod_align.errors import ReprodError

import numpy as np
from numpy.typing import NDArray

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
