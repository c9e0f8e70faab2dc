"""The sentences of Steps 2 and 5: built in, from files or from the Hugging Face hub, and checked."""

import csv
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.tasks import SST2, Layout, Task
from reprod_align.base.files import whole_file
from reprod_align.errors import MissingInputError, ReprodError

DEMO_FOLDER = Path(__file__).resolve().parent / "Step2" / "demo_sst2_sentence"


class TaskFile(type(Path())):
    """The path of a checked TSV file, and how to read it; by default as SST-2's.

    It is a path, so that code that opens, names or hashes a corpus file does not need the task.
    """

    task: Task = SST2
    layout: Layout = SST2.train
    skipped: tuple[int, ...] = (0,)  # lines that hold no example, from 0: the header, cut rows


@dataclass(frozen=True)
class Corpus:
    """The labelled TSV files of a task, as its layouts in pipeline/tasks.py describe them."""

    demo: Path  # Step 2 reads and scores these
    train: Path  # Step 5 trains on these
    dev: Path  # ... and measures its accuracy on these


def find_corpus(data_dir: Path | None) -> Corpus:
    """Return the built-in corpus, or SST-2's train.tsv and dev.tsv in `data_dir`, all checked."""
    if data_dir is not None:
        return find_task_corpus(SST2, data_dir)
    corpus = find_task_corpus(SST2, DEMO_FOLDER)
    return Corpus(check_tsv(DEMO_FOLDER / "demo.tsv"), corpus.train, corpus.dev)


def find_task_corpus(task: Task, data_dir: Path | None) -> Corpus:
    """Return the task's files for training and for measuring in `data_dir`, checked."""
    if data_dir is None:
        raise MissingInputError(
            f"{task.title} has no built-in sentences: add --data-dir DIR, which holds its "
            f"{task.train.file} and {task.dev.file}, or --from-hub"
        )
    dev = check_tsv(data_dir / task.dev.file, task, task.dev)
    return Corpus(dev, check_tsv(data_dir / task.train.file, task, task.train), dev)


def find_test(task: Task, data_dir: Path) -> TaskFile:
    """Return the task's test file in `data_dir`, which has no labels, checked."""
    return check_tsv(data_dir / task.test.file, task, task.test)


def as_task_file(path: Path) -> TaskFile:
    """Return `path` with the way to read it: a plain path is read as SST-2's."""
    return path if isinstance(path, TaskFile) else TaskFile(path)


def check_tsv(path: Path, task: Task = SST2, layout: Layout = SST2.train) -> TaskFile:
    """Return `path` as a file of the task.

    Raises MissingInputError, or ReprodError with the line, unless it has this layout.
    """
    if not path.is_file():
        raise MissingInputError(
            f"{path} is missing: --data-dir needs {task.title}'s {task.train.file} and {task.dev.file}"
        )
    rows = _read_rows(path)
    begin = int(layout.header)
    if layout.header and not _is_header(rows[:1], layout):
        raise ReprodError(f"{path}, line 1: the header must be {'<TAB>'.join(layout.columns)}")
    if len(rows) == begin:
        raise ReprodError(f"{path} holds no sentences")
    file = TaskFile(path)
    file.task, file.layout = task, layout
    file.skipped = (*range(begin), *_check_rows(file, rows, begin))
    return file


