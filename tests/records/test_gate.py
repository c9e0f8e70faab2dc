"""A gate from files to exit code: no stale result survives, and the log never says more than we."""

import json
import logging
import math
import os
import platform
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reprod_align import (
    EXACT,
    Gate,
    Recorder,
    ReprodError,
    check,
    load_record,
    official_rule,
    save_record,
)
from reprod_align.records.gate import describe_making, digest, list_versions

import numpy as np
import pytest

LINE = re.compile(r"\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\] root INFO: (.*)")
GENERATOR = np.random.default_rng(0)
RECORD = {name: GENERATOR.standard_normal((4, 3)).astype(np.float32) for name in ("emb", "out")}


def gate_of(folder: Path, expected: Any, actual: Any, **options: Any) -> Gate:
    """A gate whose official records are these, and whose strict ones are their float64 twins."""
    logs = folder / "log_reprod"
    paths = []
    for place, dtype in ((logs, None), (logs / "strict", np.float64)):
        for side, record in (("torch", expected), ("paddle", actual)):
            values = {key: np.asarray(value) for key, value in record.items()}
            if dtype is not None:
                values |= {k: v.astype(dtype) for k, v in values.items() if v.dtype.kind == "f"}
            paths.append(save_record(place / f"forward_{side}.npy", values))
    return Gate(
        "forward",
        official=(paths[0], paths[1]),
        strict=(paths[2], paths[3]),
        log=logs / "forward_diff.log",
        first_run="python pipeline/Step1/pt_forward_bert.py",
        **options,
    )


def messages(log: Path) -> list[str]:
    """The lines of a log without their dates; every line must have one."""
    matches = [LINE.fullmatch(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert all(matches), log.read_text()
    return [match[1] for match in matches if match]


def result(gate: Gate) -> Any:
    return json.loads(gate.result_file.read_text())


def test_aligned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD)
    assert check(gate) == 0
    assert messages(gate.log) == [
        "emb: ",
        "\tmean diff: check passed: True, value: 0.0",
        "out: ",
        "\tmean diff: check passed: True, value: 0.0",
        "diff check passed",
        "strict emb: passed True, max relative 0.0e+00 (tolerance 1e-09)",
        "strict out: passed True, max relative 0.0e+00 (tolerance 1e-09)",
        "strict check passed",
        "reprod_align: passed",
    ]
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "forward: aligned",
        "  official  passed  2 compared, worst emb: mean 0.0e+00 (tolerance 1e-06), "
        "max relative 0.0e+00 (tolerance 0.0001)",
        "  strict    passed  2 compared, worst emb: mean 0.0e+00, max relative 0.0e+00 "
        "(tolerance 1e-09)",
        f"  log: {gate.log}",
    ]
    assert printed.err == ""
    assert gate.result_file == tmp_path / "log_reprod" / "strict" / "forward_diff.json"
    assert result(gate)["passed"] is True and result(gate)["reason"] == ""


def test_the_log_begins_as_reprod_log_writes_it(tmp_path: Path) -> None:
    import reprod_log

    noisy = {key: array + np.float32(1e-7) for key, array in RECORD.items()}
    gate = gate_of(tmp_path, RECORD, noisy, strict_rule=official_rule(1e-6))
    assert check(gate) == 0
    helper = reprod_log.ReprodDiffHelper()
    helper.compare_info(RECORD, noisy)
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    helper.report(path=str(tmp_path / "theirs.log"))
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level
    theirs = messages(tmp_path / "theirs.log")
    assert messages(gate.log)[: len(theirs)] == theirs


