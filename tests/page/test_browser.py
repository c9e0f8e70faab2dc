"""The page in a browser: it opens without a word on the console, and what can be clicked answers."""

from pathlib import Path

from tests.page.pages import HOSTILE, make_layers, make_page, open_page
from tests.page.test_html import hostile_page

import pytest


def ask(tmp_path: Path, expression: str, before: str = "", **choices: object) -> str:
    """Return the value of an expression in the page, after some clicks."""
    page = choices.pop("page", None) or make_page()
    told = f"'found=' + String({expression}) + '=end'"
    script = f"{before}; parent.postMessage(document.title = {told}, '*');"
    document = open_page(tmp_path, page, script, **choices)  # type: ignore[arg-type]
    return document.split("found=")[1].split("=end")[0]


def change(name: str, value: str, event: str) -> str:
    """Return the script that gives a control a value, as a user would."""
    return (f"const it = document.getElementById('{name}'); it.value = '{value}';"
            f"it.dispatchEvent(new Event('{event}'))")  # fmt: skip


FAILING = "[...document.querySelectorAll('.tree .state-2 > .row')]"


def test_the_failing_module_is_in_sight_and_all_else_folded(tmp_path: Path) -> None:
    open_page(tmp_path, make_page())
    seen = ask(tmp_path, f"{FAILING}.map(one => one.textContent + one.checkVisibility()).join()")
    assert "norm" in seen and seen.endswith("true")
    opened = "[...document.querySelectorAll('.tree details')].filter(one => one.open).length"
    assert ask(tmp_path, opened) == "3"  # the model, layers, layers.3


def test_the_finding_leads_to_its_module(tmp_path: Path) -> None:
    click = "document.getElementById('fold').click(); document.querySelector('[data-goto]').click()"
    name = "document.querySelector('.target > .row .name').textContent"
    marked = f"{name} + ' ' + document.activeElement.className"
    assert ask(tmp_path, marked, click) == "norm row"


def test_search_and_filter(tmp_path: Path) -> None:
    rows = "document.querySelectorAll('.tree .row').length"
    search = change("find", "blocks.1.", "input")
    assert ask(tmp_path, rows, search) == "2"
    assert ask(tmp_path, rows, change("filter", "found", "change")) == "1"
    assert ask(tmp_path, rows, change("filter", "introduces", "change")) == "1"
    assert ask(tmp_path, rows, change("find", "no such", "input")) == "0"


def test_the_language_is_switched(tmp_path: Path) -> None:
    seen = "[...document.querySelectorAll('h2')].map(one => one.innerText).join()"
    assert "Where the two first differ" in ask(tmp_path, seen)
    chinese = ask(tmp_path, seen, "document.querySelector('[data-set=zh]').click()")
    assert "最先不一致的地方" in chinese and "Where the two" not in chinese


def test_the_cursor_names_a_layer_from_the_keyboard(tmp_path: Path) -> None:
    said = ask(
        tmp_path, "document.getElementById('reading').textContent", change("layer", "2", "input")
    )
    assert said == "2. layers.0.fc · forward 2.0e-16 · grad 3.0e-03 · noise floor 1.0e-16"


def test_the_rest_of_a_table_is_shown(tmp_path: Path) -> None:
    rows = "document.querySelectorAll('#table-0 tbody tr').length"
    assert ask(tmp_path, rows, "document.querySelector('[data-more]').click()") == "50"


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off_and_dark_is_dark(tmp_path: Path, width: int, dark: bool) -> None:
    wide = "document.documentElement.scrollWidth + ' ' + innerWidth"
    wide += " + ' ' + getComputedStyle(document.body).backgroundColor"
    needed, there, colour = ask(tmp_path, wide, width=width, dark=dark).split(" ", 2)
    assert int(needed) <= int(there) == width
    assert colour == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    document = open_page(tmp_path, hostile_page())
    assert "\x1b" not in document and "\u202e" not in document
    assert ask(tmp_path, "document.querySelectorAll('script').length", page=hostile_page()) == "3"
    assert HOSTILE not in document


def test_two_thousand_modules_cost_few_elements(tmp_path: Path) -> None:
    """What is folded is not made: the tree has elements for what is open alone."""
    page = make_page()
    page.layers = [one for one in make_layers(1000, 500)]
    rows = int(ask(tmp_path, "document.querySelectorAll('.tree .row').length", page=page))
    assert rows == 1 + 1 + 1000 + 2
    found = change("find", "layers", "input")
    assert (
        ask(tmp_path, "document.querySelectorAll('.tree .row').length", found, page=page) == "200"
    )