def _read_rows(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:  # MRPC begins with a BOM
            reader = csv.reader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
            return list(reader)
    except UnicodeDecodeError as error:
        raise ReprodError(
            f"{path}, line {_find_undecodable_line(path)}: the file is not UTF-8 text: {error.reason}"
        ) from error
    except csv.Error as error:
        raise ReprodError(f"{path}, line {reader.line_num}: {error}") from error


def _find_undecodable_line(path: Path) -> int:
    """Return the number of the first line that is not UTF-8; the decoder counts its own buffer's bytes."""
    with path.open("rb") as handle:
        for line, raw in enumerate(handle, start=1):
            if raw != raw.decode(errors="ignore").encode():
                return line
    return 1


def _is_header(rows: list[list[str]], layout: Layout) -> bool:
    """Whether the header has as many columns, and those that are read, by their names.

    The names of the others differ between copies of a data set, and nothing depends on them.
    """
    named = {*layout.texts, layout.label}
    expected = [name if name in named else None for name in layout.columns]
    found = [
        name if want else None for row in rows for name, want in zip(row, expected, strict=False)
    ]
    return bool(rows) and len(rows[0]) == len(expected) and found == expected


def _check_rows(file: TaskFile, rows: list[list[str]], begin: int) -> list[int]:
    """Check every row; return the positions of those that are cut, where the task has such."""
    cut = []
    for position, row in enumerate(rows[begin:], start=begin):
        if file.task.rough and len(row) < len(file.layout.columns):
            cut.append(position)
        elif complaint := _find_complaint(file, row):
            raise ReprodError(f"{file}, line {position + 1}: {complaint}")
    if len(cut) + begin == len(rows):
        raise ReprodError(
            f"{file}, line {begin + 1}: no row has {len(file.layout.columns)} columns"
        )
    if cut:
        print(
            f"{file}: left out {len(cut)} lines that are cut, the first is line {cut[0] + 1}",
            file=sys.stderr,
        )
    return cut


def _find_complaint(file: TaskFile, row: list[str]) -> str:
    """Return the fault of a row, "" for a sound one."""
    layout = file.layout
    if len(row) != len(layout.columns):
        return f"{len(row)} columns instead of {len(layout.columns)}"
    for name in () if file.task.rough else layout.texts:
        if not row[layout.columns.index(name)].strip():
            return f"the {name} is empty"
    if layout.label is not None:
        try:
            file.task.number(row[layout.columns.index(layout.label)])
        except ValueError as error:
            return str(error)
    return ""


def fetch_corpus(task: Task, home: Path) -> Path:
    """Return the folder under `home` with the task's files, written from the Hugging Face hub if new.

    Files, since both sides must read the same, and be able to do so on machines without the hub.
    Raises MissingInputError with the remedy where neither the hub nor its cache can be reached.
    """
    folder = home / "data" / task.name
    splits = {task.train: "train", task.dev: task.hub_dev}
    missing = {layout: name for layout, name in splits.items() if not _exists(folder, layout)}
    if missing:
        data = _load_from_hub(task)
        _write(home / "data" / ".gitignore", ["*"])  # data sets have licences of their own
        for layout, split in missing.items():
            _write(folder / layout.file, _lines(task, layout, data[split]))
    return folder


def _exists(folder: Path, layout: Layout) -> bool:
    return (folder / layout.file).is_file()


def _load_from_hub(task: Task) -> Mapping[str, Any]:
    from datasets import load_dataset

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it reports each retry
    try:
        data: Mapping[str, Any] = load_dataset(*task.hub)
    except (OSError, ValueError, RuntimeError) as error:
        raise MissingInputError(
            f"{'/'.join(task.hub)} is not in the cache of Hugging Face datasets and the hub cannot be "
            f"reached ({type(error).__name__}): where it can, run this script with --from-hub and copy "
            f"the folder data/{task.name} here, or pass --data-dir DIR"
        ) from error
    return data


def _lines(task: Task, layout: Layout, split: Any) -> Iterator[str]:
    """Yield a split of the hub's as the lines of the official file; what is never read stays empty."""
    if layout.header:
        yield "\t".join(layout.columns)
    names = getattr(split.features["label"], "names", None)
    for example in split:
        label = _hub_label(task, names, example["label"])
        texts = [re.sub(r"[\t\r\n]", " ", example[name]) for name in task.hub_texts]
        row = dict(zip(layout.texts, texts, strict=True)) | {layout.label: label}
        yield "\t".join(row.get(name, "") for name in layout.columns)


def _hub_label(task: Task, names: list[str] | None, label: float) -> str:
    """Return a label as the files write it: Hugging Face numbers MNLI's names in another order."""
    return names[int(label)] if names and "entailment" in task.labels else str(label)


def _write(path: Path, lines: Iterator[str] | list[str]) -> None:
    with whole_file(path) as handle:
        handle.writelines(f"{line}\n".encode() for line in lines)