def test_the_result_says_what_the_records_were_made_with(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    weights = {side: tmp_path / "weights" / f"{side}.bin" for side in ("torch", "paddle")}
    for side, path in weights.items():
        path.write_text(side)
    sources = (weights["torch"],), (weights["paddle"],)
    gate = gate_of(tmp_path, RECORD, RECORD, sources=sources)
    assert check(gate) == 0
    made = result(gate)["made"]
    records = {path.relative_to(gate.log.parent).as_posix(): digest(path)
               for path in (*gate.official, *gate.strict)}  # fmt: skip
    assert made["records"] == records and len(records) == 4
    assert made["sources"] == {
        side: {f"weights/{side}.bin": digest(path)} for side, path in weights.items()
    }


def test_different(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    actual = RECORD | {"out": RECORD["out"] + np.float32(0.5)}
    gate = gate_of(tmp_path, RECORD, actual, unit="layer")
    assert check(gate) == 1
    lines = messages(gate.log)
    assert lines[3].startswith("\tmean diff: check passed: False, value: 0.5")
    assert lines[4] == "diff check failed"
    assert lines[7] == "strict check failed"
    assert lines[8].startswith("reprod_align: FAILED: official: out: mean difference 5.0e-01; ")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "forward: DIFFERENT"
    assert printed[3] == "  first layer that differs: out"
    assert printed[4].startswith("    out: max difference 5.0e-01 at ")
    assert printed[-1] == f"  log: {gate.log}", "nothing else: no explanation was asked for"
    read = result(gate)
    assert read["passed"] is False and read["reason"].startswith("official: out: ")
    assert read["official"]["worst"]["key"] == read["strict"]["worst"]["key"] == "out"


def test_strict_alone_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD)
    wide = {key: array.astype(np.float64) for key, array in RECORD.items()}
    save_record(gate.strict[1], wide | {"emb": wide["emb"] * (1 + 1e-8)})
    assert check(gate) == 1
    lines = messages(gate.log)
    assert "diff check passed" in lines and "strict check failed" in lines
    assert lines[5].startswith("strict emb: passed False, max relative 1.0e-08 (tolerance 1e-09): ")
    assert lines[-1].startswith("reprod_align: FAILED: strict: emb: max difference ")
    assert "first tensor that differs: emb" in capsys.readouterr().out


def test_official_alone_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD | {"emb": RECORD["emb"] + np.float32(0.5)})
    save_record(gate.strict[1], load_record(gate.strict[0]))
    assert check(gate) == 1
    assert messages(gate.log)[-1].startswith("reprod_align: FAILED: official: emb: ")
    assert "first tensor that differs: emb" in capsys.readouterr().out


def test_rounding_around_zero_is_explained(tmp_path: Path) -> None:
    tiny = {"bias": np.array([1e-17, -1e-17])}
    gate = gate_of(tmp_path, tiny, {"bias": -tiny["bias"]})
    assert check(gate) == 0
    (line,) = [line for line in messages(gate.log) if line.startswith("strict bias")]
    assert line == (
        "strict bias: passed True, max relative 2.0e+00 (tolerance 1e-09): "
        "max difference 2.0e-17 is rounding around zero"
    )


def test_one_pair_of_files_for_both_rules(tmp_path: Path) -> None:
    ids = {"ids": np.arange(4)}
    gate = gate_of(tmp_path, ids, ids)
    gate = Gate("data", official=gate.strict, strict=gate.strict, log=gate.log, first_run="",
                strict_rule=EXACT)  # fmt: skip
    assert check(gate) == 0
    save_record(gate.strict[0], {"ids": np.arange(4) + 1})
    assert check(gate) == 1


def test_ten_failures_and_the_rest_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {f"k{n}": np.float64(n) for n in range(47)}
    check(gate_of(tmp_path, many, {key: value + 1 for key, value in many.items()}))
    printed = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("    k") for line in printed) == 10
    assert "    ... and 37 more" in printed


def test_remarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = RECORD | {"more": RECORD["out"] * 2}
    gate = gate_of(tmp_path, record, record, expect_noise=True)
    assert check(gate) == 0
    remark = "remark: bit-identical floats: were both files written by the same framework?"
    assert messages(gate.log)[-2] == remark
    assert capsys.readouterr().out.count(remark) == 1


