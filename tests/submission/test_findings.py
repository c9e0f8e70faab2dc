"""What a verification reads: JSON of someone else's, whose size is known before it is parsed."""

import tracemalloc
from pathlib import Path

from reprod_align.submission.files import Submission
from reprod_align.submission.findings import Verification, get_dict, parse, read_object, read_text

import pytest


def test_many_small_values_are_refused_before_they_take_memory() -> None:
    text = "[" + "[],{}," * 3_000_000 + "0]"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 2000000 values"):
            parse(text)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_long_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text("x" * 100)
    with pytest.raises(ValueError, match="100 bytes; the most is 99"):
        read_text(path, 99)
    assert read_text(path, 100) == "x" * 100


@pytest.mark.parametrize(
    ("content", "told"),
    [("[1]", "holds a list, not an object"), ("{", "is not JSON"), ("[" * 10**5, "is not JSON")],
)
def test_what_is_no_object_is_a_fault(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    findings = Verification(tmp_path)
    assert read_object(Submission(tmp_path, {"a.json": path}), "a.json", findings) == {}
    assert told in findings.faults[0].text


def test_a_part_that_is_no_object_is_an_empty_one() -> None:
    assert get_dict({"a": {"b": 1}, "c": 3}, "a") == {"b": 1}
    assert get_dict({"c": 3}, "c") == {} == get_dict({}, "d")
