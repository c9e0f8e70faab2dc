"""What the documents' tests share: the blocks and commands of a page."""

import re

from tests.conftest import REPOSITORY


def read(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


def blocks(page: str, language: str = r"\w+") -> list[str]:
    """Return the fenced blocks of a page written in `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), flags=re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """Return the command lines of a page, without their comments."""
    lines = (
        line.partition("#")[0].strip()
        for block in blocks(page, "bash")
        for line in block.splitlines()
    )
    return [line for line in lines if line]


def assert_both_show_the_same(pages: tuple[str, str], *languages: str) -> None:
    """Compare a page's blocks with its twin's; a page without blocks of a language fails."""
    for language in languages:
        assert blocks(pages[0], language) == blocks(pages[1], language) != []
