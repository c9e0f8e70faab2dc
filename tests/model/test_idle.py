"""Statements that note themselves, and the lines of those that never ran."""

import ast

from reprod_align.model.source.coverage import list_idle, mark_statements

import pytest

NOTE = "note"
CODE = '''
class Holder:
    def wanted(self, x):
        """A docstring."""
        import math
        assert x, (
            "none"
        )
        if x == 1:
            y = math.sqrt(
                x
            )
        elif x == 2:
            y = 2
            return y
        elif x == 3:
            text = "three"
            raise ValueError(text)
        else:
            try:
                y = 1 / (x - 4)
            except ZeroDivisionError:
                y = 5
        while y > 100: y -= 1
        print("said")
        return [(lambda z: z + y)(1)]

    def other(self):
        return 1
'''
WANTED = frozenset({("Holder.wanted", 3)})


def run(*values: float) -> list[tuple[int, int, int]]:
    marked, places = mark_statements(ast.parse(CODE), WANTED, NOTE)
    seen: set[int] = set()
    text = ast.unparse(marked).replace(f"'{NOTE}'(", "note(")
    names: dict[str, object] = {"note": seen.add}
    exec(text, names)
    for value in values:
        names["Holder"]().wanted(value)  # type: ignore[operator]
    return list(list_idle(places, places.keys() - seen))


@pytest.mark.parametrize(
    ("values", "idle"),
    [
        ((1,), [(13, 23, 7), (24, 24, 1)]),
        ((2,), [(10, 12, 3), (16, 26, 6)]),
        ((1, 2, 4), [(24, 24, 1)]),
        ((1, 2, 4, 4.001), []),
    ],
)
def test_statements_that_never_ran(
    values: tuple[float, ...], idle: list[tuple[int, int, int]]
) -> None:
    assert run(*values) == idle
