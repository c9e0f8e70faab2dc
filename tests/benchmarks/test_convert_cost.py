"""The benchmark of conversions runs, on a small checkpoint."""

from pathlib import Path

from benchmarks import convert_cost
from reprod_align.weights.reading import open_checkpoint
from reprod_align.weights.writing.entry import Entry

import pytest


def test_it_measures_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [Entry("embed.weight", "bfloat16", (7, 5)), Entry("fc.weight", "float32", (3, 5))]
    convert_cost.prepare(tmp_path, entries)
    assert open_checkpoint(tmp_path / "src").tensors["fc.weight"].shape == (3, 5)
    found = convert_cost.measure(tmp_path, 1)
    assert list(found) == ["cp -r and sync", *convert_cost.TARGETS]
    assert not (tmp_path / "out").exists()
    convert_cost.print_table(found)
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_half_of_the_bytes_is_in_each_dtype() -> None:
    entries = convert_cost.list_entries(3e9)
    for dtype in ("bfloat16", "float32"):
        held = sum(entry.nbytes for entry in entries if entry.dtype == dtype)
        assert 1.3e9 < held <= 1.5e9