def test_each_comparison_makes_its_own_remarks(tmp_path: Path) -> None:
    record = RECORD | {"more": RECORD["out"] * 2}
    noisy = {key: array.astype(float) * (1 + 1e-12) for key, array in record.items()}
    gate = gate_of(tmp_path, record, record, expect_noise=True)
    save_record(gate.strict[1], noisy)
    assert check(gate) == 0
    found = result(gate)
    assert len(found["official"]["remarks"]) == 1 and found["strict"]["remarks"] == []
    save_record(gate.official[1], noisy | {"emb": RECORD["emb"] * np.float32(1 + 1e-6)})
    save_record(gate.strict[1], load_record(gate.strict[0]))
    assert check(gate) == 0
    found = result(gate)
    assert found["official"]["remarks"] == [] and len(found["strict"]["remarks"]) == 1
    alone = Gate("x", gate.strict, gate.strict, gate.log, "", expect_noise=True)
    assert check(alone) == 0
    assert len(result(alone)["strict"]["remarks"]) == 1


def test_the_log_has_the_remarks_of_both_comparisons(tmp_path: Path) -> None:
    record = RECORD | {"more": RECORD["out"] * 2}
    gate = gate_of(tmp_path, record, record, expect_noise=True)
    wide = {key: array.astype(float) for key, array in record.items()} | {"out": np.zeros(3)}
    save_record(gate.strict[0], wide)
    save_record(gate.strict[1], {key: array * (1 + 1e-12) for key, array in wide.items()})
    assert check(gate) == 0
    remarks = [line for line in messages(gate.log) if line.startswith("remark: ")]
    assert [line[8:22] for line in remarks] == ["bit-identical ", "all zeros, so "]


def test_noise_is_not_expected_unless_a_gate_says_so(tmp_path: Path) -> None:
    record = RECORD | {"more": RECORD["out"] * 2}
    gate = gate_of(tmp_path, record, record)
    assert check(gate) == 0
    assert not any(line.startswith("remark") for line in messages(gate.log))


def test_a_gate_that_judges_nothing_strictly_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD, strict_rule=official_rule(1e-6))
    assert check(gate) == 0
    assert "  strict    not judged" in capsys.readouterr().out.splitlines()
    assert not any(line.startswith("strict") for line in messages(gate.log))


def test_a_gate_is_a_value_and_takes_paths_as_text(tmp_path: Path) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD)
    assert gate in {replace(gate)}
    as_text: Any = {name: tuple(map(str, getattr(gate, name))) for name in ("official", "strict")}
    spelled = replace(gate, log=str(gate.log), **as_text)
    assert check(spelled) == 0
    assert spelled.result_file == gate.result_file and result(gate)["passed"] is True


def test_the_threshold_is_the_official_rule_s(tmp_path: Path) -> None:
    other = {key: array + np.float32(0.5) for key, array in RECORD.items()}
    for threshold, code in ((1.0, 0), (0.25, 1)):
        gate = gate_of(tmp_path, RECORD, other, threshold=threshold, strict_rule=official_rule(1.0))
        assert check(gate) == code


# What cannot be compared


