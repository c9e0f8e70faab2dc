"""Files that belong to no submission are named, and code and weights beside it are those of its records."""

import shutil
import zipfile
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.submission import (
    check_manifest,  # noqa: F401 - through verify
    find_code,
    pack,
    verify,
)
from tests.submission.making import WEIGHTS, make_submission

import pytest


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    logs = make_submission(tmp_path / "made")
    files = {path.relative_to(logs).as_posix(): path for path in logs.rglob("*") if path.is_file()}
    target = tmp_path / "submission.zip"
    pack(files, target)
    return target


def add(archive: Path, name: str, content: bytes = b"x") -> Path:
    with zipfile.ZipFile(archive, "a") as handle:
        handle.writestr(name, content)
    return archive


def test_a_packed_submission_is_verified_without_a_remark_on_files(packed: Path) -> None:
    findings = verify(packed)
    assert findings.passed and not any("no part of" in remark for remark in findings.remarks)


@pytest.mark.parametrize("name", ["log_reprod/run.sh", "run.sh", "other/notes.txt"])
def test_a_file_beside_it_is_remarked_on(packed: Path, name: str) -> None:
    findings = verify(add(packed, name))
    assert findings.passed
    assert any("1 file is no part of a submission" in remark for remark in findings.remarks)


def test_a_known_file_that_the_manifest_does_not_list_is_a_fault(packed: Path) -> None:
    findings = verify(add(packed, "log_reprod/loss_diff_log.txt", b"diff check passed\n"))
    assert any("was added after packing" in fault.text for fault in findings.faults)


def test_a_second_submission_in_an_archive_is_refused(packed: Path, tmp_path: Path) -> None:
    other = make_submission(tmp_path / "second", seed=1)
    with zipfile.ZipFile(packed, "a") as handle:
        for path in other.rglob("*"):
            handle.write(path, f"deeper/log_reprod/{path.relative_to(other)}")
    with pytest.raises(ReprodError, match="more than one submission"):
        verify(packed)


def test_an_archive_without_a_manifest_is_remarked_on(packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed) as handle:
        handle.extractall(tmp_path / "plain")
    (tmp_path / "plain" / "log_reprod" / "manifest.json").unlink()
    target = shutil.make_archive(str(tmp_path / "again"), "zip", tmp_path / "plain")
    findings = verify(Path(target))
    assert findings.passed and any("without a manifest" in remark for remark in findings.remarks)


def test_weights_that_changed_after_the_run(tmp_path: Path) -> None:
    """One finding, however many records were made with them; an archive is judged without its neighbours."""
    logs = make_submission(tmp_path)
    assert verify(logs).passed
    shutil.make_archive(str(tmp_path / "handed"), "zip", tmp_path, "log_reprod")
    (tmp_path / WEIGHTS).write_bytes(b"other")
    for source in (logs, tmp_path):
        (found,) = verify(source).faults
        assert found.kind == "different runs" and "weights.bin" in found.text
        assert find_code(source) == tmp_path
    assert verify(tmp_path / "handed.zip").passed and find_code(tmp_path / "handed.zip") is None
    (tmp_path / WEIGHTS).unlink()
    assert verify(logs).passed


def test_reports_and_notes_are_named_before_pages(tmp_path: Path) -> None:
    """Nothing holds what they claim: a reader must know."""
    logs = make_submission(tmp_path)
    for name in (
        "README.md",
        "README_cn.md",
        "notes.txt",
        "report.html",
        "report.md",
        "report.xml",
    ):
        (logs / name).write_text("All passed.")
    (told,) = (one for one in verify(logs).remarks if "not looked at" in one)
    assert told.split(": ")[1].startswith(
        "notes.txt, report.html, report.md, report.xml, README.md"
    )
