"""What a check script writes beside its log, and what it refuses before it compares."""

import importlib
import json
from argparse import ArgumentParser
from pathlib import Path

from pipeline.checks import add_options, collect_page, found_file, judge
from pipeline.run import Run, make_run
from reprod_align import Gate
from reprod_align.base.files import write_json
from reprod_align.errors import ReprodError
from reprod_align.records import save_record
from reprod_align.report import Finding, Report

import numpy as np
import pytest


def make_gate(run: Run, theirs: float = 1.0) -> Gate:
    paths = (run.output("loss_torch"), run.output("loss_paddle"))
    for path, value in zip(paths, (1.0, theirs), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_record(path, {"loss": np.float64(value)})
    return Gate("loss", paths, paths, run.results / "loss_diff.log", "the scripts")


def options(*words: object) -> dict[str, object]:
    parser = ArgumentParser()
    add_options(parser)
    return vars(parser.parse_args(list(map(str, words))))


def test_a_check_writes_all_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, tests = tmp_path / "a.html", tmp_path / "a.xml"
    run = make_run(home=tmp_path, **options("--report", page, "--junit", tests, "--markdown"))
    assert judge(run, make_gate(run, 2.0)) == 1
    said = capsys.readouterr()
    assert said.out.startswith("### ❌") and "loss: DIFFERENT" in said.err
    assert "The steps" in page.read_text() and 'failures="2"' in tests.read_text()


def test_a_report_that_cannot_be_written_leaves_the_results(tmp_path: Path) -> None:
    run = make_run(home=tmp_path, **options())
    assert judge(run, make_gate(run)) == 0
    refused = make_run(home=tmp_path, **options("--report", tmp_path / "x.pdf"))
    with pytest.raises(ReprodError, match="must end in"):
        judge(refused, make_gate(refused, 2.0))
    assert json.loads(run.output("loss_diff").with_suffix(".json").read_text())["passed"]


def test_what_align_found_is_kept_for_the_page_until_the_next_check(tmp_path: Path) -> None:
    run = make_run(home=tmp_path, **options())
    judge(run, make_gate(run, 2.0))
    finding = Finding("loss", "", "", "planted", 1.0, 0.0, "a.py:1")
    write_json(found_file(run, "loss"), Report("diverges", [finding]))
    page = collect_page(run, "make align", [("3 loss", "loss", "1.0"), ("4 lr", "lr", "")])
    assert page.diagnostics[0].message == "planted" and [step.state for step in page.steps] == [
        "failed",
        "not run",
    ]
    judge(run, make_gate(run))
    assert not found_file(run, "loss").exists()


def test_the_losses_of_step_5_are_one_curve(tmp_path: Path) -> None:
    run = make_run(home=tmp_path, **options())
    judge(run, make_gate(run))
    run.output("loss_diff").with_suffix(".json").rename(
        run.output("train_align_diff").with_suffix(".json")
    )
    for side in ("torch", "paddle"):
        losses = {"epoch_0_losses": np.array([3.0, 2.0]), "epoch_1_losses": np.array([1.0])}
        save_record(run.output(f"train_align_{side}"), losses)
    (curve,) = collect_page(run, "x", [("5", "train_align", "")]).curves
    assert (curve.name, list(curve.expected)) == ("loss of Step 5", [3.0, 2.0, 1.0])


@pytest.mark.parametrize("step", range(1, 6))
def test_every_check_has_the_options(step: int) -> None:
    parser = ArgumentParser()
    importlib.import_module(f"pipeline.Step{step}.check_step{step}").add_options(parser)
    given = vars(parser.parse_args(["--report", "a.html", "--junit", "a.xml", "--markdown"]))
    assert [str(given[name]) for name in ("report", "junit", "markdown")] == [
        "a.html",
        "a.xml",
        "True",
    ]
