"""Files of named arrays: as the package safetensors reads them, whole or not at all."""

from pathlib import Path

from reprod_align.base import files as ours
from reprod_align.base.files import read_tensors, write_tensors
from reprod_align.errors import ReprodError

import numpy as np
import pytest
from safetensors.numpy import load_file

MATRIX = np.arange(12.0).reshape(3, 4)
ARRAYS = {
    "plain": MATRIX,
    "transposed": MATRIX.T,
    "strided": MATRIX[:, ::2],
    "big endian": MATRIX.astype(">f4"),
    "half": np.float16([1.5]),
    "flags": np.array([[True], [False]]),
    "bytes": np.array([255], np.uint8),
    "number": np.array(-(2**62)),
    "empty": np.zeros((0, 3), np.float32),
}


def test_the_package_reads_every_layout(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.safetensors"
    write_tensors(path, ARRAYS, {"step": "3", "é": "\n"})
    for found in (load_file(path), read_tensors(path)[0]):
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array, strict=False)
            assert found[name].shape == array.shape, name
            assert found[name].dtype == array.dtype.newbyteorder("="), name
    assert read_tensors(path)[1] == {"step": "3", "é": "\n"}
    start = int.from_bytes(path.read_bytes()[:8], "little")
    assert start % 8 == 0


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"a": MATRIX}, {})
    old = path.read_bytes()

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ours.np, "ascontiguousarray", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_tensors(path, {"a": MATRIX + 1}, {})
    assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [0, 7, 40, -1])
def test_a_file_that_was_cut_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"a": MATRIX}, {})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ReprodError, match=r"a\.safetensors is damaged or not a \.safetensors file"):
        read_tensors(path)
