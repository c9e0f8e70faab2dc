"""The fake batch that Steps 1, 3 and 4 run on: fixed token ids and labels."""

from dataclasses import dataclass
from pathlib import Path

from models.bert_config import BertConfig
from pipeline.bert.exported import read_config
from pipeline.run import Run
from pipeline.settings import NUM_LABELS
from reprod_align.errors import ReprodError

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
SCRIPT = "fake_data/gen_fake_data.py"


@dataclass(frozen=True)
class FakeBatch:
    """B = 4 sentences of L = 64 tokens."""

    input_ids: Ids  # (B, L)
    labels: Ids  # (B,)
    padded: dict[str, Ids]  # (B, L) each: with padding, two segments and positions from 1


def load_fake_batch(run: Run) -> FakeBatch:
    """Read the files of fake_data/; ReprodError if they are missing, damaged or do not fit the model."""
    if run.task.num_labels != NUM_LABELS:
        raise ReprodError(
            f"the fake batch has {NUM_LABELS} labels, {run.task.title} {run.task.num_labels}: "
            "run this step without --task"
        )
    config = read_config(run)
    input_ids = _load(run, "fake_data.npy", axes=2, below=config.vocab_size)
    longest = config.max_position_embeddings
    if input_ids.shape[1] > longest:
        raise ReprodError(
            f"the fake batch is {input_ids.shape[1]} tokens long, this model takes {longest}"
        )
    fake_label = _load(run, "fake_label.npy", axes=1, below=NUM_LABELS)
    if len(fake_label) != len(input_ids):
        raise ReprodError(
            f"the fake batch has {len(fake_label)} labels for {len(input_ids)} sentences: "
            f"run {run.command(SCRIPT)} again"
        )
    return FakeBatch(input_ids, fake_label, _pad(input_ids, config))


def _pad(input_ids: Ids, config: BertConfig) -> dict[str, Ids]:
    """Return all inputs of BertModel, (B, L) each.

    They are what the plain batch leaves at its defaults, so that a model which ignores them is found.
    """
    sentences, length = input_ids.shape
    columns = np.tile(np.arange(length), (sentences, 1))
    mask = (columns < length - 5 * np.arange(sentences)[:, None]).astype(np.int64)
    return {
        "input_ids": np.where(mask == 1, input_ids, config.pad_token_id),
        "attention_mask": mask,
        "token_type_ids": np.where(columns < length // 2, 0, config.type_vocab_size - 1),
        "position_ids": np.minimum(columns + 1, config.max_position_embeddings - 1),
    }


def _load(run: Run, name: str, axes: int, below: int) -> Ids:
    path: Path = run.require(run.home / "fake_data" / name, SCRIPT)
    try:
        array: Ids = np.load(path, allow_pickle=False)
    except Exception as error:  # numpy raises half a dozen kinds for a damaged file
        raise ReprodError(f"{path} is damaged: run {run.command(SCRIPT)} again") from error
    plain = isinstance(array, np.ndarray)  # np.load of a .npz archive returns another type
    fits = plain and array.dtype == np.int64 and array.ndim == axes and array.size > 0
    if not (fits and array.min() >= 0 and array.max() < below):
        raise ReprodError(
            f"{path} must hold int64 numbers from 0 to {below - 1} along {axes} axes, which this model "
            f"takes: run {run.command(SCRIPT)} again"
        )
    return array
