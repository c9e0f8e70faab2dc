"""A check script's gates: compared, and shown as its options ask."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from reprod_align import Gate, save_record
from reprod_align.base.files import write_json
from reprod_align.errors import ReprodError
from reprod_align.page.outputs import add_output_arguments
from reprod_align.report import Finding, Report
from reprod_align.report.gates import judge_gates, read_found, read_results

import numpy as np
import pytest


def make_gate(folder: Path, theirs: float = 1.0) -> Gate:
    paths = folder / "ours.npy", folder / "theirs.npy"
    for path, value in zip(paths, (1.0, theirs), strict=True):
        save_record(path, {"loss": np.float64(value)})
    return Gate("loss", paths, paths, folder / "loss_diff.log", "the scripts")


def read_options(*words: object) -> Namespace:
    parser = ArgumentParser()
    add_output_arguments(parser, json=False)
    return parser.parse_args(list(map(str, words)))


def test_all_that_is_asked_for_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, tests = tmp_path / "a.html", tmp_path / "a.xml"
    options = read_options("--report", page, "--junit", tests, "--markdown")
    assert judge_gates(options, [make_gate(tmp_path, 2.0)], {}) == 1
    said = capsys.readouterr()
    assert said.out.startswith("### ❌") and "loss: DIFFERENT" in said.err
    assert "<html" in page.read_text() and 'failures="2"' in tests.read_text()
    assert judge_gates(read_options(), [make_gate(tmp_path)], {}) == 0


def test_what_align_found_before_is_removed_unless_the_check_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "loss_align.json"
    write_json(kept, Report("diverges", [Finding("loss", "", "", "another loss", 1.0, 0.0)]))
    gate = make_gate(tmp_path)
    with pytest.raises(ReprodError, match="must end in"):
        judge_gates(read_options("--report", "x.pdf"), [gate], {"loss": kept})
    found = read_found([tmp_path / "none.json", kept])
    assert found.findings[0].message == "another loss"
    assert judge_gates(read_options(), [gate], {"loss": kept}) == 0
    assert not kept.exists() and read_found([kept]) is None


def test_results_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    write_json(tmp_path / "good.json", {"passed": True})
    files = {name: tmp_path / f"{name}.json" for name in ("good", "broken", "none")}
    assert read_results(files) == {"good": {"passed": True}}
