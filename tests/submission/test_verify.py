"""An honest submission is verified; each of the tampered ones is caught, and its kind is named."""

import json
import shutil
from pathlib import Path
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.records import save_record
from reprod_align.submission import verify
from tests.submission.making import (
    STEPS,
    WEIGHTS,
    change_record,
    judge,
    make_submission,
    make_values,
    replace,
    write_step,
)
from tests.submission.tampering import TAMPERED, edit

import numpy as np
import pytest


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission's log_reprod/. Read only."""
    return make_submission(tmp_path_factory.mktemp("honest"))


@pytest.fixture(scope="module")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of other weights. Read only."""
    return make_submission(tmp_path_factory.mktemp("other"), seed=1)


@pytest.fixture
def logs(honest: Path, tmp_path: Path) -> Path:
    """A copy to tamper with; its weights lie beside it."""
    shutil.copytree(honest.parent, tmp_path / "copy")
    return tmp_path / "copy" / "log_reprod"


def found_in(folder: Path, **options: Any) -> dict[str, list[str]]:
    """Return the faults by kind."""
    kinds: dict[str, list[str]] = {}
    for fault in verify(folder, **options).faults:
        kinds.setdefault(fault.kind, []).append(fault.text)
    return kinds


def test_an_honest_submission_is_verified(honest: Path) -> None:
    for folder in (honest, honest.parent):
        findings = verify(folder)
        assert findings.passed, findings.summary()
        assert [row.log for row in findings.rows] == ["agrees"] * len(STEPS)
        assert [row.strict for row in findings.rows] == ["passed"] * len(STEPS)


def test_the_other_naming_of_the_guide(logs: Path) -> None:
    shutil.rmtree(logs / "strict")
    for name in STEPS:
        (logs / f"{name}_diff.log").rename(logs / f"{name}_diff_log.txt")
    (logs / "train_align_torch.npy").rename(logs / "train_align_benchmark.npy")
    findings = verify(logs)
    assert findings.passed, findings.summary()
    assert {row.strict for row in findings.rows} == {"not included"}
    assert any("strict lines could not be recomputed" in remark for remark in findings.remarks)


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_submission_is_caught(
    name: str, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper, kind, words = TAMPERED[name]
    tamper(logs)
    capsys.readouterr()
    findings = verify(logs)
    assert not findings.passed
    assert any(words in fault.text for fault in findings.faults if fault.kind == kind), (
        findings.summary()
    )
    assert "it ran" not in capsys.readouterr().out
    json.dumps(findings.to_json(), allow_nan=False)


def test_a_step_of_another_run_is_caught(logs: Path, other_run: Path) -> None:
    for path in other_run.rglob("bp_align*"):
        shutil.copy(path, logs / path.relative_to(other_run))
    faults = found_in(logs)["different runs"]
    assert any("made with different" in text and "weights.bin" in text for text in faults)
    assert any("should be one number" in text for text in faults)


def test_a_float64_record_of_another_run_is_caught(logs: Path, other_run: Path) -> None:
    for side in ("torch", "paddle"):
        shutil.copy(other_run / f"strict/forward_{side}.npy", logs / "strict")
    judge(logs, "forward", logs.parent / WEIGHTS)
    assert any("float64 twin" in text for text in found_in(logs)["different runs"])


def test_identical_floats_can_be_accepted(logs: Path) -> None:
    TAMPERED["PyTorch's losses over Paddle's"][0](logs)
    assert "suspicious" in found_in(logs)
    assert found_in(logs, allow_identical=["bp_align"]) == {}


def test_the_threshold_of_the_last_step_is_an_option(logs: Path) -> None:
    for folder in (logs, logs / "strict"):
        change_record(folder / "train_align_paddle.npy", lambda record: record.update(acc=0.898))
    shutil.rmtree(logs / "strict")
    edit("train_align_diff.log", "value: 0.0", "value: 0.002")(logs)
    assert "failed" in found_in(logs)
    assert "failed" not in found_in(logs, threshold=0.0025)


def test_metrics_may_be_equal(logs: Path) -> None:
    """Quotients of counts are the same in both frameworks: no sign of a copy."""
    metrics = {f"f1_{name}": count / 97 for name, count in enumerate(range(1, 12))}
    write_step(logs, "metric", make_values(0)["metric"], logs.parent / WEIGHTS,
               lambda *sides: [side.update(metrics) for side in sides])  # fmt: skip
    assert verify(logs).passed


def test_of_two_references_the_log_is_about_one(logs: Path) -> None:
    """The paper's figures lie beside PyTorch's: either may be what was compared."""
    save_record(logs / "train_align_benchmark.npy", {"acc": 0.95})
    assert verify(logs).passed, "the log is about PyTorch's run"
    shutil.rmtree(logs / "strict")
    save_record(logs / "train_align_benchmark.npy", {"acc": np.float32(0.901)})
    save_record(logs / "train_align_paddle.npy", {"acc": np.float32(0.9)})
    (logs / "train_align_diff.log").write_text(
        "acc:\n    mean diff: check passed: True, value: 0.0010000\ndiff check passed\n"
    )
    assert verify(logs).passed, "the log is about the paper's"
    replace(logs / "train_align_diff.log", "0.0010000", "0.0012")
    assert not verify(logs).passed


def test_a_submission_may_lie_deeper_and_must_be_the_only_one(honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest, tmp_path / "mine" / "log_reprod")
    (tmp_path / "__MACOSX").mkdir()
    assert verify(tmp_path).passed
    shutil.copytree(honest, tmp_path / "other")
    with pytest.raises(ReprodError, match="more than one submission: mine/log_reprod, other"):
        verify(tmp_path)


def test_a_log_by_reprod_log_alone_is_understood(logs: Path) -> None:
    """What a contestant hands in who knows nothing of this library: float32 means, no strict lines."""
    shutil.rmtree(logs / "strict")
    for name in STEPS:
        lines = (logs / f"{name}_diff.log").read_text().splitlines()
        kept = [
            line.partition("INFO: ")[2]
            for line in lines
            if "strict" not in line and "reprod_align" not in line
        ]
        (logs / f"{name}_diff.log").write_text("\n".join(kept))
    assert verify(logs).passed


def test_a_deep_folder_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match="holds no submission"):
        verify(tmp_path)
    save_record(tmp_path / "forward_torch.npy", {"x": 1.0})
    tmp_path.joinpath(*"abcdefghij").mkdir(parents=True)
    with pytest.raises(ReprodError, match="folders inside each other"):
        verify(tmp_path)


def test_a_link_is_refused(logs: Path) -> None:
    (logs / "loss_torch.npy").unlink()
    (logs / "loss_torch.npy").symlink_to("/etc/passwd")
    with pytest.raises(ReprodError, match="loss_torch.npy is a link"):
        verify(logs)
