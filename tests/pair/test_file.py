"""A user's file: what it defines, what is wrong with it, and the line of an error."""

import io
import json
import os
import pickle
import re
import runpy
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reprod_align.base import console
from reprod_align.commands import main
from reprod_align.commands import pair as pair_command
from reprod_align.errors import ReprodError
from reprod_align.model.side import ModelFailure
from reprod_align.page.html import render_page
from reprod_align.pair import announce_work
from reprod_align.pair.file import (
    PairFile,
    call_named,
    explain_error,
    locate_error,
    open_file,
    run_user_code,
)
from reprod_align.pair.wire import Wire
from reprod_align.randomness import KeyedDraws
from reprod_align.report import Check, Finding, Report
from reprod_align.report.pages import make_page
from tests.conftest import ENVIRONMENT, PATIENCE, REPOSITORY, one_line_error, run_warm_python
from tests.pipeline.test_isolation import OTHERS

import numpy as np
import pytest
import torch

PAIR = """
import numpy as np

def torch_model():
    import torch
    from torch import nn
    torch.manual_seed(0)
    print("a word from the file")
    return nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))

def paddle_model():
    import warnings
    from paddle import nn
    warnings.warn("a library's chatter")
    return nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))

def inputs():
    return (np.random.default_rng(0).standard_normal((4, 5)),)

def torch_loss(output):
    return (output**2).mean()

paddle_loss = torch_loss
steps = 2

def torch_optimizer(model):
    import torch
    return torch.optim.Adam(model.parameters(), lr=1e-3)

def paddle_optimizer(model):
    import paddle
    return paddle.optimizer.Adam(1e-3, parameters=model.parameters())
"""
FAULTY = PAIR.replace("nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))\n\ndef inputs",
                      "nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))\n\ndef inputs")  # fmt: skip
BOTH_AT_THE_TOP = "import torch, paddle\n" + PAIR
PADDLE_RAISES = (
    PAIR
    + """
def paddle_loss(output):
    raise KeyError("no such word")
"""
)
TORCH_RAISES = PADDLE_RAISES.replace("def paddle_loss", "def torch_loss")
LINE = PADDLE_RAISES.splitlines().index('    raise KeyError("no such word")') + 1

Run = Callable[..., subprocess.CompletedProcess[str]]


def written(folder: Path, text: str, name: str = "pair.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def strict_json(text: str) -> dict:
    def refuse(word: str) -> None:
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


# ------------------------------------------------------------------ in one process


def test_a_faithful_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pair", written(tmp_path, PAIR)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("verdict: faithful\n") and "2 training steps" in said.out
    assert said.err == "a word from the file\n"  # and no chatter, no progress: it is no terminal


def test_a_faulty_pair_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pair", written(tmp_path, FAULTY), "--json"]) == 1
    found = strict_json(capsys.readouterr().out)
    assert not found["passed"] and found["verdict"] == "diverges"
    assert found["findings"][0]["torch_name"] == "2" and "ReLU" in found["findings"][0]["message"]


def test_the_report_of_a_faulty_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "page.html"
    assert main(["pair", written(tmp_path, FAULTY), "--report", str(report)]) == 1
    text = report.read_text()
    for word in (
        "Where the two first differ",
        "diverges",
        "kind: Tanh in PyTorch, ReLU in Paddle",
        "DIFFERENT",
    ):
        assert word in text
    assert not re.search(r"(src|href)=.(?!data:|#)", text) and text.count("<script") == 2


def test_a_report_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, says in (
        ("x.pdf", "must end in .html"),
        ("pair.py/x.html", "pair.py is not a folder"),
    ):
        assert main(["pair", written(tmp_path, PAIR), "--report", str(tmp_path / name)]) == 2
        said = capsys.readouterr()  # before the work begins
        assert said.err.count("\n") == 1 and says in said.err and not said.out


def test_modules_beside_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = PAIR.replace("def inputs():", "def _no_inputs():")
    written(tmp_path, "import numpy as np\nBATCH = {'input': np.ones((2, 5))}\n", "batch_beside.py")
    path = written(tmp_path, f"from batch_beside import BATCH as INPUTS\n{body}")
    assert main(["pair", path]) == 0
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = (", "pair.py, line 1: SyntaxError: '(' was never closed"),
        ("\n\nimport nothing_here", "pair.py, line 3: ModuleNotFoundError"),
        ("raise SystemExit(3)", "pair.py, line 1: SystemExit: 3"),
        ("x = '\0'", "null bytes"),
        ("", "pair.py defines no function torch_model() that returns the PyTorch model"),
        ("torch_model = 3", "torch_model must be a function, not of type int"),
        (PAIR + "torch_model = torch_model()", "torch_model must be a function, not of type Sequential"),
        (PAIR + "def torch_model(config): ...", "torch_model must be a function of no arguments"),
        (
            PAIR + "def torch_model(): ...",
            "pair.py: torch_model is None: expected a torch.nn.Module; is a `return` missing?",
        ),
        (PAIR + "def paddle_model(): ...", "pair.py: paddle_model is None: expected a paddle.nn.Layer"),
        (PAIR + "paddle_model = torch_model", "not a paddle.nn.Layer"),
        (PAIR + "def paddle_model():\n  return 1 / 0", f"line {len(PAIR.splitlines()) + 2}: ZeroDivision"),
        (PAIR + "def torch_loss(): ...", "torch_loss must be a function of one argument"),
        (PAIR + "torch_loss = None", "torch_loss and paddle_loss go together"),
        (PAIR + "def torch_loss(output): raise SystemExit(0)", "SystemExit: 0"),
        (PAIR + "inputs = None", "gives no inputs: define inputs()"),
        (PAIR + "inputs = np.ones(3)", "pair.py: inputs must be a dict of arrays (keywords) or a tuple"),
        (PAIR + "inputs = ([1.0],)", "inputs[0]: expected a numpy array, got a list"),
        (PAIR + "steps = 0", "pair.py: steps: expected a whole number above 0, got '0'"),
        (PAIR + "steps = True", "steps: expected a whole number above 0, got 'True'"),
        (PAIR + "name_map = {1: 'x'}", "name_map: expected a dict from PyTorch's names to Paddle's, got "),
        (PAIR + "copy_weights = 1", "copy_weights: expected True or False, got '1'"),
        (TORCH_RAISES, f"pair.py, line {LINE}: the PyTorch loss raised: KeyError: 'no such word'"),
    ],
)  # fmt: skip
def test_a_bad_file(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pair", written(tmp_path, text)]) == 2
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line != "a word from the file"]
    assert said.out == "" and len(lines) == 1
    assert lines[0].startswith("reprod-align: ") and words in lines[0]


