"""What a check wrote as JSON must be what its arrays give; numbers may round otherwise elsewhere."""

import shutil
from pathlib import Path

from reprod_align.submission import verify
from reprod_align.submission.claims import check_results  # noqa: F401 - through verify
from tests.submission.making import change_record, edit_json, make_submission

import pytest


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_submission(tmp_path_factory.mktemp("honest") / "place")


@pytest.fixture
def logs(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest.parent, tmp_path / "copy")
    return tmp_path / "copy" / "log_reprod"


def faults(logs: Path) -> list[str]:
    return [fault.text for fault in verify(logs).faults]


def test_sums_in_another_order_are_the_same(logs: Path) -> None:
    def nudge(held: dict) -> None:  # type: ignore[type-arg]
        for entry in held["official"]["keys"]:
            entry["mean_abs"] *= 1 + 1e-12

    edit_json(logs / "strict" / "forward_diff.json", nudge)
    assert faults(logs) == []


def test_a_rule_of_another_edition_of_the_guide_is_accepted_and_a_looser_one_is_not(
    logs: Path,
) -> None:
    for threshold, accepted in ((0.0025, True), (0.1, False)):
        rule = {"mean_abs": threshold, "max_rel": 100 * threshold, "floor": threshold}
        path = logs / "strict" / "train_align_diff.json"
        edit_json(path, lambda held, rule=rule: held["official"]["rule"].update(rule))
        told = faults(logs)
        assert any("judges by another rule" in text for text in told) is not accepted
        if accepted:  # its tolerances are recomputed by that rule
            assert any("says tolerance" in text for text in told)


def test_a_result_that_is_missing_beside_its_twins_is_a_fault(logs: Path) -> None:
    (logs / "strict" / "loss_diff.json").unlink()
    assert any("strict/loss_diff.json" in text for text in faults(logs))


def test_another_version_may_write_other_fields(logs: Path) -> None:
    def age(held: dict) -> None:  # type: ignore[type-arg]
        held["made"]["versions"]["reprod-align"] = "0.0.1"
        for entry in [held["official"]["worst"], *held["official"]["keys"]]:
            del entry["min_abs"]

    for path in (logs / "strict").glob("*.json"):
        edit_json(path, age)
    assert faults(logs) == []


def test_float32_may_round_and_no_more(logs: Path) -> None:
    for side in ("torch", "paddle"):
        path = logs / f"bp_align_{side}.npy"
        change_record(path, lambda record: record.update(lr_3=record["lr_3"] * 1.01))
    assert any("lr_3" in text for text in faults(logs))
