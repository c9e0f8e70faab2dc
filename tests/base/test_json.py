"""Values of every kind that results hold, as strict JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reprod_align.base.files import as_json, to_plain, write_json
from reprod_align.errors import ReprodError

import numpy as np
import pytest


@dataclass(frozen=True)
class Result:
    worst: float
    shape: tuple[int, ...]
    inner: Any = None


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("nan"), "nan"),
        (-float("inf"), "-inf"),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.longdouble("inf"), "inf"),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1.5, np.nan]]), [[1.5, "nan"]]),
        (np.array(2), 2),
        (1 + 2j, "(1+2j)"),
        (b"\xff", "b'\\xff'"),
        (Path("a") / "b", "a/b"),
        ({1: (None, "x")}, {"1": [None, "x"]}),
        (Result(1.0, (2, 3), Result(0.0, ())),
         {"worst": 1.0, "shape": [2, 3], "inner": {"worst": 0.0, "shape": [], "inner": None}}),
    ],
)  # fmt: skip
def test_every_value_of_a_result_becomes_plain(value: Any, plain: Any) -> None:
    assert to_plain(value) == plain
    assert json.loads(as_json(value)) == plain


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        to_plain({"a": object()})
    with pytest.raises(TypeError, match="type cannot be written"):
        to_plain(Result)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.json"
    write_json(path, {"loss": np.float64("nan")})
    assert path.read_text() == '{\n "loss": "nan"\n}\n'
    with pytest.raises(TypeError):
        write_json(path, object())
    assert json.loads(path.read_text()) == {"loss": "nan"}
    with pytest.raises(ReprodError, match="cannot write"):
        write_json(path.parent, {})
