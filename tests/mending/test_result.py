"""The patch is one that `git apply` and `patch -p1` take."""

import math
import subprocess
from dataclasses import replace
from pathlib import Path

from reprod_align.mending.result import Mend, make_patch, name_in_patch

import pytest

TOOLS = (["git", "apply", "-"], ["patch", "-p1", "-s", "--binary"])


@pytest.mark.parametrize("tool", TOOLS, ids=lambda words: words[0])
@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_tools_take_it(tool: list[str], end: str, ends: str, tmp_path: Path) -> None:
    before = ends.join([*(f"line {number}" for number in range(20)), "last"]) + (end and ends)
    after = before.replace("line 7", "the seventh").replace("last", "the last")
    file = tmp_path / "folder" / "port.py"
    file.parent.mkdir()
    file.write_bytes(before.encode())
    patch = make_patch({str(file): before}, {str(file): after}, tmp_path)
    subprocess.run(tool, input=patch.encode(), check=True, cwd=tmp_path)
    assert file.read_bytes() == after.encode()


def test_what_is_not_changed_is_not_in_it(tmp_path: Path) -> None:
    file = str(tmp_path / "port.py")
    assert make_patch({file: "a\n"}, {file: "a\n"}, tmp_path) == ""


def test_files_are_named_from_the_folder_or_from_that_of_packages(tmp_path: Path) -> None:
    assert name_in_patch(str(tmp_path / "a" / "b.py"), tmp_path) == "a/b.py"
    assert name_in_patch("/opt/lib/site-packages/pkg/b.py", tmp_path) == "pkg/b.py"
    assert name_in_patch("/elsewhere/b.py", tmp_path) == "b.py"


def test_of_a_long_edit_the_lines_that_it_changes_are_shown() -> None:
    before = "x = flat(x)\n  y = f(x)\n  z = y.reshape([-1, self.n])"
    after = "n = x.shape[1]\n  x = flat(x)\n  y = f(x)\n  z = y.reshape([-1, n])"
    edit = Mend("definition", "a.py", 3, before, after, "forward", "", "", 1.0)
    assert str(edit) == (
        "a.py:3: `z = y.reshape([-1, self.n])` becomes `n = x.shape[1] … z = y.reshape([-1, n])`"
    )


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("a +\n  b", "a - b", "`a + b` becomes `a - b`"),
        ("a = b", "", "`a = b` is taken out"),
        ("a = b", "a = b\n  c = a", "`c = a` is added"),
        (
            "x = f(x)\n  x = g(x)",
            "x = g(x)\n  x = f(x)",
            "`x = f(x) … x = g(x)` becomes `x = g(x) … x = f(x)`",
        ),
    ],
)
def test_an_edit_in_one_line(before: str, after: str, wanted: str) -> None:
    assert str(Mend("name", "a.py", 3, before, after, "forward", "", "", 1.0)).endswith(wanted)


def test_what_no_number_tells_is_said_in_words() -> None:
    edit = Mend("tie", "a.py", 3, "None", "w", "weights", "b", "tied to a in PyTorch alone", 0.5)
    assert edit.tell_difference() == "it differed by 5.0e-01"
    assert replace(edit, difference=math.inf).tell_difference() == "tied to a in PyTorch alone"
    assert replace(edit, difference=0.0).tell_difference() == "its gradient stopped"
