"""tools/draw_architecture.py: arrows are reduced, circles refused, and a stale page is noticed."""

import re
import runpy
from typing import Any

from tests.conftest import REPOSITORY

import pytest


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(REPOSITORY / "tools" / "draw_architecture.py"))


def test_an_arrow_that_a_path_replaces_is_left_out(tool: dict[str, Any]) -> None:
    found = tool["reduce_arrows"]({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    assert found == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_a_circle_is_refused(tool: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="imports run in a circle: a, b"):
        tool["reduce_arrows"]({"a": {"b"}, "b": {"a"}, "c": {"a"}})


def test_the_block_after_its_marker_is_replaced(tool: dict[str, Any]) -> None:
    page = "x\n<!-- imports of models -->\n```mermaid\nold\n```\ny\n"
    assert "old" not in tool["replace_picture"](page, "models", "```mermaid\nnew\n```")
    with pytest.raises(SystemExit, match="expected one block"):
        tool["replace_picture"](page, "pipeline", "")


def test_both_languages_show_the_same_picture(tool: dict[str, Any]) -> None:
    english, chinese = (page.read_text(encoding="utf-8") for page in tool["PAGES"])
    for root in ("reprod_align", "pipeline"):
        assert tool["replace_picture"](english, root, "") != english
        blocks = [text.split(f"<!-- imports of {root} -->")[1] for text in (english, chinese)]
        assert blocks[0].split("```")[1] == blocks[1].split("```")[1]


def test_every_package_has_a_row_in_both_tables(tool: dict[str, Any]) -> None:
    inside = [path for path in (REPOSITORY / "reprod_align").iterdir()
              if path.suffix == ".py" or (path / "__init__.py").is_file()]  # fmt: skip
    rooms = {path.stem for path in inside} - {"__init__", "__main__"}
    for page in tool["PAGES"]:
        cells = re.findall(r"^\| (`[^|]*) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
        named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
        assert rooms <= named, f"{page.name}: {sorted(rooms - named)}"
