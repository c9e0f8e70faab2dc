"""Settings are followed through constructors, as they are written in a file."""

from pathlib import Path

from reprod_align.model.source import SourceLine
from reprod_align.model.source.making import (
    find_choice,
    find_making,
    list_parameters,
    read_attributes,
    trace_argument,
    trace_attribute,
)
from reprod_align.model.source.parsing import find_assignments, find_owners, parse

import pytest

LAYERS = """\
class Inner:
    def __init__(self, rate=0.5, mode=None):
        self.rate = rate
        self.mode = mode or rate

    def forward(self, x):
        return drop(x, self.rate)


class Outer:
    def __init__(self, config, p=0.1, kind="a"):
        q = p
        self.inner = Inner(
            rate=q,
        )
        self.other = Inner(config.rate)
        if kind == "a":
            self.chosen = Inner(p)
        else:
            self.chosen = Linear(3)
        self.parts = Repeated(self.inner, 3)
"""


def write(folder: Path) -> tuple[str, list[SourceLine], list[SourceLine]]:
    file = folder / "layers.py"
    file.write_text(LAYERS)
    return str(file), [SourceLine(str(file), 2)], [SourceLine(str(file), 11)]


def test_an_argument_is_followed_to_where_it_is_handed_in(tmp_path: Path) -> None:
    file, inner, outer = write(tmp_path)
    trail = trace_attribute(inner, ["rate"], {file})
    assert trail is not None and trail.parameters == ("rate",)
    making = find_making(outer, ["inner"], "Inner")
    assert making is not None and making.is_call_of("Inner")
    trail = trace_argument(making, ["rate"], inner, {file})
    assert trail is not None and trail.parameters == ("p",)
    making = find_making(outer, ["other"], "Inner")
    assert making is not None
    trail = trace_argument(making, ["rate"], inner, {file})
    assert trail is not None and trail.place and (trail.place.line, trail.parameters) == (16, ())


def test_what_is_left_out_has_the_line_of_its_default(tmp_path: Path) -> None:
    file, inner, outer = write(tmp_path)
    making = find_making(outer, ["inner"], "Inner")
    assert making is not None
    trail = trace_argument(making, ["mode"], inner, {file})
    assert trail is not None and trail.place is not None and trail.place.line == 2
    trail = trace_argument(making, ["mode"], inner, set())  # a framework's
    assert trail is not None and trail.place is not None and trail.place.line == 13
    assert list_parameters(outer) == ["config", "p", "kind"]


def test_the_condition_that_chose_another_layer_is_found(tmp_path: Path) -> None:
    _, _, outer = write(tmp_path)
    making = find_making(outer, ["chosen"], "Linear")
    assert making is not None and making.place is not None and making.place.line == 20
    choice = find_choice(making, "Inner")
    assert choice is not None and choice.line == 17
    assert find_choice(making, "Conv") is None


def test_a_layer_that_is_put_away_first_is_found_where_it_is_made(tmp_path: Path) -> None:
    _, _, outer = write(tmp_path)
    making = find_making(outer, ["parts", "0"], "Repeated")
    assert making is not None and making.place is not None and making.place.line == 21


def test_a_line_tells_from_which_attributes_it_takes_its_values(tmp_path: Path) -> None:
    file, inner, _ = write(tmp_path)
    assert read_attributes(SourceLine(file, 7)) == ["rate"]
    assert read_attributes(SourceLine(file, 4)) == ["mode", "rate"]
    tree = parse(file)
    assert tree is not None and [node.lineno for node in find_assignments(tree, "q")] == [12]
    assert [owner.name for _, owner in find_owners(inner)] == ["Inner"]