def refusal(gate: Gate, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert check(gate) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("forward: cannot be compared: ")


def test_keys_that_a_step_must_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def gate(expected: Any, actual: Any) -> Gate:
        return gate_of(tmp_path, expected, actual, required=("emb", "out"))

    assert check(gate(RECORD, RECORD)) == 0
    one = {"emb": RECORD["emb"]}
    assert refusal(gate(one, one), capsys) == (
        "both records lack out: run python pipeline/Step1/pt_forward_bert.py again"
    )
    assert refusal(gate({"x": 1}, {"x": 1}), capsys).startswith("both records lack emb, out: ")
    assert check(gate(RECORD, one)) == 1, "one side lacks it: a difference"
    text = RECORD | {"out": np.array("word")}
    assert refusal(gate(RECORD, text), capsys) == (
        "a record holds text, not numbers, under out: "
        "run python pipeline/Step1/pt_forward_bert.py again"
    )


@pytest.mark.parametrize("twin", ["", "losses"])
def test_strict_records_of_another_step(
    twin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD, required=("emb",), required_twin=twin)
    right, wrong = (twin or "emb"), ("emb" if twin else "losses")
    for key, code in ((right, 0), (wrong, 2)):
        for path in gate.strict:
            save_record(path, {key: np.ones(3)})
        assert check(gate) == code
    lack = f"{gate.strict[0]} and {gate.strict[1]} lack {right}, so they belong to another step: "
    assert refusal(gate, capsys) == lack + f"run {gate.first_run} again"


def test_a_record_older_than_what_it_was_made_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Times tell where no result knows the records yet."""
    code, gone = tmp_path / "model.py", tmp_path / "gone.py"
    code.write_text("")
    gate = gate_of(tmp_path, RECORD, RECORD, sources=((gone,), (code, gone)))
    os.utime(code, ns=(5, 5))
    for path in (*gate.official, *gate.strict):
        os.utime(path, ns=(5, 5))
    for stale in (gate.official[1], gate.strict[1]):
        os.utime(stale, ns=(4, 4))
        said = f"{stale} is older than {code}: run {gate.first_run} again"
        assert refusal(gate, capsys) == said
        os.utime(stale, ns=(5, 5))
    os.utime(gate.official[0], ns=(4, 4))
    assert check(gate) == 0, "as old is not older, and the other side was not made with it"


def test_digests_tell_where_a_result_knows_the_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy, whose files have any time, is as good; a change in a file of any time is seen."""
    code = tmp_path / "model.py"
    code.write_text("x = 1")
    gate = gate_of(tmp_path, RECORD, RECORD, sources=((), (code,)))
    assert check(gate) == 0
    for path in (*gate.official, *gate.strict):
        os.utime(path, ns=(4, 4))
    assert check(gate) == 0, "the files are those that were judged"
    code.write_text("x = 2")
    os.utime(code, ns=(1, 1))
    said = f"{gate.official[1]} was made with another {code}: run {gate.first_run} again"
    assert refusal(gate, capsys) == said
    assert refusal(gate, capsys) == said, "a refusal forgets nothing"
    code.write_text("x = 1")
    assert check(gate) == 0
    for made in ("[]", '{"made": 1}', '{"made": {"records": {}, "sources": []}}', "no"):
        gate.result_file.write_text(made)
        assert (
            refusal(gate, capsys)
            == f"{gate.official[1]} is older than {code}: run {gate.first_run} again"
        )


def test_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    gate = gate_of(tmp_path, RECORD, RECORD)
    assert check(gate) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    gate.official[0].unlink()
    assert check(gate) == 2
    reason = (
        "log_reprod/forward_torch.npy is missing: first run "
        "python pipeline/Step1/pt_forward_bert.py"
    )
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err == f"forward: cannot be compared: {reason}\n"
    assert messages(gate.log) == [
        f"reprod_align: FAILED: {reason}",
        f"diff check failed: {reason}",
    ]
    assert "diff check passed" not in gate.log.read_text()
    found = result(gate)
    assert found.pop("made")["records"], "known from before, and kept"
    assert found == {
        "name": "forward", "passed": False, "reason": reason, "official": None, "strict": None
    }  # fmt: skip
    gate.strict[1].unlink()
    assert check(gate) == 2
    assert (
        "log_reprod/forward_torch.npy, log_reprod/strict/forward_paddle.npy are missing: first run"
        in capsys.readouterr().err
    )


def test_damaged_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD)
    gate.strict[1].write_bytes(gate.strict[1].read_bytes()[:-3])
    assert check(gate) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "strict/forward_paddle.npy is truncated" in line
    assert messages(gate.log)[-1].startswith("diff check failed: ")


def test_an_old_log_does_not_survive_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD)
    assert check(gate) == 0

    def crash(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["reprod_align.records.gate"], "compare_records", crash)
    with pytest.raises(KeyboardInterrupt):
        check(gate)
    assert not gate.log.exists() and not gate.result_file.exists()


def test_a_log_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = gate_of(tmp_path, RECORD, RECORD)
    gate.log.mkdir()
    assert check(gate) == 2
    reasons = capsys.readouterr().err.splitlines()
    assert reasons[0].startswith("forward: cannot be compared: cannot replace ")
    assert reasons[1].startswith("forward: cannot ") and len(reasons) == 2


