"""The sources that are ported: each case's module has its class, which takes the arguments."""

import ast
from importlib.machinery import PathFinder
from pathlib import Path

from benchmarks.port_list import CASES

import pytest


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_one_call_with_inputs(name: str) -> None:
    case = CASES[name]
    (call,) = ast.parse(case.call).body
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    inputs = case.make_inputs()
    assert len(inputs) > 0


@pytest.mark.parametrize("name", CASES)
def test_the_source_declares_the_arguments(name: str) -> None:
    case = CASES[name]
    path = find_source(case.module)
    if path is None:
        pytest.skip(f"{case.module} is not installed: see benchmarks/requirements-ports.txt")
    classes = {one.name: one for one in ast.parse(path.read_text("utf-8")).body
               if isinstance(one, ast.ClassDef)}  # fmt: skip
    for call in ast.walk(ast.parse(case.call)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            if call.func.id in classes:
                check_arguments(call, classes[call.func.id], classes)
    outer = ast.parse(case.call, mode="eval").body
    tree = ast.parse(path.read_text("utf-8"))
    made = {one.name for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef)}
    assert isinstance(outer, ast.Call) and ast.unparse(outer.func) in made


def test_a_missing_argument_is_seen() -> None:
    source = "class Base:\n    def __init__(self, a, *, b=1): pass\nclass Net(Base): pass\n"
    classes = {one.name: one for one in ast.parse(source).body if isinstance(one, ast.ClassDef)}
    check_arguments(ast.parse("Net(1, b=2)", mode="eval").body, classes["Net"], classes)
    with pytest.raises(AssertionError, match="c"):
        check_arguments(ast.parse("Net(1, c=2)", mode="eval").body, classes["Net"], classes)


def test_a_missing_argument_that_is_handed_on_is_seen() -> None:
    source = "class Part:\n    def __init__(self, a): pass\nclass Net:\n    def __init__(self, **kw): pass\n"
    classes = {one.name: one for one in ast.parse(source).body if isinstance(one, ast.ClassDef)}
    check_arguments(ast.parse("Net(a=1)", mode="eval").body, classes["Net"], classes)
    with pytest.raises(AssertionError, match="c"):
        check_arguments(ast.parse("Net(c=2)", mode="eval").body, classes["Net"], classes)


def check_arguments(call: ast.expr, kind: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> None:
    """Assert that the class, or one that it is derived from in the file, declares a call's arguments."""
    assert isinstance(call, ast.Call)
    declared: set[str] = set()
    while True:
        made = [
            one for one in kind.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        ]
        if made:
            args = made[0].args
            declared |= {one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
        bases = [classes[name] for one in kind.bases if (name := ast.unparse(one)) in classes]
        if (made and made[0].args.kwarg is None) or not bases:
            break
        kind = bases[0]
    if made and made[0].args.kwarg is not None:  # handed on to another class of the file
        inits = (one for other in classes.values() for one in other.body)
        declared |= {
            one.arg
            for function in inits
            if isinstance(function, ast.FunctionDef) and function.name == "__init__"
            for one in function.args.args
        }
    missing = {word.arg for word in call.keywords} - declared
    assert not missing or not made, f"not declared: {missing}"


def find_source(module: str) -> Path | None:
    """Return where a module's source lies, without importing its packages; None if it is not installed."""
    folders = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders = spec.submodule_search_locations
    return Path(spec.origin) if spec.origin else None
