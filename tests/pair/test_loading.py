"""A user's file is loaded, read and left: what it defines, and what is refused."""

import re
import sys
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.pair.file import PairFile, open_file

import numpy as np
import pytest


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
