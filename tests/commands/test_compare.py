"""`reprod-align compare`: two records, three rules."""

import json
from pathlib import Path

from reprod_align.commands import compare
from reprod_align.errors import MissingInputError
from reprod_align.records import save_record
from tests.commands.asked import run

import numpy as np
import pytest

ONES = np.ones(3)


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """Two records that differ by a rounding error."""
    return save_record(tmp_path / "a", {"x": ONES}), save_record(
        tmp_path / "b", {"x": ONES + 1e-12}
    )


def test_the_rule_decides(records: tuple[Path, Path]) -> None:
    assert run(compare, *records) == 0
    assert run(compare, *records, "--rule", "strict") == 0
    assert run(compare, *records, "--rule", "exact") == 1
    assert run(compare, *records, "--threshold", "1e-13") == 1


def test_the_result_as_json(records: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(compare, *records, "--rule", "exact", "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert not result["passed"]
    assert result["keys"][0]["key"] == "x"


def test_a_missing_record_is_refused(records: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="none.npy is missing"):
        run(compare, records[0], tmp_path / "none.npy")
