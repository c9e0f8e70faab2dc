"""Code and weights that lie beside a submission are those of its records; what is not looked at is named."""

import shutil
from pathlib import Path

from reprod_align.submission import verify
from reprod_align.submission.manifest import find_code
from tests.submission.making import WEIGHTS, make_submission


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
