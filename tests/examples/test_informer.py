"""examples/informer: its scripts run and agree, their checks see faults, its data are the paper's."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reprod_align import load_record
from reprod_align.errors import MissingInputError, ReprodError
from tests.conftest import REPOSITORY, one_line_error, run_warm_python
from tests.docs.pages import blocks, commands, read

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

EXAMPLE = REPOSITORY / "examples" / "informer"
STEPS = ("forward", "data", "metric", "loss", "backward", "train")
SMALL = ("--epochs", "1", "--batches", "2")

# Runs scripts one after the other in one process, so that the frameworks are imported once; a fault is
# code that runs first. Prints the exit codes last.
DRIVER = """
import json, runpy, sys
folder, words = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, folder)
import informer_run  # quietens the frameworks
from reprod_align.backends import paddle, torch
codes = []
for script, fault in json.loads(sys.argv[3]):
    for backend in (paddle, torch):
        backend.set_precision("float32")
    for name in [name for name in sys.modules if name.startswith(("informer_", "models", "pair_"))]:
        del sys.modules[name]  # an earlier fault
    exec(fault, {})
    sys.argv = [f"{folder}/{script}", *words]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ended:
        codes.append(ended.code or 0)
print(json.dumps(codes))
"""
FAULTS = {
    "forward": (
        "from models import pd_informer as m; import paddle.nn as nn\n"
        "own = m.ConvLayer.forward\n"
        "def forward(self, x): self.activation = nn.ELU(0.9); return own(self, x)\n"
        "m.ConvLayer.forward = forward",
        "first layer that differs: encoder.attn_layers.1",
    ),
    "data": (
        "import informer_pd as m\n"
        "own = m.Windows.__getitem__\n"
        "m.Windows.__getitem__ = lambda self, index: own(self, min(index + 1, len(self) - 1))",
        "first entry that differs: train_0_0_x",
    ),
    "metric": (
        "import informer_pd as m; own = m.compute_metrics\n"
        "m.compute_metrics = lambda *lists: own(*[part[:1] for part in lists])",
        "first entry that differs: mse",
    ),
    "loss": (
        "import informer_pd as m; own = m.load_model\n"
        "def load_model(*choices):\n"
        "    model = own(*choices); model.decoder.layers[0].dropout.p = 0.1; return model\n"
        "m.load_model = load_model",
        "first loss that differs: loss",
    ),
    "backward": (
        "import informer_pd as m, paddle\n"
        "m.build_optimizer = lambda model: paddle.optimizer.Adam(paddle.optimizer.lr.ExponentialDecay("
        "1e-4, 0.5), epsilon=1e-7, parameters=model.parameters())",
        "first value that differs: parameter_0",
    ),
    "train": (
        "import informer_run as m; own = m.epoch_order\n"
        "m.epoch_order = lambda *choices: own(*choices)[::-1]",
        "first entry that differs: loss_0_0",
    ),
}


def driven(
    home: Path, scripts: Sequence[tuple[str, str]], *options: str, stderr: str = ""
) -> tuple[list[int], str]:
    """Run scripts, each after its fault's code; return their exit codes and what was printed."""
    words = json.dumps([*SMALL, "--home", str(home), *options])
    finished = run_warm_python("-c", DRIVER, EXAMPLE, words, json.dumps(scripts))
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr.startswith(stderr) if stderr else not finished.stderr, finished.stderr
    *printed, codes = finished.stdout.rstrip().split("\n")
    return json.loads(codes), "\n".join(printed)


def of_step(step: str, fault: str = "") -> list[tuple[str, str]]:
    # once is enough: only the last step's check asks align for the place
    silent = "import pair_informer; pair_informer.explain = lambda *_: []"
    quick = silent if step != STEPS[-1] else ""
    return [(f"pt_{step}.py", ""), (f"pd_{step}.py", fault), (f"check_{step}.py", quick)]


@pytest.fixture(scope="session")
def example_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every script has run. Read only: the tests' processes share it."""
    common = tmp_path_factory.getbasetemp()
    common = common.parent if "PYTEST_XDIST_WORKER" in os.environ else common
    home = common / "informer"
    with FileLock(common / "informer.lock"):  # the first process makes it, for all
        if not (home / "printed.txt").exists():
            scripts = [("pt_checkpoint.py", ""), ("torch2paddle.py", "")]
            scripts += [script for step in STEPS for script in of_step(step)]
            codes, printed = driven(home, scripts)
            assert codes == [0] * len(scripts), printed
            (home / "printed.txt").write_text(printed)
    return home


