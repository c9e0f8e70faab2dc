"""Settings are followed through constructors, as they are written in a file."""

from pathlib import Path

from reprod_align.model.source import SourceLine
from reprod_align.model.source.making import (
    find_choice,
    find_default,
    find_making,
    list_parameters,
    read_attributes,
    trace_argument,
    trace_attribute,
)
from reprod_align.model.source.parsing import find_assignments, find_owners, parse

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
    default = find_default(outer, ["kind"])
    assert default is not None and default.line == 11
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
