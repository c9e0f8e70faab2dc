"""What is tried for a finding, and in which order."""

import ast
from collections.abc import Collection
from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.explain.scope import Donor, Region, Scope
from reprod_align.explain.trials import Files, list_texts, list_trials

import pytest

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


CALLED = """\
import paddle


def mix(q, k):
    return q @ k


def forward(x, mask):
    place = x + 1
    if mask is None:
        mask = x
    y = mix(x, mask)
    z = y * 2
    return z
"""


def list_called(
    tmp_path: Path,
    is_sure: bool = False,
    lines: Collection[int] | None = None,
    first: str = "",
) -> list[tuple[str, int, str]]:
    """Return the kind, the line and the text of what is tried for a finding at line 5, where `mix` is."""
    path = tmp_path / "port.py"
    path.write_text(CALLED)
    regions = [Region(str(path), name) for name in ("mix", "forward")]
    scope = Scope(regions, (str(path), 5), {}, [], None if lines is None else {str(path): lines})
    made = list_texts(Files(), scope, {}, is_sure=is_sure, first=first)
    return [
        (trial.candidate.kind, trial.candidate.line, trial.candidate.after) for trial, _ in made
    ]


@pytest.mark.parametrize("masked", [True, False])
def test_what_makes_masks_comes_first_where_a_mask_differs(masked: bool, tmp_path: Path) -> None:
    """Otherwise what the reference says in the whole function does."""
    lines = [f"    a{number} = x * {number}" for number in range(2, 9)]
    text = "\n".join(["def forward(x, mask):", *lines, "    return g(x, mask=mask)\n"])
    path = tmp_path / "port.py"
    path.write_text(text.replace("x * 8", "mask * 8"))
    donor = ast.parse(text.replace("x * 2", "x * 5")).body[0]
    region = Region(str(path), "forward", [Donor(donor, {})])
    scope = Scope([region], (str(path), 9), {}, [], hands_mask=masked)
    made = [texts[str(path)] for _, texts in list_texts(Files(), scope, {})]
    turned, said = (
        next(at for at, one in enumerate(made) if part in one)
        for part in ("a8 = 1 - mask * 8", "a2 = x * 5")
    )
    assert (turned < said) is masked


@pytest.mark.parametrize("settings", [{"out_features": 64}, {}])
def test_other_fields_come_first_where_a_layer_is_set_otherwise(
    settings: dict[str, int], tmp_path: Path
) -> None:
    lines = [f"    a{number} = {number} * c.size" for number in range(2, 9)]
    text = "\n".join(["def build(c):", *lines, "    return make(c.size)\n"])
    path = tmp_path / "port.py"
    path.write_text(text)
    donor = ast.parse(text.replace("2 * c.size", "c.inner").replace("7 * c", "9 * c")).body[0]
    region = Region(str(path), "build", [Donor(donor, {})])
    scope = Scope([region], (str(path), 9), settings, [])
    made = [texts[str(path)] for _, texts in list_texts(Files(), scope, {})]
    other, said = (
        next(at for at, one in enumerate(made) if part in one)
        for part in ("a3 = c.inner", "a2 = c.inner")
    )
    assert (other < said) is bool(settings)


def test_the_calls_of_the_function_at_fault_are_near_it(tmp_path: Path) -> None:
    tried = list_called(tmp_path)
    assert tried.index(("order", 12, "mix(mask, x)")) < tried.index(("number", 13, "1"))


@pytest.mark.parametrize("first", ["mask", ""])
def test_the_likeliest_kind_comes_before_what_the_reference_says(
    first: str, tmp_path: Path
) -> None:
    path = tmp_path / "port.py"
    path.write_text("def forward(x, mask):\n    return x + mask * -2.0\n")
    donor = ast.parse("def forward(x, mask):\n    return x - mask * -2.0\n").body[0]
    scope = Scope([Region(str(path), "forward", [Donor(donor, {})])], (str(path), 2), {}, [])
    kinds = [trial.candidate.kind for trial, _ in list_texts(Files(), scope, {}, first=first)]
    assert (kinds.index("mask") < kinds.index("reference")) is (first == "mask")


def test_what_mends_in_place_comes_before_conditions_elsewhere(tmp_path: Path) -> None:
    condition, near = ("condition", 10, "mask is not None"), ("order", 5, "k @ q")
    for is_sure in (False, True):
        tried = list_called(tmp_path, is_sure=is_sure)
        assert tried.index(near) < tried.index(condition)


def test_a_variable_that_is_never_read_is_tried_early_and_after_it_is_made(tmp_path: Path) -> None:
    tried = list_called(tmp_path)
    lines = {line for kind, line, _ in tried if kind == "unread"}
    assert lines == {10, 11, 12, 13, 14}
    assert tried.index(("unread", 13, "y * 2 + place")) < tried.index(("order", 5, "k @ q"))


def test_a_variable_that_no_line_reads_that_ran_is_unread(tmp_path: Path) -> None:
    wanted = ("unread", 14, "z + y")
    assert wanted in list_called(tmp_path, lines={5, 9, 12, 14})
    assert wanted not in list_called(tmp_path, lines={5, 9, 12, 13, 14})


def test_what_makes_a_value_is_near_the_statement_that_reads_it(tmp_path: Path) -> None:
    lines = [
        "q = x * 3",
        "a = x + 1",
        "b = x + 2",
        "c = x + 3",
        "d = x + 4",
        "e = x + 5",
        "return q + e",
    ]
    path = tmp_path / "port.py"
    path.write_text("def forward(x):\n" + "".join(f"    {line}\n" for line in lines))
    scope = Scope([Region(str(path), "forward")], (str(path), 8), {}, [])
    tried = [one.candidate.line for one in list_trials(Files(), scope, {}, True, True)]
    assert tried.index(2) < tried.index(5)


def test_a_run_of_statements_comes_after_what_is_smaller(tmp_path: Path) -> None:
    """The reference says in one statement what the port says in two: that is seldom what differs."""
    path = tmp_path / "port.py"
    forward = "def forward(x):\n    y = split(x)\n    z = h(y)\n    return z\n"
    path.write_text(f"{forward}\n\ndef split(x):\n    return x.reshape([0, 4, 2])\n")
    donor = ast.parse("def forward(x):\n    return h(x.view(x.shape[0], 2, 4))\n").body[0]
    assert isinstance(donor, ast.FunctionDef)
    regions = [Region(str(path), "forward", [Donor(donor, {})]), Region(str(path), "split")]
    tried = [
        one.candidate for one in list_trials(Files(), Scope(regions, (str(path), 4), {}, []), {})
    ]
    kinds = [one.kind for one in tried if one.kind != "order" or one.line == 8]
    assert "run" in kinds and kinds.index("order") < kinds.index("run")