@pytest.mark.parametrize("name", ["nowhere.py", "."])
def test_no_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pair", str(tmp_path / name)]) == 2
    assert re.search(r"is missing|is not a file", capsys.readouterr().err)


def test_a_misspelt_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAIR.replace("_optimizer(", "_optimiser(")
    assert main(["pair", written(tmp_path, text)]) == 2
    assert (
        "torch_optimiser, which is not used: is torch_optimizer meant?" in capsys.readouterr().err
    )


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(
        console, "_make_line", console._make_line.__wrapped__
    )  # a line on this terminal
    side = SimpleNamespace(name="PyTorch", run=lambda *given: given, remarks=["kept"])
    watched = announce_work(side)
    assert watched.run("inputs", True, "draws") == ("inputs", True, "draws")
    assert watched.remarks == ["kept"]
    assert "\rPyTorch: forward and backward, train mode" in terminal.getvalue()


def test_names_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report("diverges", remarks=["\x1b[2J a layer's name"])
    monkeypatch.setattr(pair_command, "judge_pair", lambda options: report)
    assert main(["pair", "pair.py"]) == 1  # nothing compared is no pass
    assert "\\x1b[2J a layer's name" in capsys.readouterr().out


# ------------------------------------------------------------------ the page

HOSTILE = "<script>alert('$x$')</script>\"'&\u202e{{ 7 * 7 }}\ud800"


def test_hostile_names_are_escaped() -> None:
    report = Report(
        "diverges",
        [Finding("forward", HOSTILE, HOSTILE, HOSTILE, float("nan"), float("inf"))],
        [HOSTILE],
        [Check("forward", HOSTILE, float("inf"), False), Check("loss", "x", 0.0, True)],
        {HOSTILE: HOSTILE},
    )
    text = render_page(make_page(report, HOSTILE))
    assert text.count("<script") == 2 and "\u202e" not in text and "{{ 7 * 7 }}" in text
    assert "&lt;script&gt;alert(&#39;$x$&#39;)" in text and "alert('$x$')" not in text


def test_a_report_without_checks_has_a_page() -> None:
    assert "nothing was compared" in render_page(make_page(Report(), "empty"))


# ------------------------------------------------------------------ an interpreter for each side


