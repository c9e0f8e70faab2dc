"""Which lines of a file a run takes."""

from pathlib import Path

from reprod_align.explain.executed import Ran, note_lines

TEXT = "def choose(first):\n    if first:\n        return 1\n    return 2\n"


def test_the_lines_of_the_files_that_are_asked_for_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    space: dict[str, object] = {}
    exec(compile(TEXT, str(path), "exec"), space)
    choose = space["choose"]
    assert note_lines([str(path)], lambda: choose(False)) == {str(path): frozenset({2, 4})}  # type: ignore[operator]
    assert note_lines(["other.py"], lambda: choose(True)) == {"other.py": frozenset()}  # type: ignore[operator]


def test_what_functions_call_is_reached_the_nearest_first() -> None:
    a, b, c, d = (("net.py", name) for name in "abcd")
    ran = Ran(calls={a: [b], b: [c, a], d: [c]})
    assert ran.list_reached([a]) == [a, b, c]
    assert ran.list_reached([c]) == [c]
