"""Every English document has a Chinese twin with the same sections, commands, tables and figures."""

import re
from importlib import import_module
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.docs.pages import read

import pytest

PLACES = ("*.md", "docs/*.md", "docs/results/*.md", "docs/api/*.md")
PLACES += ("pipeline/*/README.md", "log_reprod/README.md", "examples/*/README.md")
DOCUMENTS = sorted(
    str(path.relative_to(REPOSITORY))
    for place in PLACES
    for path in REPOSITORY.glob(place)
    if not path.name.endswith("_cn.md")
)
NOW = [name for name in DOCUMENTS if name != "CHANGELOG.md"]  # it names what was, too


def twin_of(name: str) -> str:
    return f"{name.removesuffix('.md')}_cn.md"


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def code(text: str) -> list[str]:
    """Return the lines of commands and code without their comments, which may be translated."""
    found = re.findall(r"^```(?:bash|python)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = (re.sub(r"\s*#.*", "", line) for block in found for line in block.splitlines())
    return [line for line in lines if line]


def levels(text: str) -> list[str]:
    return re.findall(r"^(#+) ", prose(text), flags=re.MULTILINE)


def tables(text: str) -> list[int]:
    """Return the number of cells of each row: what stands in backticks may hold a bar."""
    rows = [line for line in prose(text).splitlines() if line.startswith("|")]
    return [re.sub(r"`[^`]*`", "", row).count("|") for row in rows]


def figures(text: str) -> list[str]:
    return sorted(re.findall(r"\d\.\d+e-\d+", text))


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(path.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def paths(text: str) -> set[str]:
    """Return the files that a page names in backticks, with at least one folder."""
    return {*re.findall(r"`((?:[\w*]+/)+\w+\.(?:py|sh|md))`", text)}


def test_there_are_documents() -> None:
    assert {"README.md", "docs/tolerances.md", "pipeline/Step5/README.md"} <= {*DOCUMENTS}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_twin_says_the_same(name: str) -> None:
    ours, theirs = read(name), read(twin_of(name))
    for part in (code, levels, tables, figures):
        assert part(ours) == part(theirs), part.__name__
    assert f"({Path(twin_of(name)).name})" in ours and f"({Path(name).name})" in theirs


def list_entries(name: str) -> list[list[str]]:
    """Return what stands in backticks in each entry of a changelog, in any order."""
    _, *entries = re.split(r"^(?:- |#+ )", read(name), flags=re.MULTILINE)
    return [sorted({*re.findall(r"`[^`]+`", entry)}) for entry in entries]


def test_the_changelogs_have_the_same_entries() -> None:
    """Each names the same code: an entry that is missing, moved or left as it was shows."""
    ours, theirs = list_entries("CHANGELOG.md"), list_entries("CHANGELOG_cn.md")
    assert ours == theirs and len(ours) > 50


@pytest.mark.parametrize("name", [*DOCUMENTS, *map(twin_of, DOCUMENTS)])
def test_links_lead_to_a_page_and_a_heading(name: str) -> None:
    here = REPOSITORY / name
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(read(name))):
        if not target.startswith("http"):
            page, _, heading = target.partition("#")
            path = here.parent / page if page else here
            assert path.exists(), target
            assert not heading or heading in anchors(path), target


@pytest.mark.parametrize("name", NOW)
def test_the_files_that_a_page_names_exist(name: str) -> None:
    """Named from the repository's root, from the library's, or from the page's own folder."""
    roots = (REPOSITORY, REPOSITORY / "reprod_align", (REPOSITORY / name).parent)
    for page in (name, twin_of(name)):
        missing = [at for at in paths(read(page)) if not any([*root.glob(at)] for root in roots)]
        assert missing == [], page


@pytest.mark.parametrize("name", NOW)
def test_the_modules_that_a_page_names_exist(name: str) -> None:
    for dotted in re.findall(r"`(reprod_align(?:\.[a-z_0-9]+)+)[`(]", read(name)):
        module, _, attribute = dotted.rpartition(".")
        try:
            known = hasattr(import_module(module), attribute) or import_module(dotted)
        except ModuleNotFoundError:
            known = False
        assert known, dotted
