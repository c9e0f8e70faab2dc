"""Submissions tampered with at random are caught, or docs/security.md says why no file could tell."""

import shutil
from pathlib import Path

from reprod_align.submission import verify
from tests.conftest import REPOSITORY
from tests.submission.forging import KINDS, REASONS, forge, make_honest

import pytest

SEED = 3


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission with training logs. Read only."""
    return make_honest(tmp_path_factory.mktemp("place") / "honest")


def test_the_honest_one_is_verified(honest: Path) -> None:
    findings = verify(honest)
    assert findings.passed, findings.summary()


@pytest.mark.parametrize("round_", range(2))
@pytest.mark.parametrize("number", range(len(KINDS)), ids=lambda number: KINDS[number].__name__)
def test_a_forged_one_is_caught(honest: Path, tmp_path: Path, number: int, round_: int) -> None:
    kind, reason, passed = forge(honest, tmp_path / "copy", SEED, number + round_ * len(KINDS))
    assert not passed or reason in REASONS, kind
    shutil.rmtree(tmp_path / "copy")


@pytest.mark.parametrize("page", ["security.md"])
def test_the_page_says_why_no_file_could_tell(page: str) -> None:
    text = " ".join((REPOSITORY / "docs" / page).read_text(encoding="utf-8").split())
    assert [reason for reason, words in REASONS.items() if words not in text] == []
