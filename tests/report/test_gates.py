"""A check script's gates: compared, shown as its options ask, and put on one page."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from reprod_align import Gate, check
from reprod_align.base.files import write_json
from reprod_align.errors import ReprodError
from reprod_align.page import CurvePlot
from reprod_align.page.html import render_page
from reprod_align.page.outputs import add_output_arguments, render_junit, render_markdown
from reprod_align.records import save_record
from reprod_align.report import Check, Finding, Report
from reprod_align.report.gates import (
    collect_layers,
    describe_step,
    judge_gates,
    make_steps_page,
    read_found,
    read_results,
)

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


def judge(folder: Path, name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Any:
    """Return what `check` writes as JSON on two records, in float32 and float64."""
    pairs = []
    for dtype in ("float32", "float64"):
        paths = tuple(folder / f"{name}_{side}_{dtype}.npy" for side in ("a", "b"))
        for path, record in zip(paths, (ours, theirs), strict=True):
            save_record(path, {key: np.asarray(value, dtype) for key, value in record.items()})
        pairs.append(paths)
    gate = Gate(name, pairs[0], pairs[1], folder / f"{name}_diff.log", "nothing")
    check(gate)
    return json.loads(gate.result_file.read_text())


@pytest.fixture
def results(tmp_path: Path) -> dict[str, Any]:
    forward = {"bert.layer.0": [1.0, 2.0], "bert.layer.1": [3.0, 4.0], "logits": [0.5, 0.25]}
    wrong = forward | {"bert.layer.1": [3.0, 4.5], "logits": [0.5, 0.75]}
    steps = {f"loss_{n}": 1.0 / (n + 1) for n in range(3)}
    steps |= {
        "gradient_0.bert.layer.1.weight": [1.0, 2.0],
        "gradient_0.bert.layer.1.bias": [1.0, 9.0],
    }
    return {
        "forward": judge(tmp_path, "forward", forward, wrong),
        "metric": judge(tmp_path, "metric", {"accuracy": 0.5}, {"accuracy": 0.5}),
        "bp_align": judge(tmp_path, "bp_align", steps, steps | {"gradient_0.bert.layer.1.bias": [1.0, 9.5]}),
    }  # fmt: skip


def test_the_page_of_three_steps(results: dict[str, Any]) -> None:
    steps = [
        describe_step(f"{at} {name}", results[name], "2.0") for at, name in enumerate(results, 1)
    ]
    steps.append(describe_step("5 train_align", None))
    page = make_steps_page(
        "make align", steps, results, curves=[CurvePlot("loss of Step 5", [0], [1.0], [1.0])]
    )
    assert not page.passed and page.sentence.startswith("3 of 4 comparisons did not pass")
    assert [step.state for step in steps] == ["failed", "passed", "failed", "not run"]
    assert [curve.name for curve in page.curves] == ["loss of Step 4", "loss of Step 5"]
    assert (
        page.diagnostics[0].place == "bert.layer.1" and page.diagnostics[0].module == "bert.layer.1"
    )
    assert page.tables[0].rows == [("metric", "accuracy", "0.5", "0.5", "0.0e+00")]
    assert page.tables[1].rows[0][1] == "bert.layer.1" and 0 in page.tables[1].failed
    assert "1 forward" in render_page(
        page
    ) and "| metric | accuracy | 0.5 | 0.5 |" in render_markdown(page)
    text = render_junit(page)
    assert 'name="5 train_align"' in text and "bert.layer.1 (float64)" in text


def test_layers_have_both_precisions_and_the_worst_gradient(results: dict[str, Any]) -> None:
    layers = {layer.torch_name: layer for layer in collect_layers(results)}
    assert list(layers)[:3] == ["bert.layer.0", "bert.layer.1", "logits"]
    first, second = layers["bert.layer.0"], layers["bert.layer.1"]
    assert first.forward is not None and first.rounded is not None and not first.failed
    assert second.failed and second.forward is not None and second.forward.most == 0.5
    assert second.backward is not None and second.backward.most == 0.5


def test_what_align_found_leads_the_page(results: dict[str, Any]) -> None:
    finding = Finding(
        "forward", "bert.layer.1", "bert.layer.1", "why", 0.5, 1e-9, "a.py:1", "b.py:2"
    )
    found = Report("diverges", [finding], checks=[Check("forward", "outputs", 0.5, False)])
    page = make_steps_page("check", [describe_step("forward", results["forward"])], results, found)
    assert page.diagnostics[0].message == "why" and len(page.diagnostics) == 3
    assert page.verdict == "failed" and page.steps


def test_a_step_that_could_not_be_compared(tmp_path: Path) -> None:
    gate = Gate("loss", (tmp_path / "a", tmp_path / "b"), (tmp_path / "a", tmp_path / "b"),
                tmp_path / "loss_diff.log", "the scripts")  # fmt: skip
    assert check(gate) == 2
    result = json.loads(gate.result_file.read_text())
    step = describe_step("3 loss", result)
    assert (
        step.state == "not compared"
        and "is missing" in step.difference
        or "are missing" in step.difference
    )
    page = make_steps_page("check", [step], {"loss": result})
    assert not page.passed and page.diagnostics[0].stage == "loss"
    assert 'failures="1"' in render_junit(page)
