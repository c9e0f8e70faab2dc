"""Lines of the user's source: found from a frame, a traceback, a class, and by reading the file."""

import os
import sys
from pathlib import Path

from reprod_align.model.source import LOSS, SourceLine, UserCode, Wanted, line_of
from reprod_align.model.source.making import find_making
from reprod_align.model.source.parsing import (
    find_assignment,
    find_constant,
    find_decision,
    find_forward,
    find_late_settings,
    find_measure,
    find_returned,
    find_single_renaming,
    follow_renamings,
    is_plain_assignment,
    list_names,
    list_targets,
    read_number,
)

import _pytest.mark
import numpy as np
import pytest

CODE = UserCode((os.path.dirname(np.__file__),))
LAYER = """\
class Block:
    def __init__(self, d, eps=1e-5):
        self.norm = make(
            d,
            eps=1e-3,
        )
        self.parts = Sequential(Linear(d, d), ("act", GELU()))
        self.add_sublayer("last", Linear(d, 1))
        self.scale = d**-0.5

    def forward(self, x):
        scale = self.scale
        return x * scale
"""


def test_a_frame_gives_its_line_and_the_expression() -> None:
    place = line_of(sys._getframe())
    assert place.text.startswith("place = line_of") and place.expression.startswith("line_of(")
    assert str(place).startswith(os.path.relpath(__file__)) or str(place).startswith(__file__)


def test_frameworks_and_the_standard_library_are_not_the_users() -> None:
    assert CODE.holds(__file__)
    assert (
        not CODE.holds(np.__file__) and not CODE.holds(os.__file__) and not CODE.holds("<string>")
    )


def test_models_inside_a_framework_are_read_as_the_users() -> None:
    whole, part = os.path.dirname(_pytest.__file__), os.path.dirname(_pytest.mark.__file__)
    code = UserCode((whole,), (part,))
    assert code.holds(_pytest.mark.__file__) and not code.holds(_pytest.__file__)


def test_the_innermost_line_of_the_users_raised() -> None:
    try:
        np.ones(3).reshape(7)
    except ValueError as error:
        found = CODE.find_raising_line(error.__traceback__)
    assert found is not None and "reshape(7)" in found.text


def test_a_class_and_a_function_of_the_users_are_found() -> None:
    class Own:
        def method(self) -> None: ...

    found = CODE.find_class(Own)
    assert found is not None and "def method" in found.text
    Own.patched = test_a_frame_gives_its_line_and_the_expression  # type: ignore[attr-defined]
    assert CODE.find_class(Own) == found
    patched = type("Patched", (), {"forward": test_a_frame_gives_its_line_and_the_expression})
    assert CODE.find_class(patched) is None
    assert CODE.find_class(dict) is None and CODE.find_function(np.sum) is None


def test_assignments_and_constructions_are_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "block.py"
    file.write_text(LAYER)
    place, inside = str(file), [SourceLine(str(file), 2)]

    def line(found: SourceLine | None) -> int | None:
        return None if found is None else found.line

    assert line(find_assignment(place, 13, "scale")) == 12
    assert line(find_assignment(place, 12, "self.scale")) == 9
    assert find_assignment(place, 13, "missing") is None

    def made(path: list[str], class_name: str) -> int | None:
        making = find_making(inside, path, class_name)
        return None if making is None else line(making.place)

    assert made(["norm"], "make") == 3
    assert made(["parts", "act"], "GELU") == 7
    assert made(["last"], "Linear") == 8
    assert made(["nothing"], "Conv2D") is None
    assert line(find_forward(inside)) == 11
    assert find_constant(SourceLine(place, 3, "", 6), 1e-3).line == 5
    assert find_constant(SourceLine(place, 3, "", 6), 7.0).line == 3


def test_a_file_that_cannot_be_read_gives_nothing() -> None:
    assert find_assignment("/nowhere.py", 3, "x") is None
    assert find_making([SourceLine("/nowhere.py", 1)], ["x"], "X") is None
    assert SourceLine("/nowhere.py", 1).text == ""


def test_what_is_wanted_is_plain_data() -> None:
    assert LOSS in Wanted(frozenset({LOSS}), frozenset()).calls


