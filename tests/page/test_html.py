"""The page in HTML: every part, every text escaped, nothing fetched, small for a large model, bilingual."""

import json
import math
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

from reprod_align.page import (
    CodeLine,
    CurvePlot,
    Diagnostic,
    Figures,
    JUnitCase,
    Layer,
    Page,
    StepResult,
    Table,
)
from reprod_align.page.html import encode_data, flatten_tree, render_page
from reprod_align.page.outputs import write_report
from tests.page.pages import APART, EXACT, HOSTILE, make_layers, make_page

VOID = {"meta", "br", "input", "img", "path", "rect", "use", "link"}


class Reader(HTMLParser):
    """Collects elements and text; `open` is empty at the end of a well-formed page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count = 0
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count += 1
        self.open += [] if tag in VOID else [tag]
        named = dict(attrs)
        self.addresses += [str(named[one]) for one in ("src", "href", "xlink:href") if one in named]
        self.handlers += [name for name in named if name.startswith("on")]
        self.ids += [str(named["id"])] if "id" in named else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_part_stands_in_the_page() -> None:
    read = Reader(render_page(make_page()))
    assert not read.open and not read.handlers
    for part in (
        "mine.py", "diverges", "不一致", "Where the two first differ", "net.py:1", "one(x)", "net.py:2",
        "3 of 8 predictions flip", "8 个预测中有 3 个翻转", "1 forward",
        "The model, in call order", "Difference by layer",
        "noise floor", "differs most", "Curves", "Weights", "a remark", "Not judged", "an output",
        "Environment", "today",
    ):  # fmt: skip
        assert part in read.text, part


def test_the_verdict_and_the_first_finding_come_before_the_rest() -> None:
    page = render_page(make_page())
    places = [
        page.index(f'id="{name}"') for name in ("steps", "verdict", "first", "model", "layers")
    ]
    assert places == sorted(places)


def test_what_is_empty_is_left_out() -> None:
    read = Reader(render_page(Page("a", "faithful", True)))
    assert {"steps", "model", "layers", "worst", "curves", "remarks", "unjudged"}.isdisjoint(
        read.ids
    )


def test_nothing_is_fetched_and_one_script_may_run() -> None:
    page = render_page(make_page())
    addresses = Reader(page).addresses
    assert addresses and all(one.startswith(("#", "data:image/png;base64,")) for one in addresses)
    assert "@import" not in page and "url(http" not in page
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.S)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policy is not None and f"script-src 'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'")


def hostile_page() -> Page:
    """Return a page in which every text is hostile."""
    figures = Figures(1.0, 1.0, 1.0)
    layers = [Layer(f"{HOSTILE}{n}", HOSTILE, HOSTILE, forward=figures) for n in range(5)]
    return Page(
        HOSTILE, HOSTILE, False, HOSTILE, [StepResult(*[HOSTILE] * 7)],
        [Diagnostic(*[HOSTILE] * 3, [CodeLine(*[HOSTILE] * 3)], HOSTILE, [HOSTILE], HOSTILE)] * 2,
        [HOSTILE], layers, 1e-9, replace(make_page().picture or None, name=HOSTILE),  # type: ignore[type-var]
        [CurvePlot(HOSTILE, [0], [1.0], [2.0])],
        [Table(HOSTILE, [HOSTILE], [[HOSTILE]] * 30, note=HOSTILE)],
        [JUnitCase(HOSTILE, HOSTILE, False, HOSTILE)], [HOSTILE], [HOSTILE], [HOSTILE], [],
        [(HOSTILE, HOSTILE)],
    )  # fmt: skip


def test_hostile_names_are_text() -> None:
    page = render_page(hostile_page())
    assert "alert(1)</script>" not in page and page.count("<script") == 2
    assert "\x1b" not in page and "\u202e" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page and "\\x1b[31m\\u202e\\n" in page
    assert not Reader(page).open


def test_data_in_a_script_cannot_end_it() -> None:
    text = encode_data({"a": HOSTILE})
    assert "<" not in text and json.loads(text) == {"a": HOSTILE}


def test_ids_are_unique() -> None:
    page = make_page()
    page.curves = [*page.curves, *page.curves]
    ids = Reader(render_page(page)).ids
    assert len(ids) == len(set(ids))


def test_a_large_model_costs_bytes_and_no_elements() -> None:
    """Of 2,000 modules the page holds data; its elements are made when a branch is opened."""
    small, large = make_page(5), make_page(5)
    large.layers = make_layers(1000, 500)
    pages = [render_page(one) for one in (small, large)]
    elements = [Reader(one).count for one in pages]
    assert elements[1] < elements[0] + 1000  # the marks of the plot by layer
    assert len(pages[1]) - len(pages[0]) < 700_000
    rows = json.loads(re.findall(r'id="data">(.*?)</script>', pages[1])[0])["tree"]
    assert len(rows) == 3002 and len(json.dumps(rows)) < 300_000


def test_long_tables_keep_their_rest_as_data() -> None:
    page = render_page(make_page())
    assert page.count('<td data-head="PyTorch"') == 20
    rest = json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])["tables"][0]
    assert len(rest) == 30 and rest[-1] == [1, "w49", "v49"]


def test_what_is_not_finite_is_drawn_and_written(tmp_path: Path) -> None:
    page = make_page()
    page.layers[3].forward = Figures(math.nan, math.inf, math.nan)
    page.layers[4].forward = Figures(math.nan, math.inf, math.inf)
    write_report(tmp_path / "page.html", page)
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")


def test_a_constant_curve_takes_a_line_and_no_plot() -> None:
    page = make_page()
    same, other = CurvePlot("rate", [1, 2], [0.5, 0.5], [0.5, 0.5]), CurvePlot("a", [1], [1], [2])
    page.curves = [same, other]
    text = render_page(page)
    assert "0.5" in Reader(text).text and "on both sides at all 2 steps" in text
    assert "curve1-" in text and "curve0-" not in text
    page.curves = [replace(same, actual=[0.5, 0.6])]
    assert "curve0-" in render_page(page)


def test_what_stands_in_backticks_is_code_and_still_escaped() -> None:
    page = make_page()
    page.remarks = ["see `<b>x</b>`, it's `y`", "one ` alone"]
    text = render_page(page)
    assert "see <code>&lt;b&gt;x&lt;/b&gt;</code>" in text and "<code>y</code>" in text
    assert "one ` alone" in text


def test_a_line_stands_among_its_neighbours_and_opens_an_editor() -> None:
    around = [(6, "def f():"), (7, "    return one(x, 2)"), (8, "<i>")]
    line = CodeLine(
        "Paddle", "net.py:7", "return one(x, 2)", (7, 16), around, "vscode://file/net.py:7"
    )
    text = render_page(replace(make_page(), diagnostics=[Diagnostic("forward", "a", "b", (line,))]))
    assert '<a href="vscode://file/net.py:7"><code>net.py:7</code></a>' in text
    assert "return <mark>one(x, 2)</mark>" in text and "&lt;i&gt;" in text
    assert text.count('class="near"') == 2 and text.count('class="meant"') == 1


def test_modules_stand_in_call_order_under_their_parents() -> None:
    layers = [Layer("", ""), Layer("b", "b"), Layer("a.0", "x.0"), Layer("b.c", "b.c")]
    rows = flatten_tree(layers, 1e-9)
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (0, "", ""), (1, "b", ""), (2, "b.c", ""), (1, "a", ""), (2, "a.0", "x.0"),
    ]  # fmt: skip


def test_what_differs_inside_shows_outside() -> None:
    layers = [
        Layer("", "", forward=EXACT),
        Layer("a.0", "a.0", forward=APART),
        Layer("b", "b", forward=EXACT),
    ]
    assert [row[-1] for row in flatten_tree(layers, 1e-9)] == [1, 1, 1, 0]
    layers[1].failed = True
    assert [row[-1] for row in flatten_tree(layers, 1e-9)] == [1, 1, 2, 0]


def test_nan_differs_and_is_told_as_text() -> None:
    (row,) = flatten_tree([Layer("", "", forward=Figures(math.nan, math.nan, math.nan))], 1e-9)
    assert row[8] == "nan" and row[-1] == 1


def test_nothing_is_marked_without_a_limit() -> None:
    assert flatten_tree([Layer("", "", forward=APART)], math.inf)[0][-1] == 0


def test_names_are_printable() -> None:
    rows = flatten_tree([Layer("a\x1b", "b\u202e")], 1e-9)
    assert rows[1][1:4] == ["a\\x1b", "a\\x1b", "b\\u202e"]
