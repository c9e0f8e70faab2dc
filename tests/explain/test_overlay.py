"""Another text of a module in force while a block lasts."""

import importlib.util
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from reprod_align.explain import overlay
from reprod_align.explain.overlay import NotAppliedError, overlaid

import pytest

TEXT = """\
import functools

SCALE = 2


def double(x, by=SCALE):
    return x * by


def twice(function):
    @functools.wraps(function)
    def call(x):
        return function(x) + 1

    return call


@twice
def plain(x):
    return x


class Held:
    def __init__(self):
        self.size = 3

    @property
    def area(self):
        return self.size * self.size

    @staticmethod
    def make():
        class Inner:
            value = 1

        return Inner()
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "overlaid_module.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("overlaid_module", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["overlaid_module"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["overlaid_module"]


CASES = {
    "a function": ("x * by", "x + by", lambda it: it.double(5), 10, 7),
    "behind a decorator": ("return x\n", "return -x\n", lambda it: it.plain(5), 6, -4),
    "a constructor": ("self.size = 3", "self.size = 4", lambda it: it.Held().size, 3, 4),
    "a property": ("self.size * self", "self.size + self", lambda it: it.Held().area, 9, 6),
    "a class inside of a function": (
        "value = 1",
        "value = 8",
        lambda it: it.Held.make().value,
        1,
        8,
    ),
    "a constant of the module": ("SCALE = 2", "SCALE = 3", lambda it: it.SCALE, 2, 3),
    "a default": ("by=SCALE", "by=7", lambda it: it.double(1), 2, 7),
    "more lines": ("return x * by", "y = x * by\n    return y * y", lambda it: it.double(1), 2, 4),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_text_is_in_force_in_the_block_alone(case: tuple, module: ModuleType) -> None:
    before, after, ask, first, second = case
    file = str(module.__file__)
    assert TEXT.count(before) == 1 and ask(module) == first
    with overlaid({file: TEXT}, {file: TEXT.replace(before, after)}):
        assert ask(module) == second
        assert "".join(linecache.getlines(file)) == TEXT.replace(before, after)
    assert ask(module) == first
    assert "".join(linecache.getlines(file)) == TEXT


def test_a_class_that_no_module_names_is_found_by_its_objects(module: ModuleType) -> None:
    held, file = module.Held(), str(module.__file__)
    kind = vars(module).pop("Held")
    after = TEXT.replace("self.size * self", "self.size + self")
    with overlaid({file: TEXT}, {file: after}, [kind]):
        assert held.area == 6


def test_a_module_that_is_loaded_after_a_text_was_in_force_is_found(module: ModuleType) -> None:
    file, after = str(module.__file__), TEXT.replace("SCALE = 2", "SCALE = 3")
    del sys.modules["overlaid_module"]
    with overlaid({file: TEXT}, {file: after}):
        assert module.SCALE == 2
    sys.modules["overlaid_module"] = module
    with overlaid({file: TEXT}, {file: after}):
        assert module.SCALE == 3


@pytest.mark.parametrize("after", ["def double(:\n", TEXT.replace("SCALE = 2", "SCALE = missing")])
def test_a_text_that_cannot_take_effect_is_said(after: str, module: ModuleType) -> None:
    file = str(module.__file__)
    with pytest.raises(NotAppliedError), overlaid({file: TEXT}, {file: after}):
        pass
    assert module.double(5) == 10 and module.SCALE == 2


def test_what_the_block_raises_passes_and_the_text_is_as_before(module: ModuleType) -> None:
    file = str(module.__file__)
    with pytest.raises(KeyError), overlaid({file: TEXT}, {file: TEXT.replace("x * by", "1")}):
        raise KeyError
    assert module.double(5) == 10


FUTURE = """\
from __future__ import annotations


def first(x: Later):
    return x


@staticmethod
def second(x: Later):
    '''Double.'''
    return x * 2


LAST = 1
"""


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ("return x * 2", "return (\n        x * 3\n    )", "def second"),
        ("LAST = 1", "LAST = 2", ""),
        ("    return x\n\n", "    y = 1\n    return x\n\n", "def first"),
        ("    return x\n\n\n@staticmethod", "    return 2\n\n\n@classmethod", ""),
    ],
)
def test_no_more_is_compiled_than_the_function_that_changes(
    before: str, after: str, part: str
) -> None:
    text = FUTURE.replace(before, after)
    old, new = overlay._narrow("file.py", FUTURE, text)
    assert (old == FUTURE) is (not part)
    if part:
        assert part in new and new.count("def ") == 1
        assert new.splitlines().index(f"{part}(x: Later):") == FUTURE.splitlines().index(
            f"{part}(x: Later):"
        )
        compile(old, "file.py", "exec", dont_inherit=True)
        assert old.startswith("from __future__ import annotations\n")