def test_without_reprod_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "reprod_log", None)
    gate = gate_of(tmp_path, RECORD, RECORD)
    assert check(gate) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "reprod_log cannot be imported" in line and "pip install -r requirements.txt" in line
    assert messages(gate.log)[-1].startswith("diff check failed: reprod_log cannot be imported")


def test_weights_that_cannot_be_read_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(5, "Input/output error", "weights.bin")

    monkeypatch.setattr(sys.modules["reprod_align.records.gate"], "digest", fail)
    said = refusal(gate_of(tmp_path, RECORD, RECORD), capsys)
    assert said == "weights.bin cannot be read: Input/output error"


# The log of reprod_log agrees with our verdict


FAULTS: dict[str, tuple[Any, Any]] = {
    "nan on one side": (np.ones((4, 2)), np.full((4, 2), math.nan)),
    "nan on both": (np.full(2, math.nan), np.full(2, math.nan)),
    "inf on both": (np.full(2, math.inf), np.full(2, math.inf)),
    "transposed": (np.ones((3, 5)), np.ones((5, 3))),
    "broadcast": (np.ones((4, 2)), np.ones(2)),
    "broadcast 1": (np.ones(1), np.ones(1000)),
    "uint8 wraps": (np.zeros(2**20, np.uint8), np.eye(1, 2**20, dtype=np.uint8) * 255),
    "int8 wraps": (np.array([-128], np.int8), np.array([0], np.int8)),
    "booleans": (np.array([True, False]), np.array([True, True])),
    "texts": (np.array(["a", "b"]), np.array(["a", "c"])),
    "empty": (np.ones((0, 3)), np.ones((0, 3))),
    "kinds": (np.ones(2), np.ones(2, int)),
    "large integers": (np.array([2**53]), np.array([2**53 + 1])),
    "one of a million": (np.zeros(10**6, np.float32), np.eye(1, 10**6, dtype=np.float32)[0] * 0.9),
    "half": (np.full(4, 6e4, np.float16), np.full(4, -6e4, np.float16)),
    "float32 overflow": (np.full(4, 3e38, np.float32), np.full(4, -3e38, np.float32)),
    "complex": (np.array([1j]), np.array([2j])),
}  # fmt: skip


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_fault_fails_the_log_too(tmp_path: Path, fault: str) -> None:
    expected, actual = FAULTS[fault]
    if fault == "uint8 wraps":
        actual = actual[0]
    good = np.ones(2)
    gate = gate_of(tmp_path, {"good": good, "x": expected}, {"good": good, "x": actual})
    assert check(gate) == 1
    lines = messages(gate.log)
    assert lines[1] == "\tmean diff: check passed: True, value: 0.0"
    assert lines[2] == "x: " and lines[3].startswith("\tmean diff: check passed: False, value: ")
    assert lines[4] == "diff check failed"
    assert "diff check passed" not in lines
    assert lines[-1].startswith("reprod_align: FAILED: official: x: ")


def test_equal_pairs_of_every_kind_pass_the_log(tmp_path: Path) -> None:
    record = {
        "bool": np.array([True]), "text": np.array(["a"]), "bytes": np.array([b"a"]),
        "uint64": np.array([2**64 - 1], np.uint64), "half": np.ones(2, np.float16), "complex": 1j,
    }  # fmt: skip
    gate = gate_of(tmp_path, record, record)
    assert check(gate) == 0
    assert messages(gate.log)[-1] == "reprod_align: passed"


def test_half_precision_rounding_of_the_mean_does_not_contradict_us(tmp_path: Path) -> None:
    expected = np.zeros(3, np.float16)
    gate = gate_of(tmp_path, {"x": expected}, {"x": expected + np.float16(6e-8)})
    check(gate)
    assert "diff check passed" in messages(gate.log)


