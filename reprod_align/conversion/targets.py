"""The files that a conversion writes: never the source's, never beside those of another conversion."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.weights.reading import Checkpoint
from reprod_align.weights.writing import INDEX, name_files
from reprod_align.weights.writing.entry import Entry


def require_free(
    source: Checkpoint, target: Path, entries: Sequence[Entry], shard_size: int
) -> None:
    """Raise ReprodError if a file of the source would be written over, or stale ones stay beside."""
    names = name_files(target, entries, shard_size)
    for path in map(target.with_name, names):
        for file in source.files if path.exists() else ():
            if path.samefile(file):
                raise ReprodError(f"{path} is the source {file}: name another target")
    stale = sorted(_list_stale(target, names))
    if stale:
        raise ReprodError(
            f"{target.with_name(stale[0])} is of another conversion, and a reader of the folder may take "
            "it: remove it, or name another folder"
        )


def _list_stale(target: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield the shards and the index of an earlier conversion that would not be replaced."""
    whole = target.name.removesuffix(INDEX)
    stem, suffix = re.escape(Path(whole).stem), re.escape(Path(whole).suffix)
    known = re.compile(rf"{stem}(-\d{{5}}-of-\d{{5}}{suffix}|{suffix}{re.escape(INDEX)})")
    for path in target.parent.iterdir() if target.parent.is_dir() else ():
        if known.fullmatch(path.name) and path.name not in names:
            yield path.name
