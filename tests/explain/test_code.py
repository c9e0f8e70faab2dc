"""Edits of source: what they touch, and that everything else stays."""

import ast

from reprod_align.explain.code import Code, dotted, list_imports

TEXT = '''"""Doc, with a letter of two bytes: é."""
import paddle

é = paddle.a.b(1)  # kept
if é:
    paddle.c()
'''


def test_edits_touch_their_place_alone() -> None:
    code = Code(TEXT)
    (place,) = code.attributes("b")
    assert dotted(place) == "paddle.a.b"
    call, last = list(code.calls())
    changed = code.apply([code.replace(place, "f"), code.replace(call.args[0], "2")])
    assert changed.text == TEXT.replace("paddle.a.b(1)", "f(2)")
    statement = next(code.parents(last))
    assert isinstance(statement, ast.Expr)
    assert code.apply([code.remove(statement)]).text == TEXT.replace("paddle.c()", "pass")
    assert code.apply([code.insert(code.tree.body[2], "x = 1\n\ny = 2")]).text == TEXT.replace(
        "é = p", "x = 1\n\ny = 2\né = p"
    )


def test_a_statement_of_several_goes_with_its_line() -> None:
    code = Code("def f():\n    a()\n    b(\n    )\n")
    first, second = list(code.calls())
    removed = code.apply([code.remove(next(code.parents(second)))])  # type: ignore[arg-type]
    assert removed.text == "def f():\n    a()\n"
    assert list(code.calls(3)) == [second] and list(code.calls(2)) == [first]


def test_of_edits_that_overlap_the_first_counts() -> None:
    code = Code("f(g(1))")
    outer, inner = list(code.calls())
    assert code.apply([code.replace(outer, "a"), code.replace(inner, "b")]).text == "a"
    assert [node.id for node in code.names("f", "g")] == ["f", "g"]


def test_imports_are_listed_by_what_they_bind() -> None:
    tree = ast.parse(
        "import a.b, c.d as e\nfrom f import g as h, i\nfrom ..j import k\nfrom . import l"
    )
    assert list_imports(tree) == {
        "a": "a", "e": "c.d", "h": "f.g", "i": "f.i", "k": "..j.k", "l": ".l"
    }  # fmt: skip
