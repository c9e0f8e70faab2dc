"""A page as HTML: one file in two languages that needs no network and in which every text is escaped."""

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from reprod_align.errors import one_line
from reprod_align.page import Diagnostic, Layer, Page, Table, plots
from reprod_align.page.chinese import is_whole, translate

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

_SHOWN: Final = 20  # rows of a table; the page shows the others when asked
_TREE: Final = 3  # with fewer modules a tree tells nothing


@dataclass
class _TreeRow:
    """A module, or a step of its name that was never called itself (a list of layers)."""

    name: str
    layer: Layer | None = None
    inside: dict[str, "_TreeRow"] = field(default_factory=dict)


def flatten_tree(layers: Sequence[Layer], limit: float) -> list[list[Any]]:
    """Return a row for each module, parents before children, both in call order.

    A row: depth, last part of the name, PyTorch's name, Paddle's name if it is another one, class,
    calls, introduced, inherited, total, backward, state. A figure is None where it is not known;
    state: 2 a finding is about it, 1 its difference or one inside it is above `limit`, 0 it agrees.
    """
    root = _TreeRow("")
    for layer in layers:
        node = root
        for part in layer.torch_name.split(".") if layer.torch_name else ():
            node = node.inside.setdefault(part, _TreeRow(part))
        node.layer = layer
    return _list_rows(root, 0, "", limit)


def _list_rows(node: _TreeRow, depth: int, path: str, limit: float) -> list[list[Any]]:
    row = [depth, one_line(node.name), one_line(path), *_describe(node.layer, path, limit)]
    inside: list[list[Any]] = []
    for part, inner in node.inside.items():
        inside += _list_rows(inner, depth + 1, f"{path}.{part}" if path else part, limit)
    if not row[-1] and any(one[-1] for one in inside):  # what differs inside shows outside
        row[-1] = 1
    return [row, *inside]


def _describe(layer: Layer | None, path: str, limit: float) -> list[Any]:
    if layer is None:
        return ["", "", 0, None, None, None, None, 0]
    other = one_line(layer.paddle_name) if layer.paddle_name != path else ""
    forward = None if layer.forward is None else layer.forward.relative
    backward = None if layer.backward is None else layer.backward.relative
    figures = [layer.introduced, layer.inherited, forward, backward]
    differs = any(one is not None and not one <= limit for one in figures)
    state = 2 if layer.failed else int(differs)
    return [other, one_line(layer.kind), layer.calls, *map(_shorten, figures), state]


def _shorten(figure: float | None) -> float | str | None:
    """Return a figure as JSON has it, with as many digits as are read."""
    if figure is None:
        return None
    return float(f"{figure:.2e}") if math.isfinite(figure) else str(figure)


def render_page(page: Page) -> str:
    """Return the page as text."""
    environment = Environment(
        loader=DictLoader({"page": _read("page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_make_printable,
    )
    environment.filters |= {"say": _speak, "say_title": _speak_title, "chinese": translate}
    script = _read("page.js")
    return environment.get_template("page").render(
        page=page,
        shown=_SHOWN,
        style=Markup(_read("page.css")),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        data=Markup(encode_data(collect_data(page))),
        plots={name: list(map(Markup, pictures)) for name, pictures in _draw(page).items()},
        numbered=choose_layers(page.layers),
        has_tree=len(page.layers) >= _TREE,
    )


def _make_printable(value: object) -> object:
    """Escape what is not printable in a text of the user's; markup is ours."""
    user = isinstance(value, str) and not isinstance(value, Markup)
    return one_line(str(value)) if user else value


def _speak(text: object) -> Markup:
    """Return a text in both languages, of which the page shows one."""
    english = one_line(str(text))
    chinese = translate(english)
    if chinese == english:
        return _mark_code(english)
    both = Markup('<span lang="en">{}</span><span lang="zh">{}</span>')
    return both.format(_mark_code(english), _mark_code(chinese))


def _speak_title(diagnostic: Diagnostic) -> Markup:
    """Return a finding's title in both languages.

    Where its Chinese is not known, what its code means stands before the English.
    """
    english = one_line(diagnostic.message)
    if is_whole(translate(english)) or not diagnostic.chinese:
        return _speak(english)
    both = Markup('<span lang="en">{0}</span><span lang="zh">{1}（{0}）</span>')
    return both.format(_mark_code(english), _mark_code(diagnostic.chinese.rstrip("。")))


def _mark_code(text: str) -> Markup:
    """Return a text as markup, what stands in it between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one of them has no partner: it is a character as any other
        return escape(text)
    shown = (
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(parts)
    )
    return Markup("").join(shown)


def find_mark(page: Page) -> float:
    """Return the relative difference from which on a module is marked; inf for a page that passed."""
    return math.inf if page.passed else page.limit


def choose_layers(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers that the plot by layer shows: those with a figure."""
    return [one for one in layers if one.forward is not None or one.backward is not None]


def collect_data(page: Page) -> Mapping[str, Any]:
    """Return what the page's script reads: the tree, the layers of the plot, the rest of tables."""
    return {
        "limit": None if page.passed else page.limit,
        "tree": flatten_tree(page.layers, find_mark(page)) if len(page.layers) >= _TREE else [],
        "layers": [
            [one_line(one.torch_name), *_show_figures(one)] for one in choose_layers(page.layers)
        ],
        "tables": [_find_rest(table) for table in page.tables],
    }


def _show_figures(layer: Layer) -> list[str]:
    figures = (layer.forward, layer.backward)
    floor = "" if layer.floor is None else f"{layer.floor:.1e}"
    return [*("" if one is None else f"{one.relative:.1e}" for one in figures), floor]


def _find_rest(table: Table) -> list[Any]:
    """Return the rows beyond those that stand in the page, each with whether it is marked."""
    rest = list(enumerate(table.rows))[_SHOWN:]
    return [[int(number in table.failed), *map(one_line, row)] for number, row in rest]


def encode_data(data: object) -> str:
    """Return JSON that can stand in a script element: no text in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _draw(page: Page) -> Mapping[str, list[str]]:
    """Return the pictures of each kind."""
    layers = choose_layers(page.layers)
    picture = page.picture
    return {
        "layers": [plots.draw_layers(layers, page.limit, find_mark(page))]
        if len(layers) >= _TREE
        else [],
        "heat": [] if picture is None else [plots.draw_heat(picture)],
        "histograms": [] if picture is None else [plots.draw_histograms(picture)],
        "curves": [
            "" if curve.constant is not None else plots.draw_curve(curve, at)
            for at, curve in enumerate(page.curves)
        ],
        "more": [plots.adopt_svg(draw("svg"), f"more{at}") for at, draw in enumerate(page.plots)],
    }


def _read(name: str) -> str:
    return files("reprod_align.page").joinpath(name).read_text(encoding="utf-8")