@pytest.mark.parametrize(
    ("lines", "call", "found"),
    [
        (["key = x"], "self.split(key)", 5),
        (["key = x"], "self.split(by=2, value=key)", 5),
        (["key = x", "y = key + 1"], "self.split(key)", None),  # the name has another use
        (["key = self.key(x)"], "self.split(key)", None),
        (["key = x"], "self.split(x)", None),
        (["key = x"], "self.split(key, value)", None),  # not what is asked for
        (["key = x", "key = self.split(key)", "y = key + 1"], "", 5),
    ],
)
def test_a_name_given_for_one_call_alone_is_found(
    lines: list[str], call: str, found: int | None, tmp_path: Path
) -> None:
    file, names = tmp_path / "x.py", ["value"] if call != "self.split(key, value)" else ["by"]
    body = [*lines, f"return {call}"] if call else lines
    head = ["def split(self, value, by=1):", "    return value / by", "", "def forward(self, x):"]
    file.write_text("\n".join([*head, *(f"    {line}" for line in body), ""]))
    caller = SourceLine(str(file), 4 + len(body) - (not call), call or "self.split(key)")
    place = find_single_renaming(caller, SourceLine(str(file), 2), names)
    assert (place and place.line) == found


CONSTRUCTOR = """
class Net:
    def __init__(self, config):
        self.gain = 2.0 if config.scaled else 1.0
        if config.act:
            self.act = relu
        else:
            self.act = gelu
        if config.wide:
            self.width = 3

    def init(self, layer):
        if isinstance(layer, Norm):
            layer._epsilon = 1e-12

    def forward(self, x):
        y = x
        z = self.act(y)
        hidden = z
        return hidden
"""


def test_a_choice_in_a_constructor_is_told_by_its_condition(tmp_path: Path) -> None:
    file = str(tmp_path / "net.py")
    Path(file).write_text(CONSTRUCTOR)
    told = {4: "config.scaled", 6: "config.act", 8: "config.act", 5: "config.act", 10: "", 17: ""}
    assert {at: find_decision(SourceLine(file, at)) for at in told} == told


def test_what_sets_a_layer_from_outside_is_found_with_its_condition(tmp_path: Path) -> None:
    file = str(tmp_path / "net.py")
    Path(file).write_text(CONSTRUCTOR)
    ((statement, guard),) = find_late_settings(file, ["eps", "epsilon"])
    assert (statement.lineno, guard.lineno) == (14, 13)
    assert read_number(statement.value) == 1e-12
    assert find_late_settings(file, ["gain"]) == []


def test_a_value_is_followed_back_through_its_names(tmp_path: Path) -> None:
    file = str(tmp_path / "net.py")
    Path(file).write_text(CONSTRUCTOR)
    inside = SourceLine(file, 18, "self.act(y)")
    assert find_returned(inside) == [(20, "hidden")] and list_targets(inside) == ["z"]
    assert [one.line for one in follow_renamings(file, 20, "hidden")] == [19]
    assert [one.line for one in follow_renamings(file, 18, "y")] == [17]
    assert {*list_names(inside)} == {"self", "y"}


def test_a_statement_that_only_renames_or_chooses_is_told_from_one_that_computes() -> None:
    for text in ("x = y[1]", "x = self.y", "x = y[-1][0]"):
        assert is_plain_assignment(SourceLine("y.py", 1, text))
    for text in ("x = f(y)", "x = y + 1", "x = y[at]", ""):
        assert not is_plain_assignment(SourceLine("y.py", 1, text))


@pytest.mark.parametrize(
    ("body", "named", "line"),
    [
        ("    p = F.softmax(x)\n    return F.cross_entropy(p, y)", "", 3),
        ("    p = F.softmax(x)\n    return F.cross_entropy(p, y)", "softmax", 2),
        ("    p = nn.Softmax()(x)\n    return criterion(p, y)", "softmax", 2),
        ("    return F.cross_entropy(helper(x), y)", "softmax", 2),
        ("    a = mse_loss(x, y)\n    b = F.kl_div(x, y)\n    return a + b", "", 3),
        ("    d = x - y\n    return (d * d).mean()", "", 3),
        ("    if x is None:\n        return 0\n    return x.mean()", "", 4),
        ("    pass", "", 1),
    ],
)
def test_the_call_of_a_loss_that_is_meant(body: str, named: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "loss.py"
    path.write_text(f"def loss(x):\n{body}\n")
    assert find_measure(SourceLine(str(path), 1), named).line == line


def test_the_call_of_a_loss_that_is_a_lambda_or_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "loss.py"
    path.write_text("loss = (\n    lambda x:\n    F.cross_entropy(\n        x, y)\n)\n")
    found = find_measure(SourceLine(str(path), 2))
    assert (found.line, found.expression) == (3, "F.cross_entropy( x, y)")
    absent = SourceLine(str(tmp_path / "none.py"), 2)
    assert find_measure(absent) is absent
