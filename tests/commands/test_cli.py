"""The command `reprod-align`, and the doctor."""

import json
import subprocess
import sys
from pathlib import Path

import reprod_align
from reprod_align import ReprodError, save_record
from reprod_align.commands import COMMANDS, main, read_name_map
from reprod_align.commands.doctor import (
    PIPELINE_PROBES,
    PROBES,
    SETUP,
    Examined,
    HealthCheck,
    examine,
    list_probes,
)
from tests.conftest import run_python
from tests.warm import warm_executable

import numpy as np
import pytest


@pytest.fixture
def records(tmp_path: Path) -> tuple[str, str]:
    """Two records whose only array differs by 1e-8, relative."""
    paths = tmp_path / "a.npy", tmp_path / "b.npy"
    save_record(paths[0], {"x": np.ones(3)})
    save_record(paths[1], {"x": np.ones(3) + 1e-8})
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 0), (["--rule", "strict"], 1), (["--rule", "exact"], 1), (["--threshold", "1e-9"], 1)],
)
def test_compare(
    records: tuple[str, str], options: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *records, *options]) == code
    assert ("passed" if code == 0 else "first key that differs: x") in capsys.readouterr().out


def test_compare_as_json(records: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *records, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"][0]["key"] == "x"


def test_as_a_module(records: tuple[str, str]) -> None:
    words = [sys.executable, "-m", "reprod_align", "compare", *records, "--rule", "exact"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("failed  1 compared")


def test_a_missing_record(records: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", records[0], "nowhere.npy"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("reprod-align: nowhere.npy") and error.count("\n") == 1


def test_a_healthy_and_a_sick_probe() -> None:
    assert examine(HealthCheck("fine", "print('1.0')")).found == "1.0"
    sick = examine(HealthCheck("sick", "import no_such_package"))
    assert not sick.healthy and "No module named 'no_such_package'" in sick.found
    crashed = examine(HealthCheck("crash", "import os; os.abort()"))
    assert not crashed.healthy and crashed.found == "exit -6"


def test_every_probe_passes_here_and_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(warm_executable()))
    for probe in list_probes():
        finding = examine(probe)
        assert finding.healthy, f"{probe.name}: {finding.found}"
        assert finding.found and SETUP.split()[0] in probe.remedy + SETUP


def test_the_doctor_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = (
        HealthCheck("sick", "raise SystemExit('worn out')"),
        HealthCheck("well", "print('alive')"),
    )
    monkeypatch.setattr("reprod_align.commands.doctor.list_probes", lambda: probes)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "FAILED" in said and "worn out" in said and SETUP in said
    assert said.splitlines()[-1] == "ok      well  alive"


def test_what_is_optional_may_be_absent_but_not_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, remedy = "import numpy, no_such", "pip install no_such"
    absent = HealthCheck(
        "pages", code, remedy, optional=("numpy", "no_such")
    )  # one of two is there
    monkeypatch.setattr("reprod_align.commands.doctor.list_probes", lambda: (absent,))
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out.split()
    assert said == "absent pages no_such not installed: pip install no_such".split()
    broken = HealthCheck("pages", "raise ImportError('half of it')", optional=("numpy",))
    monkeypatch.setattr("reprod_align.commands.doctor.list_probes", lambda: (broken,))
    assert main(["doctor"]) == 1
    assert "half of it" in capsys.readouterr().out


def test_a_paddle_that_lacks_what_the_backend_replaces_is_not_called_healthy() -> None:
    (paddle,) = (probe for probe in PROBES if probe.name == "private names of Paddle")
    found = examine(HealthCheck("", f"import paddle; del paddle._C_ops.dropout\n{paddle.code}"))
    assert not found.healthy and "dropout" in found.found


def test_the_doctor_speaks_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line comes as soon as it is known: a first import can take a minute."""
    said: list[str] = []
    probes = (HealthCheck("first", "print(1)"), HealthCheck("second", "print(2)"))
    monkeypatch.setattr("reprod_align.commands.doctor.list_probes", lambda: probes)

    def look(probe: HealthCheck) -> Examined:
        said.append(f"examined {probe.name}")
        return Examined(probe, True, "x")

    monkeypatch.setattr("reprod_align.commands.doctor.examine", look)
    monkeypatch.setattr("builtins.print", lambda text, **_: said.append(text.split()[1]))
    assert main(["doctor"]) == 0
    assert said == ["examined first", "first", "examined second", "second"]


def test_outside_a_clone_the_doctor_asks_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_probes()[-1] == PIPELINE_PROBES[-1]
    monkeypatch.setattr("reprod_align.commands.doctor.find_spec", lambda name: None)
    assert list_probes() == PROBES
    assert not any("make" in probe.remedy for probe in PROBES)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"reprod-align {reprod_align.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_script_that_completes_every_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit, match="0"):
        main(["--print-completion", shell])
    said = capsys.readouterr().out
    assert all(name in said for name in COMMANDS) and "allow-identical" in said


def test_completion_without_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 2
    assert "python -m pip install shtab" in capsys.readouterr().err


def test_the_public_face() -> None:
    assert sorted(reprod_align.__all__) == reprod_align.__all__
    for name in reprod_align.__all__:
        assert hasattr(reprod_align, name)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_its_exit_codes_mean(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    said = capsys.readouterr().out
    assert f"usage: reprod-align {name}" in said and "exit 0" in said and "1 " in said


@pytest.mark.parametrize("name", ["compare", "diff"])
def test_comparing_files_loads_few_modules(name: str) -> None:
    code = (
        "import sys; from reprod_align.commands import parse\n"
        f"parse([{name!r}, 'a', 'b'])\nprint(*sys.modules, sep='\\n')"
    )
    modules = run_python("-c", code).stdout.splitlines()
    rooms = [m for m in modules if m.startswith("reprod_align.")]
    ours = [m for m in rooms if m.split(".")[1] not in ("base", "errors")]
    assert f"reprod_align.commands.{name}" in ours and len(ours) <= 12, ours
    assert not {"torch", "paddle"} & set(modules)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is missing"),
        ("{", "cannot be read as JSON"),
        ("[1]", "expected a JSON object such as"),
        ('{"a": 1}', "expected a JSON object such as"),
    ],
)
def test_a_bad_name_map(text: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ReprodError, match=words):
        read_name_map(path)


def test_a_name_map(tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text('{"a": "b"}')
    assert read_name_map(tmp_path / "names.json") == {"a": "b"}
