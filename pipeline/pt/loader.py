"""From a TSV file to batches, with Hugging Face datasets and tokenizer."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline import settings
from pipeline.bert.exported import find_vocabulary, reads_lower_case
from pipeline.corpus import as_task_file
from pipeline.run import Run

import torch
from datasets import Dataset
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from transformers import BertTokenizerFast, DataCollatorWithPadding

KEYS = ("input_ids", "token_type_ids", "attention_mask", "labels")


def load_tokenizer(run: Run) -> BertTokenizerFast:
    """Return the tokenizer of the exported checkpoint."""
    return BertTokenizerFast(str(find_vocabulary(run)), do_lower_case=reads_lower_case(run))


def load_examples(
    path: Path, tokenizer: BertTokenizerFast, max_length: int = settings.MAX_LENGTH
) -> Dataset:
    """Read a TSV file of `run.corpus` and tokenize it: KEYS for every example, texts cut but not padded.

    A plain path is read as SST-2's. The examples of a test file lack the labels.
    """
    texts = as_task_file(path).layout.texts

    def convert(example: dict[str, Any]) -> dict[str, Any]:
        encoded = encode(tokenizer, [example[name] for name in texts], max_length)
        return {**encoded, "labels": example["label"]} if "label" in example else encoded

    examples = read_tsv(path)
    return examples.map(convert, remove_columns=examples.column_names)


def encode(
    tokenizer: BertTokenizerFast, texts: Sequence[str], max_length: int = settings.MAX_LENGTH
) -> dict[str, list[int]]:
    """Tokenize one text or a pair; of a pair that is too long, the longer one is cut first."""
    batch_of_one = [[text] for text in texts]  # on its own, an empty second text counts as none
    encoded = tokenizer(
        *batch_of_one,
        max_length=max_length,
        truncation=True,
        return_attention_mask=True,
    )
    return {key: rows[0] for key, rows in encoded.items()}


def read_tsv(path: Path) -> Dataset:
    """Read the texts as they stand: a quote is a character, the word `null` is a word.

    Columns: the texts (str) by the names in the layout, and `label` (int64, or float64 scores).
    """
    file = as_task_file(path)
    converters = dict.fromkeys(file.layout.texts, str) | {"label": file.task.number}
    with TemporaryDirectory() as cache:
        plain = Path(cache, "plain.tsv")  # datasets takes a name with [, ?, * or :: for a pattern
        plain.symlink_to(path.resolve())
        return Dataset.from_csv(
            str(plain),
            sep="\t",
            header=None,
            skiprows=list(file.skipped),
            usecols=list(file.layout.read.values()),
            column_names=list(file.layout.read),
            converters={name: converters[name] for name in file.layout.read},
            quoting=3,
            keep_default_na=False,
            keep_in_memory=True,
            cache_dir=cache,
        )


def data_loader(
    examples: Dataset,
    tokenizer: BertTokenizerFast,
    batch_size: int,
    order: Sequence[int] | None = None,
) -> Iterable[dict[str, Any]]:
    """Return batches of KEYS, padded to their longest sentence, in `order` (default: as they stand)."""
    return DataLoader(
        examples,
        batch_size=batch_size,
        sampler=SequentialSampler(examples) if order is None else order,
        drop_last=False,
        collate_fn=DataCollatorWithPadding(tokenizer),
    )


def draw_native_order(examples: Dataset, seed: int) -> list[int]:
    """Return `examples` in PyTorch's own random order."""
    return list(RandomSampler(examples, generator=torch.Generator().manual_seed(seed)))
