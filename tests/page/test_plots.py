"""Pictures take their colours from the page and hold numbers alone."""

import math
from xml.etree import ElementTree

from reprod_align.page import CurvePlot, Layer, TensorPicture
from reprod_align.page.plots import (
    COLOURS,
    Figure,
    adopt_svg,
    choose_marks,
    draw_curve,
    draw_heat,
    draw_histograms,
    draw_layers,
    encode_figure,
)
from tests.page.pages import make_layers

import numpy as np
import pytest

PICTURE = TensorPicture("a", (3, 2), [[0.0, 1.0], [math.nan, math.inf]], [0.0, 1.0], [6], [0])
PICTURES = {
    "layers": lambda: draw_layers(make_layers(8, 3), 1e-9),
    "few layers": lambda: draw_layers([Layer("", "")], 1e-9),
    "heat": lambda: draw_heat(PICTURE),
    "histograms": lambda: draw_histograms(PICTURE),
    "curve": lambda: draw_curve(
        CurvePlot("x", [0, 1], [1.0, math.nan], [1e308, -1e308], [0.0, 1.0], 1)
    ),
    "equal curve": lambda: draw_curve(CurvePlot("x", [5], [1.0], [1.0])),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_are_elements_in_the_colours_of_the_page(kind: str) -> None:
    svg = PICTURES[kind]()
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg") and "viewBox" in root.attrib and "width" not in root.attrib
    assert not any(colour in svg for colour in COLOURS.values()) and "var(--" in svg
    assert "<metadata" not in svg and "<script" not in svg


def test_the_same_numbers_give_the_same_picture() -> None:
    assert PICTURES["layers"]() == PICTURES["layers"]()


def test_two_thousand_layers_are_drawn_in_few_bytes() -> None:
    layers = make_layers(1000, 500)
    assert len(draw_layers(layers, 1e-9)) < 250_000
    heights = np.array([math.nan, *range(1999)])
    assert len(choose_marks(heights)) == 400 and choose_marks(heights)[-1] == 1999


def test_a_picture_has_no_date_and_its_ids_are_its_own() -> None:
    svg = encode_figure(Figure(figsize=(1, 1)))
    assert b"<dc:date>" not in svg and 'id="mine-' in adopt_svg(svg, "mine")
