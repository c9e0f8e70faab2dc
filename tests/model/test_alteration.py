"""A change of a function or of an attribute is in force in a block, and gone after it."""

import importlib.util
from pathlib import Path
from types import ModuleType

from reprod_align.model.source.alteration import (
    Edit,
    Piece,
    Switch,
    altered,
    apply,
    list_plain_attributes,
)
from reprod_align.model.source.editing import list_conditions
from reprod_align.model.source.lines import SourceLine

import pytest

CODE = """def helper(x):
    return x if x is not None else 0


class Module:
    def __init__(self):
        self.doubled, self.rate, self._hidden, self.training = True, 0.5, 1, True

    def forward(self, x, add=False):
        if (x > 2 and
                self.doubled):
            x = self.times(x, twice=True)
        return helper(x) + super().__hash__() * 0

    def times(self, x, twice):
        return 2 * x if twice else x
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "code.py"
    path.write_text(CODE)
    spec = importlib.util.spec_from_file_location("code_altered", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def list_edits(module: ModuleType, line: int) -> dict[str, Edit]:
    found = list_conditions([SourceLine(str(module.__file__), line)])
    return {f"{edit.before} -> {edit.after}": edit for edit in found}


def test_conditions_are_negated_one_by_one_and_switches_turned(module: ModuleType) -> None:
    assert set(list_edits(module, 10)) == {
        "x > 2 and self.doubled -> not (x > 2 and self.doubled)", "x > 2 -> x <= 2",
        "self.doubled -> not self.doubled", "twice=True -> twice=False",
    }  # fmt: skip
    assert set(list_edits(module, 2)) == {"x is not None -> x is None"}


def test_an_edit_is_in_force_in_the_block_alone(module: ModuleType) -> None:
    made = module.Module()
    edits = {**list_edits(module, 10), **list_edits(module, 16)}
    results = {}
    for name, edit in edits.items():
        with altered({"": made}, edit):
            results[name] = made.forward(1), made.forward(3)
        assert (made.forward(1), made.forward(3)) == (1, 6)
    assert results == {
        "x > 2 and self.doubled -> not (x > 2 and self.doubled)": (2, 3), "x > 2 -> x <= 2": (2, 3),
        "self.doubled -> not self.doubled": (1, 3), "twice=True -> twice=False": (1, 3),
        "twice -> not twice": (1, 3),
    }  # fmt: skip


def test_a_function_that_a_class_sees_by_name_is_edited_too(module: ModuleType) -> None:
    (edit,) = list_edits(module, 2).values()
    made = module.Module()
    with altered({"": made}, edit):
        assert made.forward(1) == 0
    assert made.forward(1) == 1


def test_an_edit_that_cannot_be_compiled_changes_nothing(module: ModuleType) -> None:
    made, place = module.Module(), SourceLine(str(module.__file__), 10)
    with altered({"": made}, Edit(place, (Piece(10, 8, 10, "if ("),), "", "")):
        assert made.forward(3) == 6


def test_a_switch_is_given_back_also_after_an_error(module: ModuleType) -> None:
    made = module.Module()
    with (
        pytest.raises(ZeroDivisionError),
        altered({"a": made}, Switch("a", "doubled", True, False)),
    ):
        assert made.forward(3) == 3
        raise ZeroDivisionError
    assert made.forward(3) == 6
    with altered({"a": made}, Switch("b", "doubled", True, False)):
        assert made.forward(3) == 6


def test_plain_attributes_are_those_of_the_user() -> None:
    class Held:
        def __init__(self) -> None:
            self.on, self.rate, self.name, self.size = True, 0.5, "x", 3
            self._own, self.training, self.parts = 1, True, [1]

    assert list_plain_attributes(Held()) == {"on": True, "rate": 0.5, "name": "x", "size": 3}


def test_pieces_of_one_line_do_not_move_each_other() -> None:
    pieces = [Piece(1, 0, 1, "abc"), Piece(1, 4, 5, "(y)")]
    assert apply(["x + y\n", "z\n"], pieces) == "abc + (y)\nz\n"
