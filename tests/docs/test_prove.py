"""docs/prove.md: its contract is one, its commands are, its names are all and only those of refusals."""

import re
import shlex
from pathlib import Path

from reprod_align.commands import parse
from reprod_align.contract.proof import REFUSALS
from reprod_align.contract.terms import read_terms
from reprod_align.records.gate import digest
from tests.conftest import REPOSITORY
from tests.docs.pages import assert_both_show_the_same, blocks, commands, read

import pytest

PAGES = ("docs/prove.md", "docs/prove_cn.md")
CONTRACTS = sorted((REPOSITORY / "examples" / "contracts").glob("*/contract.toml"))


def test_both_languages_show_the_same() -> None:
    assert_both_show_the_same(PAGES, "bash", "toml", "yaml", "json")


def test_the_commands_are_commands() -> None:
    for line in commands(PAGES[0]):
        words = shlex.split(line.replace("*", "bert"))
        if words[0] == "reprod-align":
            options = parse(["0" * 64 if "sha256sum" in word else word for word in words[1:]])
            assert all((REPOSITORY / one).is_file() for one in getattr(options, "contracts", ()))


def test_the_contract_on_the_page(tmp_path: Path) -> None:
    (text,) = blocks(PAGES[0], "toml")
    (tmp_path / "contract.toml").write_text(text, encoding="utf-8")
    (tmp_path / "bug_report.md").write_text("known")
    terms = read_terms(tmp_path / "contract.toml")
    assert terms.expected and terms.expected.mended.name == "mended.py"
    assert terms.tokens and terms.training and terms.name_map and terms.port.parent.name == "port"


@pytest.mark.parametrize("page", PAGES)
def test_the_names_are_those_of_refusals(page: str) -> None:
    rows = [line for line in read(page).splitlines() if line.startswith("| `")]
    cells = [line.split("|")[1] for line in rows]
    named = {name for cell in cells for name in re.findall(r"`([a-z-]+)`", cell) if "-" in name}
    assert named == {*REFUSALS}


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: str(path.parent.name))
def test_each_contract_of_the_examples_is_sealed(path: Path) -> None:
    terms = read_terms(path)
    assert all(digest(one) == wanted for one, wanted in terms.reference_files.items())
    assert all(one.is_file() for one in terms.port_files)
    assert terms.expected is None or digest(terms.expected.mended) == terms.expected.digest
