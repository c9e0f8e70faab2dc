"""How a pair is divided: sections of a size, their counterparts, pieces that share no parameter."""

from pathlib import Path

from reprod_align.sections.cover import Piece, Section, is_inside
from tests.sections.small import LAYERS, LIMIT, SIZE, divide


def test_sections_are_the_outermost_modules_that_fit(tmp_path: Path) -> None:
    pair = divide(tmp_path, LIMIT)
    paths = [section.torch for section in pair.sections]
    assert paths == ["embed", *(f"layers.{at}" for at in range(LAYERS)), "norm", "head"]
    assert all(section.torch == section.paddle for section in pair.sections)


def test_a_layer_that_does_not_fit_is_opened(tmp_path: Path) -> None:
    paths = [section.torch for section in divide(tmp_path, SIZE * (SIZE + 1)).sections]
    assert "layers.0.mix" in paths and "layers.0" not in paths


def test_small_sections_are_judged_together(tmp_path: Path) -> None:
    names = [piece.name for piece in divide(tmp_path, LIMIT).pieces]
    assert names == ["embed", "layers.0", "layers.1", "layers.2", "norm to head"]


def test_tied_sections_are_one_piece(tmp_path: Path) -> None:
    pieces = divide(tmp_path, LIMIT, tied=True).pieces
    assert Piece((Section("embed", "embed"), Section("head", "head"))) in pieces


def test_what_lies_inside() -> None:
    assert is_inside("a.b.weight", ["c", "a.b"]) and not is_inside("a.bc", ["a.b"])