@pytest.mark.parametrize("threshold", [math.inf, math.nan])
def test_a_threshold_without_end_fails_the_log(tmp_path: Path, threshold: float) -> None:
    gate = gate_of(tmp_path, {"x": np.ones(2)}, {"x": np.ones(3)}, threshold=threshold)
    assert check(gate) == 1
    assert "diff check failed" in messages(gate.log)


@pytest.mark.parametrize(
    ("expected", "actual"), [({}, {}), ({"a": 1.0}, {}), ({}, {"b": 1.0}), ({"a": 1.0}, {"b": 1.0})]
)
def test_keys_fail_the_log(tmp_path: Path, expected: Any, actual: Any) -> None:
    gate = gate_of(tmp_path, expected, actual)
    assert check(gate) == 1
    lines = messages(gate.log)
    assert "\tmean diff: check passed: False, value: inf" in lines
    assert "diff check failed" in lines and "diff check passed" not in lines
    assert ("(no keys): " in lines) == (not expected and not actual)


def test_a_key_cannot_forge_a_line(tmp_path: Path) -> None:
    key = "x\n[2030/01/01 00:00:00] root INFO: diff check passed"
    gate = gate_of(tmp_path, {key: 1.0}, {key: 2.0})
    assert check(gate) == 1
    assert not any(line == "diff check passed" for line in messages(gate.log))


def test_unusual_names_survive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = gate_of(tmp_path, {"层.0 ü": 1.0}, {"层.0 ü": 1.0})
    assert check(gate) == 0
    assert "层.0 ü: " in messages(gate.log)


def test_recorder_and_check_fit_together(tmp_path: Path) -> None:
    for side in ("torch", "paddle"):
        record = Recorder(tmp_path / f"{side}.npy")
        record.add("loss", 0.5)
        record.save()
    pair = tmp_path / "torch.npy", tmp_path / "paddle.npy"
    assert check(Gate("loss", pair, pair, tmp_path / "loss_diff.log", "x")) == 0


# What a failed check goes on to say


def test_the_explanation_is_asked_only_if_the_sides_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines() -> list[str]:
        return ["in layer 1:", "  epsilon\r"]

    assert check(gate_of(tmp_path, RECORD, RECORD, explanation=lines)) == 0
    assert "layer 1" not in capsys.readouterr().out
    gate = gate_of(tmp_path, RECORD, {**RECORD, "out": RECORD["out"] + 1}, explanation=lines)
    assert check(gate) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[-3:] == [f"  log: {gate.log}", "  in layer 1:", "    epsilon\\r"]
    gate.strict[0].unlink()
    assert check(gate) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ReprodError("no weights"), "no weights"),
        (ValueError("two\nlines"), "ValueError: two"),
        (SystemExit(0), "SystemExit: 0"),
        (KeyboardInterrupt(), "KeyboardInterrupt: no message"),
    ],
)
def test_an_explanation_that_fails_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: BaseException, said: str
) -> None:
    def broken() -> list[str]:
        raise error

    actual = {**RECORD, "out": RECORD["out"] + 1}
    assert check(gate_of(tmp_path, RECORD, actual, explanation=broken)) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == f"  where and why could not be found: {said}"
    assert printed.err == ""


def test_digests_and_versions(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    weights, record = tmp_path / "weights" / "x.bin", tmp_path / "loss_torch.npy"
    weights.write_bytes(b"1")
    record.write_bytes(b"2")
    made = describe_making(
        {"loss_torch.npy": record}, {"torch": [weights, tmp_path / "none"], "paddle": []}
    )
    assert made["records"] == {"loss_torch.npy": digest(record)}
    assert made["sources"] == {"torch": {"weights/x.bin": digest(weights)}, "paddle": {}}
    assert made["versions"] == list_versions()
    written = datetime.strptime(made["date"], "%Y-%m-%dT%H:%M:%S%z")
    assert abs(datetime.now(UTC) - written) < timedelta(days=1)
    for package in ("numpy", "reprod_log"):
        assert list_versions()[package] == version(package)
    assert list_versions()["python"] == platform.python_version()
    assert digest(weights) == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