def test_every_step_is_aligned(example_home: Path) -> None:
    printed = (example_home / "printed.txt").read_text()
    assert [f"{step}: aligned" in printed for step in STEPS] == [True] * len(STEPS)
    assert "the outputs of both models agree to" in printed
    for name, tolerance in (("forward", 1e-12), ("backward", 1e-10), ("train", 1e-10)):
        found = json.loads((example_home / "strict" / f"{name}_diff.json").read_text())
        assert found["strict"]["worst"]["max_rel"] < tolerance


def test_ten_iterations_and_every_parameter_are_recorded(example_home: Path) -> None:
    record = load_record(example_home / "strict" / "backward_torch.npy")
    assert sum(key.startswith("loss_") for key in record) == 10
    rates = [float(record[f"lr_{iteration}"]) for iteration in range(10)]
    assert rates == [1e-4] * 3 + [5e-5] * 3 + [2.5e-5] * 3 + [1.25e-5]
    assert sum(key.startswith("gradient_9.") for key in record) == 76


def test_the_checks_see_faults_and_name_the_first_place(example_home: Path, tmp_path: Path) -> None:
    home = shutil.copytree(example_home, tmp_path / "home")  # with PyTorch's records
    scripts = [script for step in STEPS for script in of_step(step, FAULTS[step][0])[1:]]
    codes, printed = driven(home, scripts)
    assert codes == [0, 1] * len(STEPS), printed
    for step in STEPS:
        assert FAULTS[step][1] in printed.split(f"{step}: DIFFERENT")[1].split("DIFFERENT")[0]
    # align judges the code that lies there, which is faithful: the faults were in the scripts' process
    assert "align finds the models, the loss and the optimizer faithful" in printed


def test_a_check_writes_a_page_a_table_and_tests(example_home: Path, tmp_path: Path) -> None:
    home = shutil.copytree(example_home, tmp_path / "home")
    page, tests = tmp_path / "a.html", tmp_path / "a.xml"
    words = ("--markdown", "--report", str(page), "--junit", str(tests))
    codes, printed = driven(home, [("check_metric.py", "")], *words, stderr="metric: aligned")
    assert codes == [0] and printed.startswith("### ✅") and "| metric | passed |" in printed
    assert "check_metric.py" in page.read_text() and 'failures="0"' in tests.read_text()
    message = one_line_error(run_warm_python(EXAMPLE / "check_metric.py", "--report", "a.pdf"))
    assert "--report a.pdf: the name must end in .html" in message


def test_what_is_missing_or_does_not_fit_is_told_in_one_line(
    example_home: Path, tmp_path: Path
) -> None:
    check = EXAMPLE / "check_forward.py"
    message = one_line_error(run_warm_python(check, "--home", tmp_path, "--stack"))
    assert "first run python pt_forward.py --stack" in message
    message = one_line_error(run_warm_python(check, "--attn", "log", "--home", tmp_path))
    assert "argument --attn: invalid choice: 'log'" in message
    home = shutil.copytree(example_home, tmp_path / "home")
    code = f"import sys; sys.path.insert(0, {str(EXAMPLE)!r})\n"
    code += "import informer_run, informer_pt, informer_pd, torch2paddle\n"
    code += "informer_run.start(torch2paddle.main, '')"
    finished = run_warm_python("-c", code, "--home", home, "--embed", "fixed")
    message = one_line_error(finished)
    assert "missing: dec_embedding.temporal_embedding.day_embed.emb.weight" in message
    assert "Traceback" not in finished.stderr


# --- the series


