"""A conversion writes over nothing of its source, and leaves no stale file beside its own."""

from pathlib import Path

from reprod_align.conversion import Conversion, convert, require_free
from reprod_align.conversion.weight_map import WeightMap
from reprod_align.errors import ReprodError
from reprod_align.match import TensorPair
from reprod_align.weights.reading import open_checkpoint
from reprod_align.weights.stored import TensorEntry

import pytest
import torch
from safetensors.torch import save_file

MAP = WeightMap(tuple(TensorPair((name,), (name,), (False,)) for name in "abc"))
STATE = {name: torch.ones(5) for name in "abc"}


def run(source: Path, target: Path, shard_size: int) -> None:
    order = Conversion(source, target, source_framework="torch", check=False, shard_size=shard_size)
    assert convert(order, None, MAP).written == target


def test_a_shard_does_not_replace_the_source(tmp_path: Path) -> None:
    source = tmp_path / "w-00001-of-00001.safetensors"
    save_file(STATE, source)
    before = source.read_bytes()
    with pytest.raises(ReprodError, match="is the source"):
        run(source, tmp_path / "w.safetensors.index.json", 1000)
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
    assert source.read_bytes() == before


def test_files_of_another_conversion_are_refused_if_they_would_stay(tmp_path: Path) -> None:
    source, index = tmp_path / "a.bin", tmp_path / "out" / "w.pdparams.index.json"
    torch.save(STATE, source)
    for _ in range(2):  # the same files again are replaced
        run(source, index, 20)
    names = sorted(path.name for path in index.parent.iterdir())
    for target, size in ((index, 1000), (index.with_name("w.pdparams"), 20)):
        with pytest.raises(ReprodError, match="w-00001-of-00003.pdparams is of another conversion"):
            run(source, target, size)
    assert sorted(path.name for path in index.parent.iterdir()) == names
    run(source, index.with_name("w2.pdparams"), 20)


def test_only_files_of_the_same_name_count(tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "w.bin")
    for name in ("w.pdparams.txt", "w-1-of-2.pdparams", "ww-00001-of-00002.pdparams"):
        (tmp_path / name).touch()
    source = open_checkpoint(tmp_path / "w.bin")
    entries = [TensorEntry("a", "float32", (5,))]
    require_free(source, tmp_path / "w.pdparams", entries, 1000)
    (tmp_path / "w.pdparams.index.json").touch()
    with pytest.raises(ReprodError, match="w.pdparams.index.json is of another conversion"):
        require_free(source, tmp_path / "w.pdparams", entries, 1000)