def interpreter(folder: Path, without: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> Path:
    """Make an interpreter that sees the installed packages but `without`, or `only` some."""
    packages = folder / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        name = entry.name.split("-")[0].split(".")[0].lower()
        if name in only if only else name not in (*without, "__editable__", "reprod_align"):
            (packages / entry.name).symlink_to(entry)
    path = folder / "python"
    base = Path(sys.base_prefix, "bin", "python3")
    path.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{packages}" PYTHONNOUSERSITE=1\n'
        f'exec "{base}" -S "$@"\n'  # -S: whatever else is installed there
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the command where neither framework is, with a side's framework alone in each interpreter."""
    pythons = {name: interpreter(tmp_path_factory.mktemp(name), OTHERS[name]) for name in OTHERS}
    parent = interpreter(tmp_path_factory.mktemp("parent"), only=("numpy", "numpy.libs"))
    given = ("--torch-python", pythons["pt"], "--paddle-python", pythons["pd"])
    code = "import sys; from reprod_align.commands import main; code = main(sys.argv[1:]); "
    code += "assert not {'torch', 'paddle'} & set(sys.modules); sys.exit(code)"

    def run(
        path: str, *options: str, command: tuple[str, ...] = ("pair",)
    ) -> subprocess.CompletedProcess[str]:
        words = [parent, "-c", code, *command, path, *given, *options]
        env = ENVIRONMENT | {"PYTHONPATH": str(REPOSITORY)}
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE)

    return run


def test_a_faithful_pair_apart(apart: Run, tmp_path: Path) -> None:
    finished = apart(written(tmp_path, PAIR))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("verdict: faithful\n")
    assert "2 training steps" in finished.stdout
    assert finished.stderr == "a word from the file\n"


def test_a_faulty_pair_apart_is_told_as_it_is_here(
    apart: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, FAULTY)
    assert main(["pair", path, "--json"]) == 1
    here = strict_json(capsys.readouterr().out)
    finished = apart(path, "--json")
    assert finished.returncode == 1, finished.stderr
    found = strict_json(finished.stdout)
    assert [f["message"] for f in found["findings"]] == [f["message"] for f in here["findings"]]
    assert found["pairs"] == here["pairs"] and len(found["checks"]) == len(here["checks"])


def test_weights_are_converted_apart(apart: Run, tmp_path: Path) -> None:
    path = written(tmp_path, PAIR)
    torch.save(runpy.run_path(path)["torch_model"]().state_dict(), tmp_path / "a.bin")
    files = [str(tmp_path / name) for name in ("a.bin", "b.pdparams", "c.bin")]
    for here, there in ((files[0], files[1]), (files[1], files[2])):
        finished = apart(path, command=("convert", here, there, "--pair"))
        assert finished.returncode == 0, finished.stderr + finished.stdout
        assert "the outputs of both models agree to" in finished.stdout
    before, after = (torch.load(file, weights_only=True) for file in (files[0], files[2]))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_reference_that_raises_is_placed(apart: Run, tmp_path: Path) -> None:
    finished = apart(written(tmp_path, TORCH_RAISES))
    line = one_line_error(without_words(finished))
    assert f"line {LINE}: the PyTorch loss raised: KeyError" in line


def test_the_other_framework_at_the_top_of_the_file(apart: Run, tmp_path: Path) -> None:
    line = one_line_error(apart(written(tmp_path, BOTH_AT_THE_TOP)))
    assert line.endswith("pair.py, line 1: ModuleNotFoundError: No module named 'paddle'")


def test_a_port_that_raises_is_a_finding_where_both_frameworks_are(tmp_path: Path) -> None:
    path = written(tmp_path, "import torch, paddle\n" + PADDLE_RAISES)
    given = ("--torch-python", sys.executable, "--paddle-python", sys.executable)
    finished = run_warm_python("-m", "reprod_align", "pair", path, *given)
    assert finished.returncode == 1, finished.stderr
    assert "the Paddle loss raises KeyError: 'no such word'" in finished.stdout
    assert finished.stderr == "a word from the file\n"


def test_a_side_that_dies(apart: Run, tmp_path: Path) -> None:
    words = (
        "sys.stderr.write('hello\\nfarewell\\n\\n'); sys.stderr.flush(); os.kill(os.getpid(), 9)"
    )
    text = PAIR + f"\nimport os, sys\ndef paddle_loss(output):\n    {words}\n"
    line = one_line_error(without_words(apart(written(tmp_path, text))))
    assert "the Paddle process (" in line and line.endswith("ended, killed by SIGKILL: farewell")


