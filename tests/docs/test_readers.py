"""The pages of five minutes: each reader has one, short, linked from both READMEs, with commands that run."""

import re
import shlex
from pathlib import Path

from reprod_align.commands import parse
from tests.conftest import REPOSITORY
from tests.docs.pages import blocks, commands, read

import pytest

PAGES = [f"docs/for_{reader}.md" for reader in
         ("contestants", "engineers", "reviewers", "maintainers")]  # fmt: skip
FIVE_MINUTES = 1000  # words, at 200 a minute


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_in_five_minutes(page: str) -> None:
    assert len(read(page).split()) <= FIVE_MINUTES
    for name, home in ((page, "README.md"), (page.replace(".md", "_cn.md"), "README_cn.md")):
        assert f"({name})" in read(home)


@pytest.mark.parametrize("page", PAGES)
def test_its_commands_can_be_typed(page: str) -> None:
    targets = re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE)
    assert commands(page)
    for command in commands(page):
        words = shlex.split(command.removeprefix("FAULTY=1 "))
        if words[0] == "reprod-align":
            parse(words[1:])  # exits where it can't be
        elif words[0] == "make":
            assert words[1] in targets
        elif words[0] == "python" and words[1] != "run_all.py":  # the skeleton's: test_skeleton.py
            assert (REPOSITORY / words[1]).exists()


def test_a_maintainer_sees_what_the_script_prints() -> None:
    page = PAGES[3]
    script = Path(next(line for line in commands(page) if line.startswith("python ")).split()[1])
    report = read(str(script.with_suffix(".md")))
    assert blocks(page, "text")[0] in report


def test_the_counts_are_those_of_the_indices_and_of_what_lies_there() -> None:
    pages = [
        page.replace(".md", end) for page in (PAGES[3], "docs/zoo.md") for end in (".md", "_cn.md")
    ]
    for page in pages:
        counts = re.findall(r"\[(\d+)\]\((zoo/\w[\w.]*(?:/README)?(?:_cn)?\.md)\)", read(page))
        assert len(counts) == 5
        for number, index in counts:
            folder = (REPOSITORY / "docs" / index).parent
            if folder.name == "zoo":  # Paddle's kernels: one page
                assert read(f"docs/{index}").count("\n## ") == int(number), page
                continue
            assert re.search(rf"\n(共 )?{number} ", read(f"docs/{index}")), page
            for kind in ("*.py", "*.patch", "[0-9]*_cn.md"):
                assert len([*folder.glob(kind)]) == int(number), (index, kind)
