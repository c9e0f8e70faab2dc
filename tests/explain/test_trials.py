"""What is tried for a finding, and in which order."""

import ast
from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.explain.scope import Donor, Region, Scope
from reprod_align.explain.trials import Files, list_texts

PORT = """\
import paddle


def forward(x, mask):
    y = x * 2
    z = y - mask
    return z
"""
REFERENCE = """\
import torch


def forward(x, mask):
    y = x * 2
    z = y + mask
    return z
"""


def make_scope(path: Path, lines: set[int] | None = None) -> Scope:
    path.write_text(PORT)
    donor = ast.parse(REFERENCE).body[1]
    assert isinstance(donor, ast.FunctionDef)
    region = Region(str(path), "forward", [Donor(donor, {"torch": "torch"})])
    ran = None if lines is None else {str(path): lines}
    return Scope([region], (str(path), 6), {}, [], ran)


def test_what_the_reference_says_at_the_line_comes_first_and_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "port.py"
    made = list(list_texts(Files(), make_scope(path), {}))
    first, texts = made[0]
    assert (first.candidate.kind, first.candidate.line) == ("reference", 6)
    assert texts[str(path)] == PORT.replace("y - mask", "y + mask")
    assert len({texts[str(path)] for _, texts in made}) == len(made)
    assert path.read_text() == PORT


def test_only_lines_that_ran_are_edited(tmp_path: Path) -> None:
    path = tmp_path / "port.py"
    made = list(list_texts(Files(), make_scope(path, {5}), {}))
    assert made
    assert {trial.candidate.line for trial, _ in made} == {5}


def test_an_edit_is_made_in_the_text_that_others_have_made(tmp_path: Path) -> None:
    path = tmp_path / "port.py"
    files, scope = Files(), make_scope(path)
    earlier = {str(path): PORT.replace("x * 2", "x * 3")}
    trial, texts = next(list_texts(files, scope, earlier))
    assert texts == files.apply(earlier, trial)
    assert "x * 3" in texts[str(path)]
    assert Code(files.loaded[str(path)]).text == PORT
