"""Record files made by hand, byte by byte."""

import pickle
import struct
from pathlib import Path
from typing import Any

from reprod_align import load_record
from reprod_align.errors import RecordError

import numpy as np
import pytest

HEADER = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }"


SAMPLE = {
    "logits": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "ids": np.arange(4),
    "mask": np.array([True, False]),
    "words": np.array(["ab", "é"]),
    "spectrum": np.array([1 + 2j]),
    "loss": np.float64(0.5),
}


def npy(body: bytes, header: bytes = HEADER) -> bytes:
    """A .npy file of one object, whose pickle is `body`."""
    text = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def boxed(content: object, protocol: int = 4) -> bytes:
    """`content` pickled as np.save does: in an object array of no dimensions."""
    box = np.empty((), dtype=object)
    box[()] = content
    return pickle.dumps(box, protocol=protocol)


def refused(path: Path, data: bytes) -> str:
    """Write `data`, see it refused in one line that names the file, return the line."""
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        load_record(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert list(first) == list(second)
    for key, array in first.items():
        assert np.asarray(array).dtype == np.asarray(second[key]).dtype
        np.testing.assert_array_equal(array, second[key])
