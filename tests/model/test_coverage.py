"""Functions that note which of their statements run."""

import importlib.util
import sys
from pathlib import Path
from threading import Thread
from types import ModuleType

from reprod_align.model.source import UserCode
from reprod_align.model.source.coverage import IdleLines, LineCoverage

import pytest

CODE = """import functools

class Base:
    pass

def decorate(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call

@decorate
def helper(x):
    if x > 10:
        return 2 * x
    return x

class Model(Base):
    def __init__(self, end):
        self.end = end

    def forward(self, x):
        assert x is not None, "nothing"
        x = helper(x)
        x = [one + 1 for one in [x]][0]
        return self._finish(x) if self.end else x

    @staticmethod
    def _finish(x):
        return -x

class Derived(Model):
    def forward(self, x):
        return super().forward(x)
"""


def load(folder: Path, name: str = "mine") -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(CODE)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cover(module: ModuleType, *calls: tuple[bool, int], thread: bool = False) -> IdleLines:
    lines, models = (
        LineCoverage(UserCode(()), module.Base),
        [module.Derived(end) for end, _ in calls],
    )
    lines.begin(models, [])
    for model, (_, x) in zip(models, calls, strict=True):
        if thread:
            worker = Thread(target=model.forward, args=(x,))
            worker.start()
            worker.join()
        else:
            model.forward(x)
    return lines.end()


@pytest.mark.parametrize("thread", [False, True])
def test_the_lines_that_never_ran(tmp_path: Path, thread: bool) -> None:
    module = load(tmp_path)
    lines = [own[1:] for own in cover(module, (False, 1), thread=thread).own]
    assert lines == [(15, 15, 1), (30, 30, 1)]
    assert cover(module, (False, 1), (True, 20), thread=thread) == IdleLines()


ENCLOSED = """class Base:
    pass

def scale(x):
    if x > 10:
        return 2 * x
    return x

def make(function):
    class Model(Base):
        def forward(self, x):
            return function(x)
    return Model()

plain, called = make(scale), make(lambda x: scale(x))
"""


@pytest.mark.parametrize("name", ["plain", "called"])
def test_a_function_of_the_code_around_is_followed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "enclosed.py"
    path.write_text(ENCLOSED)
    spec = importlib.util.spec_from_file_location("enclosed", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines = LineCoverage(UserCode(()), module.Base)
    lines.begin([getattr(module, name)], [])
    getattr(module, name).forward(1)
    found = lines.end()
    assert [own[1] for own in found.own] == [6] and found.unknown == ()


def test_functions_get_their_code_back(tmp_path: Path) -> None:
    module = load(tmp_path)
    codes = module.Model.forward.__code__, module.helper.__wrapped__.__code__
    cover(module, (False, 1))
    assert codes[0] is module.Model.forward.__code__
    assert codes[1] is module.helper.__wrapped__.__code__


def test_a_file_that_has_changed_is_left_alone(tmp_path: Path) -> None:
    module = load(tmp_path)
    Path(str(module.__file__)).write_text(CODE.replace("2 * x", "3 * x"))
    found = cover(module, (False, 1))
    assert found.unknown == (module.__file__,)
    assert [own[1] for own in found.own] == [30]


def test_of_a_package_lines_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "pack"
    folder.mkdir(parents=True)
    module = load(folder)
    found = cover(module, (False, 1))
    assert found.own == () and found.installed == {"pack": (2, 8)}


def test_one_function_on_two_sides(tmp_path: Path) -> None:
    module = load(tmp_path)
    first, second = (LineCoverage(UserCode(()), module.Base) for _ in range(2))
    code = module.Model.forward.__code__
    first.begin([module.Model(False)], [])
    second.begin([module.Model(False)], [])
    assert second.end() == IdleLines()
    assert len(first.end().own) > 0 and module.Model.forward.__code__ is code


def test_a_trace_function_hears_the_lines_as_before(tmp_path: Path) -> None:
    module, heard = load(tmp_path), set()

    def hear(frame, event, argument):
        if frame.f_code.co_filename == module.__file__:
            heard.add((event, frame.f_lineno))
        return hear

    before = sys.gettrace()
    sys.settrace(hear)
    try:
        cover(module, (False, 1))
    finally:
        sys.settrace(before)
    assert {("line", 14), ("line", 16), ("line", 24)} <= heard and ("line", 15) not in heard