def _loaded_series() -> Any:
    spec = importlib.util.spec_from_file_location("informer_series", EXAMPLE / "informer_series.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look it up
    spec.loader.exec_module(module)
    return module


series = _loaded_series()
DATES = np.datetime64("2015-12-28T00:00:00") + np.arange(3000) * np.timedelta64(32_783, "s")


@pytest.mark.parametrize("freq", ["m", "w", "d", "b", "h", "t", "s", "15t"])
def test_time_features_are_those_of_the_calendar(freq: str) -> None:
    index = pd.DatetimeIndex(DATES)
    expected = {
        "second": index.second / 59.0 - 0.5,
        "minute": index.minute / 59.0 - 0.5,
        "hour": index.hour / 23.0 - 0.5,
        "weekday": index.dayofweek / 6.0 - 0.5,
        "day": (index.day - 1) / 30.0 - 0.5,
        "yearday": (index.dayofyear - 1) / 365.0 - 0.5,
        "month": (index.month - 1) / 11.0 - 0.5,
        "week": (index.isocalendar().week.to_numpy().astype("int64") - 1) / 52.0 - 0.5,
    }
    names = series.FEATURES[freq[-1]]
    found = series.time_features(DATES, freq)
    np.testing.assert_array_equal(found, np.stack([expected[name] for name in names], axis=1))
    assert np.abs(found).max() == 0.5 or freq == "s"


def test_marks_are_whole_numbers_that_the_tables_have_rows_for() -> None:
    index = pd.DatetimeIndex(DATES)
    expected = (index.month, index.day, index.weekday, index.hour, index.minute // 15)
    np.testing.assert_array_equal(series.calendar_marks(DATES, "t"), np.stack(expected, axis=1))
    for freq in ("a", "y"):  # the original fails on them too
        with pytest.raises(ReprodError, match="has no time features: give one of m, w"):
            series.time_features(DATES, freq)
    with pytest.raises(ReprodError, match="has no marks: give one of m, w, d, b, h, t"):
        series.calendar_marks(DATES, "s")


def test_the_split_is_the_papers() -> None:
    made = series.generate_series()
    marks = series.time_features(made.dates, "h")
    parts = {
        name: series.Split(made, name, (96, 48, 24), marks) for name in ("train", "val", "test")
    }
    assert [len(part) for part in parts.values()] == [8521, 2857, 2857]
    train = parts["train"].values
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(train.std(0), 1, atol=1e-12)
    known, sought, known_marks, sought_marks = parts["val"][0]
    assert (known.shape, sought.shape) == ((96, 7), (72, 7))
    np.testing.assert_array_equal(known, train[-96:])  # looks back into the train part
    np.testing.assert_array_equal(sought[:48], known[-48:])
    np.testing.assert_array_equal(sought_marks, marks[8640 - 48 : 8640 + 24])
    np.testing.assert_array_equal(parts["test"].values[:96], parts["val"].values[-96:])
    with pytest.raises(IndexError):
        parts["val"][2857]


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ETTh1.csv"
    with pytest.raises(MissingInputError, match="--data-dir must hold ETTh1.csv"):
        series.read_series(path)
    header, row = "date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n", "2016-07-01 00:00:00,1,2,3,4,5,6,7\n"
    for text, message in (
        ("date,OT\n", "line 1: the columns must be date,HUFL"),
        (header + row + "2016-07-01 01:00:00,1,2,3\n", "line 3: not a date and 7 numbers"),
        (header + row.replace("2016", "last"), "line 2: not a date and 7 numbers"),
        (header + row.replace("7\n", "nan\n"), "line 2: not a date and 7 numbers"),
        (header + row, "has 1 rows, 20 months are 14400"),
    ):
        path.write_text(text)
        with pytest.raises(ReprodError, match=message):
            series.read_series(path)
    path.write_text(header + row * 14_400)
    assert series.read_series(path).values.shape == (14_400, 7)


# --- the pages

PAGES = (
    ("examples/informer/README.md", "examples/informer/README_cn.md"),
    ("docs/bring_your_own_model.md", "docs/bring_your_own_model_cn.md"),
)


@pytest.mark.parametrize("pair", PAGES)
def test_both_languages_show_the_same(pair: tuple[str, str]) -> None:
    ours, theirs = map(blocks, pair)
    assert ours == theirs and len(ours) > 4
    headings = [re.findall(r"^#+", read(page), re.MULTILINE) for page in pair]
    assert headings[0] == headings[1]


def test_the_readme_names_scripts_that_are_there_and_options_that_they_take() -> None:
    lines = commands(PAGES[0][0])
    assert len(lines) == 8
    for line in lines:
        words = [word for word in shlex.split(line) if word.endswith(".py")]
        assert len(words) == 1 and (REPOSITORY / words[0]).is_file()
    text = (REPOSITORY / PAGES[0][0]).read_text()
    finished = run_warm_python(EXAMPLE / "check_data.py", "--help")
    for option in re.findall(r"`(--[\w-]+)[ `]", text):
        assert option in finished.stdout, option


def test_paddle_still_indexes_a_transposed_tensor_as_the_page_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (code,) = blocks(PAGES[1][0], "python")
    exec(code, {})
    assert capsys.readouterr().out in blocks(PAGES[1][0], "text")


@pytest.mark.longer
def test_the_pair_prints_what_the_page_shows() -> None:
    finished = run_warm_python("-m", "reprod_align", "pair", EXAMPLE / "pair_informer.py")
    assert finished.returncode == 0, finished.stderr
    (shown,) = [text for text in blocks(PAGES[1][0], "text") if text.startswith("verdict")]
    rows = [re.split(r"\s{2,}|, [\d.]+ x", line.strip())[:2] for line in shown.splitlines()[2:]]
    assert len(rows) == 11
    for stage, what in rows:
        assert re.search(rf"{stage} +{re.escape(what)}.* ok", finished.stdout), what


@pytest.mark.longer
@pytest.mark.parametrize("options", [(), ("--stack", "--attn", "full", "--embed", "learned")])
def test_the_whole_example_runs_as_a_user_runs_it(tmp_path: Path, options: Sequence[str]) -> None:
    finished = run_warm_python(EXAMPLE / "run_all.py", "--home", tmp_path, *options, cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.count(": aligned") == len(STEPS)
