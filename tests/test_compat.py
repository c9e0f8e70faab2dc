"""A script written for reprod_log, with one import line changed."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from reprod_align import Recorder, ReprodError
from reprod_align.compat import ReprodDiffHelper, ReprodLogger
from tests.conftest import PATIENCE, REPOSITORY

import numpy as np
import pytest

STAMP = re.compile(r"\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\] root INFO: ")
SCRIPT = """
import sys
import numpy as np
from {package} import ReprodDiffHelper, ReprodLogger

def write(path, value):
    log = ReprodLogger()
    log.add("same", np.arange(4, dtype=np.float32))
    log.add("logits", np.asarray({expected}) if value else np.asarray({actual}))
    log.save(path)

write("a.npy", True)
write("b.npy", False)
helper = ReprodDiffHelper()
helper.compare_info(helper.load_info("a.npy"), helper.load_info("b.npy"))
helper.report({options})
{after}
print("still here", "paddle" in sys.modules, "reprod_log" in sys.modules)
"""


def run(folder: Path, package: str = "reprod_align.compat", expected: str = "[1.0]",
        actual: str = "[1.0]", options: str = "path='x.log'", after: str = "",
        ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    script = folder / "script.py"
    script.write_text(SCRIPT.format(package=package, expected=expected, actual=actual,
                                    options=options, after=after))  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.run([sys.executable, "-W", "ignore", script], cwd=folder, env=environment,
                          capture_output=True, text=True, timeout=PATIENCE)  # fmt: skip


def lines(text: str) -> list[str]:
    return [STAMP.sub("", line) for line in text.splitlines()]


def test_an_aligned_script_exits_0(tmp_path: Path) -> None:
    ran = run(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    log = (tmp_path / "x.log").read_text()
    assert all(STAMP.match(line) for line in log.splitlines())
    assert lines(log) == [
        "same: ",
        "\tmean diff: check passed: True, value: 0.0",
        "logits: ",
        "\tmean diff: check passed: True, value: 0.0",
        "diff check passed",
        "reprod_align: passed",
    ]
    assert lines(ran.stdout) == [*lines(log), "still here False False"]


@pytest.mark.parametrize("actual", ["[1.0]", "[1.0 + 2**-22]"])
def test_it_says_what_reprod_log_says(tmp_path: Path, actual: str) -> None:
    ours = run(tmp_path, actual=actual, options="diff_method='all', path='x.log'")
    theirs = run(tmp_path, "reprod_log", actual=actual, options="diff_method='all', path='x.log'")
    wanted = lines(theirs.stdout)[:-1]
    assert wanted[-1] == "diff check passed"
    assert lines(ours.stdout)[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        ("[1.0]", "[2.0]", "mean difference 1.0e+00"),
        ("[1.0]", "[float('nan')]", "not finite: the actual side has 1 NaN"),
        ("np.ones((2, 3))", "np.ones((3, 2))", "transposed?"),
        ("np.ones((4, 2))", "np.ones(2)", "the shape differs"),
        ("np.zeros(10**6)", "np.eye(1, 10**6)[0]", "max difference 1.0e+00"),
        ("np.zeros(0)", "np.zeros(0)", "nothing to compare"),
        ("np.ones(2, bool)", "np.zeros(2, bool)", "2 of 2 elements differ"),
    ],
)
def test_a_failed_report_makes_the_script_exit_1(
    tmp_path: Path, expected: str, actual: str, reason: str
) -> None:
    ran = run(tmp_path, expected=expected, actual=actual)
    assert ran.returncode == 1, ran
    assert "still here" in ran.stdout and ran.stderr == ""
    log = lines((tmp_path / "x.log").read_text())
    failed = log.index("diff check failed")
    assert log[failed - 1].startswith("\tmean diff: check passed: False, value: ")
    assert reason in log[failed + 1]
    assert log[-1].startswith("reprod_align: FAILED: logits: ") and reason in log[-1]


def test_handlers_of_the_script_run_before_the_exit(tmp_path: Path) -> None:
    after = "import atexit; atexit.register(print, 'my handler')"
    ran = run(tmp_path, actual="[2.0]", after=after)
    assert ran.returncode == 1 and ran.stdout.endswith("my handler\n")


def test_a_report_after_a_failed_one_does_not_save_it(tmp_path: Path) -> None:
    after = "helper.compare_info({'a': np.ones(1)}, {'a': np.ones(1)})\nhelper.report(path=None)"
    assert run(tmp_path, actual="[2.0]", after=after).returncode == 1


def test_a_failed_report_inside_a_module_leaves_the_exit_status_alone(tmp_path: Path) -> None:
    (tmp_path / "helper_module.py").write_text(
        "import numpy as np\n"
        "from reprod_align.compat import ReprodDiffHelper\n"
        "def verdict():\n"
        "    helper = ReprodDiffHelper()\n"
        "    helper.compare_info({'a': np.ones(1)}, {'a': np.zeros(1)})\n"
        "    return helper.report(path=None)\n"
    )
    after = "import helper_module; assert helper_module.verdict() is False"
    assert run(tmp_path, after=after).returncode == 0


def test_loading_executes_nothing(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    np.save(tmp_path / "a.npy", {"x": Attack()}, allow_pickle=True)  # type: ignore[arg-type]
    with pytest.raises(ReprodError, match="asks to run posix.mkdir"):
        ReprodDiffHelper().load_info(tmp_path / "a.npy")
    assert not (tmp_path / "ran").exists()


# In this process


def report(expected: Any, actual: Any, **options: Any) -> bool:
    helper = ReprodDiffHelper()
    helper.compare_info(expected, actual)
    return helper.report(**({"path": None} | options))


def test_logger_is_the_recorder() -> None:
    assert ReprodLogger is Recorder


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        ("mean", ["mean"]),
        ("max", ["max"]),
        ("all", ["min", "max", "mean"]),
        (["max", "min"], ["max", "min"]),
        (["mean", "all"], ["min", "max", "mean"]),
    ],
)
def test_methods(method: Any, shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert report({"x": np.ones(2)}, {"x": np.ones(2)}, diff_method=method)
    printed = lines(capsys.readouterr().out)
    assert [line.split()[0] for line in printed if line.startswith("\t")] == shown


def test_a_method_that_fails_where_our_rules_pass(capsys: pytest.CaptureFixture[str]) -> None:
    expected = np.zeros(10**4)
    expected[0] = 100.0
    actual = expected.copy()
    actual[1] = 1e-3
    assert report({"x": expected}, {"x": actual})
    assert not report({"x": expected}, {"x": actual}, diff_method=["max", "min"])
    printed = lines(capsys.readouterr().out)
    assert printed[-4:] == [
        "\tmax diff: check passed: False, value: 0.001",
        "\tmin diff: check passed: True, value: 0.0",
        "diff check failed",
        "reprod_align: FAILED: x: max difference 1.0e-03; threshold 1.0e-06",
    ]


def test_min_alone_cannot_hide_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert not report({"x": np.zeros(2)}, {"x": np.array([0, 1.0])}, diff_method="min")
    assert "\tmin diff: check passed: False, value: inf" in lines(capsys.readouterr().out)


def test_keys_shapes_and_kinds_fail_without_raising(capsys: pytest.CaptureFixture[str]) -> None:
    one = np.ones(1)
    assert not report({"a": one}, {"b": one})
    assert not report({"a": one}, {"a": np.ones(2)})
    assert not report({"a": one}, {"a": np.array(["x"])})
    assert not report({"a": one}, {"a": np.array([None])})
    assert not report({}, {})
    assert "reprod_align: FAILED: nothing to compare" in capsys.readouterr().out


def test_nested_records(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"layer": {"weight": np.ones(2), "bias": np.zeros(1)}}
    assert report(record, record)
    assert not report(record, {"layer": {"weight": np.ones(2), "bias": np.ones(1)}})
    assert "layer.bias: " in lines(capsys.readouterr().out)


def test_threshold_and_default_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    helper = ReprodDiffHelper()
    helper.compare_info({"acc": np.array(0.9)}, {"acc": np.array(0.901)})
    assert helper.report(diff_threshold=0.0015) is True
    assert (tmp_path / "diff.txt").read_text() == capsys.readouterr().out
    assert helper.report(diff_threshold=0.0005) is False


def test_misuse() -> None:
    with pytest.raises(ReprodError, match="call compare_info"):
        ReprodDiffHelper().report()
    for method in ("median", ["mean", "median"], []):
        with pytest.raises(ReprodError, match="diff_method"):
            report({"a": 1.0}, {"a": 1.0}, diff_method=method)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": {"b": 1.0}, "a.b": 5.0}, {"a": {"b": 9.0}, "a.b": 5.0}),
        ({"a": {}, "c": 1.0}, {"c": 1.0}),
    ],
    ids=["the same flat name", "an empty dict"],
)
def test_nested_records_lose_nothing(first: dict, second: dict, tmp_path: Path) -> None:
    helper = ReprodDiffHelper()
    helper.compare_info(first, second)
    assert helper.report(path=tmp_path / "diff.txt") is False