def without_words(finished: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Leave out what the file itself prints."""
    finished.stderr = finished.stderr.replace("a word from the file\n", "")
    return finished


def test_interpreters_that_will_not_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, PAIR)
    assert main(["pair", path, "--torch-python", "no-such-python"]) == 2
    assert "cannot start no-such-python: No such file" in capsys.readouterr().err
    bare = str(interpreter(tmp_path, only=("nothing",)))
    assert main(["pair", path, "--torch-python", bare, "--paddle-python", bare]) == 2
    error = capsys.readouterr().err
    assert "the PyTorch process" in error and "No module named 'numpy'" in error
    assert error.count("\n") == 1


# ------------------------------------------------------------------ the wire


def sent(message: object) -> object:
    ours, theirs = Pipe()
    Wire(ours).send(message)
    return Wire(theirs).receive()


@pytest.mark.parametrize(
    "array",
    [
        np.array(1.5),
        np.zeros((0, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6)[::-2],
        np.array([True, False]),
        np.array([1 + 2j], "complex64"),
        np.broadcast_to(np.float32(2), (2, 2)),
        np.frombuffer(b"what may only be"),
    ],
)
def test_arrays_arrive_as_they_were(array: np.ndarray) -> None:
    found = sent({"a": array, "b": array})
    assert found["a"].dtype == array.dtype and found["a"].flags.writeable
    np.testing.assert_array_equal(found["a"], array, strict=True)
    assert found["a"] is found["b"]


def test_what_the_parent_cannot_know_arrives_as_text() -> None:
    import torch

    found = sent([torch.float32, torch.nn.Tanh, np.float64(2), {1, (2, 3)}, KeyedDraws(1, {})])
    assert found[:4] == ["torch.float32", repr(torch.nn.Tanh), 2.0, {1, (2, 3)}]
    assert type(found[2]) is np.float64 and found[4].place() == [("", 0)]


def test_errors_arrive_as_what_they_are() -> None:
    error = ModelFailure("PyTorch", "encoder.0", "model", "KeyError: x")
    error.add_note("pair.py, line 3")
    found = sent(error)
    assert isinstance(found, ModelFailure) and str(found) == str(error)
    assert (found.framework, found.path, found.text) == ("PyTorch", "encoder.0", "KeyError: x")
    assert found.__notes__ == ["pair.py, line 3"]


def test_other_classes_are_refused() -> None:
    ours, theirs = Pipe()
    for message in (b'[[0], ["instance", "os:system", [1]], ["dict"]]', pickle.dumps(os.system)):
        for part in (message, b"", b""):
            ours.send_bytes(part)
        with pytest.raises(ReprodError, match="expected plain data|not well formed"):
            Wire(theirs).receive()


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


def test_inputs_settings_and_functions(tmp_path: Path) -> None:
    text = "import numpy\nimport beside\nINPUTS = (numpy.ones(2),)\nsteps = 5\nname_map = None\n"
    (tmp_path / "beside.py").write_text("")
    before = list(sys.path)
    with open_file(write(tmp_path, text + "def torch_loss(output): ..."), PairFile) as file:
        np.testing.assert_array_equal(file.inputs()[0], np.ones(2))
        assert file.settings() == {"steps": 5}
        assert file.find_function("torch_loss", 1) is not None
        assert file.find_function("paddle_loss", 1) is None
        assert file.remarks() == []
    assert sys.path == before
    sys.modules.pop("beside")


@pytest.mark.parametrize(("text", "message"), [
    ("", "gives no inputs"),
    ("inputs = 3", "mine.py: "),
    ("inputs = lambda batch: (batch,)", "inputs must be a function of no arguments"),
])  # fmt: skip
def test_wrong_inputs_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with open_file(write(tmp_path, text), PairFile) as file:
        with pytest.raises(ReprodError, match=message):
            file.inputs()


@pytest.mark.parametrize(
    "text", ["steps = 0", "steps = True", "name_map = {1: 'a'}", "copy_weights = 1"]
)
def test_wrong_settings_are_refused(text: str, tmp_path: Path) -> None:
    name = text.split()[0]
    with open_file(write(tmp_path, text), PairFile) as file:
        with pytest.raises(ReprodError, match=f"{name}: expected "):
            file.settings()


def test_a_function_that_is_missing_or_of_another_kind(tmp_path: Path) -> None:
    with open_file(write(tmp_path, "torch_loss = 3\ntorch_loss2 = 1"), PairFile) as file:
        with pytest.raises(ReprodError, match="torch_loss must be a function, not of type int"):
            file.find_function("torch_loss", 1)
        with pytest.raises(ReprodError, match=r"defines no function torch_model\(\) that returns"):
            file.side("torch")


def test_a_misspelt_name_is_remarked_on(tmp_path: Path) -> None:
    with open_file(write(tmp_path, "step = 1"), PairFile) as file:
        assert file.remarks() == ["mine.py defines step, which is not used: is steps meant?"]


def test_a_misspelt_function_is_refused(tmp_path: Path) -> None:
    """Without it less is compared than the user thinks."""
    words = "mine.py defines torch_optimiser, which is not used: is torch_optimizer meant?"
    with pytest.raises(ReprodError, match=re.escape(words)):
        with open_file(write(tmp_path, "torch_optimiser = 1"), PairFile):
            pass
    both = write(tmp_path, "torch_optimiser = 1\ntorch_optimizer = None")
    with open_file(both, PairFile) as file:
        assert file.remarks() == []


def test_a_file_that_is_missing_or_raises(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.py", "is missing"), (tmp_path, "is not a file")):
        with pytest.raises(ReprodError, match=words), open_file(path, PairFile):
            pass
    before = list(sys.path)
    with pytest.raises(ZeroDivisionError), open_file(write(tmp_path, "1 / 0"), PairFile):
        pass
    assert sys.path == before


def test_functions_classes_expressions_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = "def make(n=3):\n    return [n]\nclass Net:\n    pass\nINPUTS = (1,)\n"
    (tmp_path / "mine_called.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert call_named("mine_called:make") == [3]
    assert call_named("mine_called:make(n=5)") == [5]
    assert type(call_named("mine_called:Net")).__name__ == "Net"
    assert call_named("mine_called:INPUTS") == (1,)


def test_a_module_may_be_given_as_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine_folder").mkdir()
    path = tmp_path / "mine_folder" / "mine_filed.py"
    path.write_text("def make(): return [__name__]\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir(tmp_path)
    assert call_named("mine_folder/mine_filed.py:make") == ["mine_folder.mine_filed"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert call_named(f"{path}:make") == ["mine_filed"]
    assert call_named("../mine_folder/mine_filed.py:make()") == ["mine_filed"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("make", "expected MODULE:CALL"), (":make", "expected MODULE:CALL"),
        ("no_such_module:make", "no_such_module:make: ModuleNotFoundError"),
        ("math:make", "math:make: NameError"), ("math:sqrt(-1)", "ValueError"),
        ("math:(", "math:.: SyntaxError"), ("sys:exit(3)", "SystemExit"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_said(words: str, message: str):
    with pytest.raises(ReprodError, match=message):
        call_named(words)


TEXT = "def fail(error):\n    raise error\n"


def raise_in(path: Path, error: BaseException, text: str = TEXT) -> BaseException:
    """Return the error after code in the file has raised it."""
    path.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    with pytest.raises(type(error)) as caught:
        names["fail"](error)
    return caught.value


def test_the_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    said = locate_error(raise_in(path, KeyError("planted")), path)
    assert type(said) is ReprodError
    assert str(said) == f"{path}, line 2: KeyError: 'planted'"
    assert str(locate_error(raise_in(path, ReprodError("no")), path)) == f"{path}, line 2: no"


def test_the_line_of_a_cause_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    outer = ValueError("outer")
    outer.__cause__ = raise_in(path, KeyError("inner"))
    assert str(locate_error(outer, path)) == f"{path}, line 2: ValueError: outer"
    ring = ValueError("ring")
    ring.__cause__ = ring
    assert str(locate_error(ring, path)) == f"{path}: ValueError: ring"


def test_code_elsewhere_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    error = raise_in(tmp_path / "other.py", ReprodError("other"))
    assert locate_error(error, tmp_path / "mine.py") is error


def test_a_model_that_fails_keeps_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    error = raise_in(path, ModelFailure("Paddle", "fc", "model", "KeyError: x"))
    said = locate_error(error, path)
    assert said is error
    assert said.__notes__ == [f"{path}, line 2"]
    assert str(explain_error(error, path)) == f"{path}, line 2: {error}"


def test_a_syntax_error_has_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\ny = (\n")
    with pytest.raises(SyntaxError) as caught:
        compile(path.read_text(), str(path), "exec")
    said = str(locate_error(caught.value, path))
    assert said.startswith(f"{path}, line 2: SyntaxError: ")
    assert "mine.py, line 2)" not in said  # the place is told once


def test_what_user_code_raises_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match="pair.py: SystemExit: 3"):
        with run_user_code(tmp_path / "pair.py"):
            raise SystemExit(3)
    with pytest.raises(KeyboardInterrupt), run_user_code(tmp_path / "pair.py"):
        raise KeyboardInterrupt
