"""A side in a process of its own: what it answers, and what is said if the process ends."""

import sys
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.pair.remote import RemoteSide

import numpy as np
import pytest

FILE = """
import numpy as np

def paddle_model():
    from paddle import nn
    return nn.Linear(3, 2)

def paddle_loss(output):
    return output.mean()

inputs = (np.ones((4, 3)),)
steps = 2
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


def write_python(folder: Path, words: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)
    return str(path)


def test_a_side_answers_from_another_process(tmp_path: Path) -> None:
    with RemoteSide(sys.executable, write(tmp_path, FILE), "paddle") as side:
        assert side.name == "Paddle"
        assert side.hello.functions == {"loss"}
        assert side.hello.settings == {"steps": 2}
        assert side.hello.versions["numpy"] == np.__version__ and "torch" in side.hello.versions
        assert (side.loss, side.optimizer) == ("loss", None)
        np.testing.assert_array_equal(side.hello.inputs[0], np.ones((4, 3)))
        with side.working("float64"):
            assert side.values()["weight"].dtype == "float64"
        assert side.values()["weight"].dtype == "float32"
        with pytest.raises(AttributeError):
            _ = side.no_such_method


def test_the_last_words_of_a_process_that_ends(tmp_path: Path) -> None:
    file = write(tmp_path, FILE)
    python = write_python(tmp_path, "echo planted >&2; exit 7")
    with RemoteSide(python, file, "torch") as side:
        with pytest.raises(ReprodError, match=r"PyTorch process .* exit code 7: planted"):
            _ = side.hello
    python = write_python(tmp_path, "kill -9 $$")
    with RemoteSide(python, file, "paddle") as side:
        with pytest.raises(ReprodError, match="killed by SIGKILL: nothing on stderr"):
            _ = side.hello


def test_an_interpreter_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match="cannot start /no/python: No such file"):
        RemoteSide("/no/python", tmp_path / "mine.py", "torch")
