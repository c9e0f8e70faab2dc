"""The pieces of a verification, each by itself."""

import shutil
import zipfile
from pathlib import Path

from reprod_align.errors import RecordError
from reprod_align.records.compare import compare_records
from reprod_align.submission import check_manifest, count_copied, judge_step, pack
from reprod_align.submission.claims import Claim, check_logs, check_results, read_claims
from reprod_align.submission.files import (
    EXTRA,
    STEPS,
    find_root,
    is_known,
    list_files,
    open_submission,
)
from reprod_align.submission.findings import EDITED, MISSING, JudgedStep, StepRow, Verification
from reprod_align.submission.numbers import check_numbers
from tests.submission.making import make_submission

import numpy as np
import pytest

DRAW = np.random.default_rng(0)
FLOATS = DRAW.standard_normal(20)


def test_the_guides_fifteen_files() -> None:
    names = {name for step in STEPS for side in ("torch", "paddle") for name in step.records(side)}
    assert names == {
        *(f"{step}_{side}.npy" for side in ("torch", "paddle")
          for step in ("forward", "metric", "loss", "bp_align", "train_align")),
        "train_align_benchmark.npy",
    }  # fmt: skip
    assert STEPS[0].logs == ("forward_diff.log", "forward_diff_log.txt")
    assert [step.threshold for step in STEPS] == [1e-6, 1e-6, 1e-6, 1e-6, 0.0015]
    assert is_known("strict/lr_torch.npy") and is_known("training/torch.jsonl")
    assert not is_known("../forward_torch.npy") and not is_known("train.py")
    assert EXTRA[0].records("torch") == (EXTRA[0].name_twin("torch"),)


@pytest.mark.parametrize(
    ("log", "keys", "passed"),
    [
        ("[2022/10/20 15:58:01] root INFO: logits: \n[2022/10/20 15:58:01] root INFO: \tmean diff: check "
         "passed: True, value: 5.4e-07\n[2022/10/20 15:58:01] root INFO: diff check passed\n",
         {"logits": [Claim("mean", True, 5.4e-07)]}, True),
        ("a: b:\n    max diff: check passed: False, value: inf\ndiff check failed",
         {"a: b": [Claim("max", False, float("inf"))]}, False),
        ("old:\n\tmean diff: check passed: True, value: 1\ndiff check passed\nnew:\n"
         "\tmean diff: check passed: False, value: 2\ndiff check failed",
         {"new": [Claim("mean", False, 2.0)]}, False),
        ("hello", {}, None),
    ],
    ids=["the guide's", "without dates", "two reports", "no report"],
)  # fmt: skip
def test_logs(log: str, keys: object, passed: object, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(log)
    claims = read_claims(tmp_path / "x.log")
    assert (claims.keys, claims.passed) == (keys, passed)


def test_a_log_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"\xff")
    with pytest.raises(RecordError, match="is not a text"):
        read_claims(tmp_path / "x.log")


@pytest.mark.parametrize(
    ("ours", "theirs", "from_counts", "found"),
    [
        ({"x": FLOATS}, {"x": FLOATS}, False, 20),
        ({"x": FLOATS}, {"x": FLOATS + 1e-9}, False, 0),
        ({"x": FLOATS, "y": FLOATS}, {"x": FLOATS, "y": FLOATS * 2}, False, 0),
        ({"x": np.ones(20), "n": np.arange(20)}, {"x": np.ones(20), "n": np.arange(20)}, False, 0),
        ({"lr_1": FLOATS, "a.lr": FLOATS}, {"lr_1": FLOATS, "a.lr": FLOATS}, False, 0),
        ({"acc": 0.5, "logits": FLOATS}, {"acc": 0.5, "logits": FLOATS}, True, 20),
        ({"acc": 0.5}, {"acc": 0.5}, True, 0),
        ({"x": FLOATS}, {"x": FLOATS[:3]}, False, 0),
    ],
)
def test_copies(
    ours: dict[str, object], theirs: dict[str, object], from_counts: bool, found: int
) -> None:
    arrays = [{key: np.asarray(value) for key, value in side.items()} for side in (ours, theirs)]
    comparison = compare_records(*arrays)
    assert count_copied(comparison, arrays[0], from_counts=from_counts) == found


def test_findings_in_words() -> None:
    findings = Verification(Path("x\x1b.zip"))
    assert not findings.passed, "nothing was read"
    findings.rows.append(StepRow(STEPS[0], "passed", "passed", "agrees"))
    assert findings.passed
    for _ in range(2):
        findings.add(MISSING, "a\u202e")
    findings.add(EDITED, "b")
    assert findings.summary().splitlines() == [
        "x\\x1b.zip: NOT verified, 2 faults",
        "  step       official  strict  log",
        "  1 forward  passed    passed  agrees",
        "  missing: a\\u202e",
        "  edited: b",
    ]


def test_a_packed_submission_and_what_is_done_to_it(tmp_path: Path) -> None:
    logs = make_submission(tmp_path / "run")
    (logs / "notes.txt").write_text("mine")
    files = {
        name: path
        for name, path in list_files(find_root(tmp_path / "run")).items()
        if is_known(name)
    }
    pack(files, tmp_path / "x.zip")
    assert kinds(tmp_path / "x.zip") == set()

    shutil.unpack_archive(tmp_path / "x.zip", tmp_path / "open")
    folder = tmp_path / "open" / "log_reprod"
    (folder / "training").mkdir()
    (folder / "training" / "torch.jsonl").write_text("{}")
    assert kinds(folder) == {"edited"}, "added"
    shutil.rmtree(folder / "training")
    (folder / "strict" / "loss_diff.json").unlink()
    assert kinds(folder) == {"missing"}
    shutil.copy(logs / "strict" / "loss_diff.json", folder / "strict")
    assert kinds(folder) == set()
    log = (folder / "loss_diff.log").read_text()
    (folder / "loss_diff.log").write_text(log.replace("INFO: ", "INFO:  ", 1))
    assert "edited" in kinds(folder)
    (folder / "manifest.json").write_text("[]")
    assert "damaged" in kinds(folder)


def kinds(path: Path) -> set[str]:
    """Return the kinds of faults that the pieces find in an archive or a folder."""
    with open_submission(path) as submission:
        findings = Verification(path)
        judged = [judge_step(submission, step, findings) for step in STEPS]
        check_manifest(submission, findings)
        check_results(submission, judged, findings)
        check_numbers(judged, findings)
        return {fault.kind for fault in findings.faults}


def test_a_step_without_records_has_nothing_to_hold_a_log_against(tmp_path: Path) -> None:
    logs = make_submission(tmp_path)
    findings, row = Verification(logs), StepRow(STEPS[0])
    with open_submission(logs) as submission:
        check_logs(submission, JudgedStep(STEPS[0], None, None, None, None), row, findings)
    assert not findings.faults


def test_an_archive_without_a_submission(tmp_path: Path) -> None:
    from reprod_align.errors import ReprodError

    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("README.md", "hello")
    with (
        pytest.raises(ReprodError, match="x.zip holds no submission"),
        open_submission(tmp_path / "x.zip"),
    ):
        pass
