"""docs/faq.md is true: its snippets run, both languages show the same ones."""

import re
from pathlib import Path

import pipeline  # noqa: F401  (quietens what follows)
from reprod_align.api import list_entries
from tests.docs.pages import blocks, read

import paddle
import pytest

PAGES = ("docs/faq.md", "docs/faq_cn.md")
FAQ_QUESTIONS, GUIDE_QUESTIONS = 22, 25  # of the older FAQ, and of section 4 of the guide


def snippets(name: str) -> list[str]:
    return blocks(name, "python")


@pytest.mark.parametrize("number", range(len(snippets(PAGES[0]))))
@pytest.mark.filterwarnings("ignore")
def test_the_snippet_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        exec(snippets(PAGES[0])[number], {"__name__": "snippet"})
    finally:
        paddle.disable_static()


def test_every_snippet_checks_or_shows_something() -> None:
    silent = [code for code in snippets(PAGES[0]) if "assert" not in code and "raise" not in code]
    assert len(silent) == 2, silent  # the profiler, and the groups of an optimizer


def test_both_languages_have_the_same_questions_snippets_and_links() -> None:
    english, chinese = (snippets(name) for name in PAGES)
    assert english == chinese and len(english) > 30
    counts = [len(re.findall(r"^### ", read(name), flags=re.MULTILINE)) for name in PAGES]
    assert counts[0] == counts[1] == FAQ_QUESTIONS + GUIDE_QUESTIONS
    entered = [re.findall(r"\(api/(\w+\.md#[a-z0-9-]+)\)", read(name)) for name in PAGES]
    assert entered[0] == entered[1]


@pytest.mark.parametrize("name", PAGES)
def test_links_to_entries_name_them(name: str) -> None:
    slugs = {entry.slug for entry in list_entries()}
    named = re.findall(r"\[([a-z0-9-]+)\]\(api/\w+\.md#([a-z0-9-]+)\)", read(name))
    assert named and all(shown == slug and slug in slugs for shown, slug in named)


@pytest.mark.parametrize("name", PAGES)
def test_entries_are_on_the_page_that_is_linked(name: str) -> None:
    for page, slug in re.findall(r"\(api/(\w+\.md)#([a-z0-9-]+)\)", read(name)):
        assert f"## {slug}\n" in read(f"docs/api/{page}"), (page, slug)
