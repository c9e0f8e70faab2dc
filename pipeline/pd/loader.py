"""From a TSV file to batches, with PaddleNLP's datasets and tokenizer."""

import csv
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline import settings
from pipeline.bert.exported import find_vocabulary, reads_lower_case
from pipeline.corpus import as_task_file
from pipeline.run import Run

import numpy as np
import pandas as pd
from paddle.io import BatchSampler, DataLoader, RandomSampler, SequenceSampler
from paddlenlp.data import DataCollatorWithPadding
from paddlenlp.datasets import MapDataset, load_dataset
from paddlenlp.transformers import BasicTokenizer, BertTokenizer
from paddlenlp.transformers.tokenizer_utils import _is_punctuation

KEYS = ("input_ids", "token_type_ids", "attention_mask", "labels")


class PunctuationTokenizer(BasicTokenizer):
    """BERT's basic tokenizer as Google and Hugging Face have it: words are split at punctuation alone.

    PaddleNLP's also splits at symbols: its "£14" is "£", "14", the others' is "£1", "##4".
    """

    def _run_split_on_punc(self, text: str, never_split: Container[str] = ()) -> list[str]:
        if text in never_split:
            return [text]
        return "".join(f" {char} " if _is_punctuation(char) else char for char in text).split()


class PairTokenizer(BertTokenizer):
    """PaddleNLP's tokenizer, but pairs that are too long are cut as Hugging Face's fast one cuts them.

    Both cut the longer text first. If both are then equally long and one token must still go, PaddleNLP
    takes it from the second text, Hugging Face from the one that was shorter at first, else from the first.
    """

    def truncate_sequences(
        self,
        ids: list[int],
        pair_ids: list[int] | None = None,
        num_tokens_to_remove: int = 0,
        *options: Any,
        **named: Any,
    ) -> tuple[list[int], list[int] | None, list[int]]:
        """Return the ids that stay, of the text and of its pair; the third list is empty."""
        if pair_ids is None or num_tokens_to_remove <= 0:
            return super().truncate_sequences(
                ids, pair_ids, num_tokens_to_remove, *options, **named
            )
        budget = len(ids) + len(pair_ids) - num_tokens_to_remove
        shorter = min(len(ids), len(pair_ids), budget // 2)
        first = budget - shorter if len(ids) > len(pair_ids) else shorter
        return ids[:first], pair_ids[: budget - first], []


def load_tokenizer(run: Run) -> BertTokenizer:
    """Return the tokenizer of the exported checkpoint."""
    lower = reads_lower_case(run)
    tokenizer = PairTokenizer(str(find_vocabulary(run)), do_lower_case=lower)
    tokenizer.basic_tokenizer = PunctuationTokenizer(do_lower_case=lower)
    return tokenizer


def load_examples(
    path: Path, tokenizer: BertTokenizer, max_length: int = settings.MAX_LENGTH
) -> MapDataset:
    """Read a TSV file of `run.corpus` and tokenize it: KEYS for every example, texts cut but not padded.

    A plain path is read as SST-2's. The examples of a test file lack the labels.
    """
    texts = as_task_file(path).layout.texts

    def convert(example: dict[str, Any]) -> dict[str, Any]:
        encoded = encode(tokenizer, [example[name] for name in texts], max_length)
        return {**encoded, "labels": example["label"]} if "label" in example else encoded

    examples = load_dataset(read_tsv, path=path, lazy=False)
    return examples.map(convert, lazy=False)


def encode(
    tokenizer: BertTokenizer, texts: Sequence[str], max_length: int = settings.MAX_LENGTH
) -> dict[str, list[int]]:
    """Tokenize one text or a pair; of a pair that is too long, the longer one is cut first."""
    encoded = tokenizer(
        *texts,
        max_length=max_length,
        truncation=True,
        return_attention_mask=True,
    )
    return dict(encoded)


def read_tsv(path: Path) -> Iterator[dict[str, Any]]:
    """Read the texts as they stand: a quote is a character, the word `null` is a word.

    Keys: the texts (str) by the names in the layout, and `label` (int, or float scores).
    """
    file = as_task_file(path)
    converters = dict.fromkeys(file.layout.texts, str) | {"label": file.task.number}
    rows = pd.read_csv(
        path,
        sep="\t",
        header=None,
        skiprows=list(file.skipped),
        usecols=list(file.layout.read.values()),
        names=list(file.layout.read),
        converters={name: converters[name] for name in file.layout.read},
        quoting=csv.QUOTE_NONE,
        keep_default_na=False,
    )
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


def draw_native_order(examples: MapDataset, seed: int) -> list[int]:
    """Return `examples` in Paddle's own random order, which it draws from NumPy."""
    np.random.seed(seed)
    return list(RandomSampler(examples))
