"""A task's sentences from the Hugging Face hub, written as the files that the task's own readers take."""

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.tasks import Layout, Task
from reprod_align.base.files import whole_file
from reprod_align.errors import MissingInputError


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