HELPERS = """\
class Norm(Base):
    def __init__(self, size, eps=1e-5, bias=True):
        attr = None if bias else False
        super().__init__(size, epsilon=eps, bias_attr=attr)

def activation(name, width):
    if name == "relu":
        return ReLU()
    return GELU() if name == "gelu" else Tanh(width)

class Outer(Base):
    def __init__(self, block, norm=partial(Norm, eps=1e-6)):
        self.inplanes = 8
        self.first = self._make(block, 16, stride=2)
        self.second = self._make(block, 32)
        self.norm = norm(8)
        layers = []
        for _ in range(2):
            layers.append(activation("other", 4))
        self.tail = Sequential(*layers)

    def _make(self, block, planes, stride=1):
        stride = stride or 1
        layers = [block(self.inplanes, planes, stride)]
        layers.append(block(planes, planes))
        return Sequential(*layers)

class Block(Base):
    def __init__(self, inputs, planes, stride=1):
        self.conv = Conv(inputs, planes, stride=stride)
"""
BASE = """\
class Base:
    def __init__(self, size=1, epsilon=1e-5, bias_attr=None):
        self._epsilon = epsilon
        self._bias = make(size, bias_attr)
"""


@pytest.fixture
def helpers(tmp_path: Path) -> Path:
    file = tmp_path / "helpers.py"
    file.write_text(HELPERS)
    return file


@pytest.mark.parametrize(
    ("path", "made", "argument", "line"),
    [
        (["first", "0"], 24, "planes", 14),
        (["first", "0"], 24, "stride", 14),
        (["second", "0"], 24, "planes", 15),
        (["second", "1"], 25, "planes", 15),
    ],
)
def test_a_layer_that_a_method_makes_of_a_class_it_is_handed_is_followed_to_the_call(
    helpers: Path, path: list[str], made: int, argument: str, line: int
) -> None:
    outer, block = [SourceLine(str(helpers), 12)], [SourceLine(str(helpers), 30)]
    making = find_making(outer, path, "Block")
    assert making is not None and making.place is not None and making.place.line == made
    trail = trace_argument(making, [argument], block, {str(helpers)})
    assert trail is not None and trail.place is not None and trail.place.line == line


def test_a_layer_that_a_function_makes_and_what_it_chooses_by_are_found(helpers: Path) -> None:
    outer = [SourceLine(str(helpers), 12)]
    making = find_making(outer, ["tail", "0"], "Tanh")
    assert making is not None and making.place is not None and making.place.line == 9
    choices = [find_choice(making, kind) for kind in ("ReLU", "GELU")]
    assert [choice.line for choice in choices if choice is not None] == [7, 9]


@pytest.mark.parametrize(("nth", "line"), [((0, 2), 4), ((1, 2), 6), ((1, 3), 4)])
def test_of_several_layers_of_a_list_each_call_makes_one(
    nth: tuple[int, int], line: int, tmp_path: Path
) -> None:
    """Where there are more layers than calls, one of them stands in a loop: the first is named."""
    file = tmp_path / "port.py"
    file.write_text(
        "class Outer:\n"
        "    def __init__(self):\n"
        "        layers = []\n"
        "        layers.append(Block(3))\n"
        "        layers.append(Head(4))\n"
        "        layers.append(Block(5))\n"
        "        self.layers = Sequential(*layers)\n"
    )
    making = find_making([SourceLine(str(file), 2)], ["layers", "0"], "Block", nth)
    assert making is not None and making.place is not None and making.place.line == line


def test_an_argument_that_partial_binds_is_found_there(helpers: Path) -> None:
    outer, norm = [SourceLine(str(helpers), 12)], [SourceLine(str(helpers), 2)]
    making = find_making(outer, ["norm"], "Norm")
    assert making is not None
    trail = trace_argument(making, ["eps"], norm, {str(helpers)})
    assert trail is not None and trail.place is not None
    assert (trail.place.line, trail.value) == (12, 1e-6)


def test_a_value_that_a_constructor_makes_for_its_base_is_found_and_what_it_hangs_on(
    helpers: Path,
) -> None:
    base = helpers.with_name("base.py")
    base.write_text(BASE)
    classes, own = [SourceLine(str(helpers), 2), SourceLine(str(base), 2)], {str(helpers)}
    for names in (["bias", "bias_attr"], ["_bias"]):  # the constructor's name; the base's own
        trail = trace_attribute(classes, names, own)
        assert trail is not None and trail.place is not None
        assert (trail.place.line, trail.parameters) == (3, ("bias",))
    handed = trace_attribute(classes, ["eps", "epsilon"], own)
    assert handed is not None and (handed.place, handed.parameters) == (None, ("eps",))
