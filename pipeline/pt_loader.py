"""From a TSV file to batches, with Hugging Face datasets and tokenizer. pd_loader.py is its twin."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline import settings
from pipeline.run import Run

from datasets import Dataset
from torch.utils.data import DataLoader, SequentialSampler
from transformers import BertTokenizerFast, DataCollatorWithPadding

KEYS = ("input_ids", "token_type_ids", "attention_mask", "labels")


def load_tokenizer(run: Run) -> BertTokenizerFast:
    """Return the tokenizer of the exported checkpoint."""
    return BertTokenizerFast(str(run.vocab), do_lower_case=run.do_lower_case)


def load_examples(path: Path, tokenizer: BertTokenizerFast) -> Dataset:
    """Read a TSV file and tokenize it: KEYS for every example, sentences cut but not padded."""

    def convert(example: dict[str, Any]) -> dict[str, Any]:
        encoded = tokenizer(
            str(example["sentence"]),  # pandas makes numbers of sentences that are all numbers
            max_length=settings.MAX_LENGTH,
            truncation=True,
            return_attention_mask=True,
        )
        return {**encoded, "labels": example["label"]}

    examples = read_tsv(path)
    return examples.map(convert, remove_columns=examples.column_names)


def read_tsv(path: Path) -> Dataset:
    """Read the sentences as they stand: a quote is a character, and the word `null` is no missing value."""
    with TemporaryDirectory() as cache:
        return Dataset.from_csv(
            str(path),
            sep="\t",
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
