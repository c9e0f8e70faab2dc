"""The sentences: where the TSV files are, and a check that they are what the scripts expect."""

import csv
from dataclasses import dataclass
from pathlib import Path

from reprod_align.errors import MissingInputError, ReprodError

DEMO_FOLDER = Path(__file__).resolve().parent / "Step2" / "demo_sst2_sentence"
HEADER = ["sentence", "label"]
LABELS = {"0", "1"}


@dataclass(frozen=True)
class Corpus:
    """TSV files with SST-2's own header `sentence<TAB>label`; labels 0 negative, 1 positive."""

    demo: Path  # Step 2 reads and scores these
    train: Path  # Step 5 trains on these
    dev: Path  # ... and measures its accuracy on these


def find_corpus(data_dir: Path | None) -> Corpus:
    """Return the built-in corpus, or SST-2's train.tsv and dev.tsv in `data_dir`, all checked."""
    folder, demo = (DEMO_FOLDER, "demo.tsv") if data_dir is None else (data_dir, "dev.tsv")
    corpus = Corpus(folder / demo, folder / "train.tsv", folder / "dev.tsv")
    for path in dict.fromkeys((corpus.demo, corpus.train, corpus.dev)):
        check_tsv(path)
    return corpus


def check_tsv(path: Path) -> None:
    """Raise MissingInputError or ReprodError, naming the line, unless `path` is a labelled TSV file."""
    if not path.is_file():
        raise MissingInputError(
            f"{path} is missing: --data-dir needs SST-2's train.tsv and dev.tsv"
        )
    try:
        with path.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.reader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReprodError(f"{path} is not UTF-8 text with tabs: {error}") from error
    if not rows or rows[0] != HEADER:
        raise ReprodError(f"{path}, line 1: the header must be sentence<TAB>label")
    if len(rows) == 1:
        raise ReprodError(f"{path} holds no sentences")
    for number, row in enumerate(rows[1:], start=2):
        _check_row(path, number, row)


def _check_row(path: Path, number: int, row: list[str]) -> None:
    if len(row) != len(HEADER):
        raise ReprodError(f"{path}, line {number}: {len(row)} columns instead of {len(HEADER)}")
    if not row[0].strip():
        raise ReprodError(f"{path}, line {number}: the sentence is empty")
    if row[1] not in LABELS:
        raise ReprodError(f"{path}, line {number}: the label must be 0 or 1, not {row[1][:20]!r}")
