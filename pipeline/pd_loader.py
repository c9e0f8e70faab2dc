"""From a TSV file to batches, with PaddleNLP's datasets and tokenizer. pt_loader.py is its twin."""

import csv
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline import pd_only, settings  # noqa: F401
from pipeline.run import Run

import pandas as pd
from paddle.io import BatchSampler, DataLoader, SequenceSampler
from paddlenlp.data import DataCollatorWithPadding
from paddlenlp.datasets import MapDataset, load_dataset
from paddlenlp.transformers import BasicTokenizer, BertTokenizer
from paddlenlp.transformers.tokenizer_utils import _is_punctuation

KEYS = ("input_ids", "token_type_ids", "attention_mask", "labels")


class PunctuationTokenizer(BasicTokenizer):
    """BERT's basic tokenizer as Google and Hugging Face have it: words part at punctuation alone.

    PaddleNLP's also parts them at symbols: its "£14" is "£", "14" where the others' is "£1", "##4".
    """

    def _run_split_on_punc(self, text: str, never_split: Container[str] = ()) -> list[str]:
        if text in never_split:
            return [text]
        return "".join(f" {char} " if _is_punctuation(char) else char for char in text).split()


def load_tokenizer(run: Run) -> BertTokenizer:
    """Return the tokenizer of the exported checkpoint."""
    tokenizer = BertTokenizer(str(run.vocab), do_lower_case=run.do_lower_case)
    tokenizer.basic_tokenizer = PunctuationTokenizer(do_lower_case=run.do_lower_case)
    return tokenizer


def load_examples(path: Path, tokenizer: BertTokenizer) -> MapDataset:
    """Read a TSV file and tokenize it: KEYS for every example, sentences cut but not padded."""

    def convert(example: dict[str, Any]) -> dict[str, Any]:
        encoded = tokenizer(
            str(example["sentence"]),  # pandas makes numbers of sentences that are all numbers
            max_length=settings.MAX_LENGTH,
            truncation=True,
            return_attention_mask=True,
        )
        return {**encoded, "labels": example["label"]}

    examples = load_dataset(read_tsv, path=path, lazy=False)
    return examples.map(convert, lazy=False)


def read_tsv(path: Path) -> Iterator[dict[str, Any]]:
    """Read the sentences as they stand: a quote is a character, and the word `null` is no missing value."""
    rows = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    yield from rows.to_dict("records")


def data_loader(
    examples: MapDataset,
    tokenizer: BertTokenizer,
    batch_size: int,
    order: Sequence[int] | None = None,
) -> Iterable[dict[str, Any]]:
    """Return batches of KEYS, padded to their longest sentence, in `order` (default: as they stand)."""
    return DataLoader(
        examples,
        batch_sampler=BatchSampler(
            batch_size=batch_size,
            sampler=SequenceSampler(examples) if order is None else order,
            drop_last=False,
        ),
        collate_fn=DataCollatorWithPadding(tokenizer),
    )
