"""The fixture `align_pair`: what a failing port's test prints, and what the plugin costs others."""

from pathlib import Path

from tests.conftest import REPOSITORY, Finished, run_warm_python
from tests.test_light import FRAMEWORKS, loaded_by

PAIR = """
import numpy as np

def torch_model():
    import torch
    return torch.nn.LayerNorm(6)

def paddle_model():
    import paddle
    return paddle.nn.LayerNorm(6, epsilon=1e-3)

def inputs():
    return (np.random.default_rng(0).normal(size=(4, 6)),)
"""
TESTS = """
import numpy as np
import pytest

def test_file(align_pair):
    align_pair("pair.py")

def test_models(align_pair):
    import paddle, torch
    x = np.random.default_rng(0).normal(size=(4, 6))
    assert align_pair(torch.nn.LayerNorm(6), paddle.nn.LayerNorm(6), (x,), steps=1).passed
    align_pair(torch.nn.Linear(6, 2), torch.nn.Linear(6, 2), (x,))

@pytest.mark.parametrize("name", ["absent", "broken", "empty"])
def test_no_pair(align_pair, name):
    align_pair(f"{name}.py")
"""


def run_pytest(folder: Path, *words: str) -> Finished:
    """Run pytest with this plugin alone, whether or not an entry point names it here."""
    options = ("-p", "reprod_align.testing", "-p", "no:cacheprovider", "-W", "error", "-q")
    return run_warm_python(
        "-m", "pytest", *options, *words, cwd=folder,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONPATH=str(REPOSITORY),
    )  # fmt: skip


def test_a_failure_is_the_report_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "pair.py").write_text(PAIR)
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "test_ports.py").write_text(TESTS)
    finished = run_pytest(tmp_path)
    assert finished.returncode == 1 and "5 failed" in finished.stdout, finished
    said = finished.stdout
    assert "\nverdict: diverges\n" in said and "\nerror[layer-norm-epsilon]: forward" in said
    assert "cannot be judged: paddle_model" in said and "torch.nn" in said
    assert f"cannot be judged: {tmp_path}/absent.py is missing" in said
    assert f"cannot be judged: {tmp_path}/broken.py, line 1: ZeroDivisionError" in said
    assert "empty.py defines no function torch_model()" in said
    for mark in ("Traceback", "align_pair(", "testing.py", "warning"):
        assert mark not in said, said


def test_the_plugin_costs_nothing_until_a_test_asks_for_it() -> None:
    before = set(loaded_by("import pytest"))
    ours = set(loaded_by("import pytest; import reprod_align.testing")) - before
    assert ours == {"reprod_align", "reprod_align.testing"}
    assert not ours & {*FRAMEWORKS, "numpy"}
