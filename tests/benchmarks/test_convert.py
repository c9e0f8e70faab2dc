"""benchmarks/figures/convert: its checkpoint is converted, and copied, in every form that is measured."""

from pathlib import Path

from benchmarks.figures import convert
from reprod_align.weights.reading import open_checkpoint
from reprod_align.weights.stored import TensorEntry


def test_every_piece_of_work_leaves_all_tensors(tmp_path: Path) -> None:
    entries = [
        TensorEntry("embed.weight", "bfloat16", (7, 5)),
        TensorEntry("fc.weight", "float32", (3, 5)),
    ]
    convert.write_source(tmp_path, entries)
    for work, shape in (
        (convert.copy, (3, 5)),
        (convert.convert_to_safetensors, (5, 3)),
        (convert.convert_to_pdparams, (5, 3)),
    ):
        work(tmp_path)()
        tensors = open_checkpoint(tmp_path / "out").tensors
        assert (tensors["embed.weight"].shape, tensors["fc.weight"].shape) == ((7, 5), shape)


def test_half_of_the_bytes_is_in_each_dtype() -> None:
    entries = convert.list_entries(3e9)
    for dtype in ("bfloat16", "float32"):
        held = sum(entry.nbytes for entry in entries if entry.dtype == dtype)
        assert 1.3e9 < held <= 1.5e9
