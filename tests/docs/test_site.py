"""The documentation as a site: all pages are in the navigation, and a link that leads nowhere fails."""

import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import PATIENCE, REPOSITORY
from tests.docs.test_twins import DOCUMENTS, twin_of

import pytest
import yaml

CONFIGURATION = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
ENGLISH, CHINESE = (part for item in CONFIGURATION["nav"] for part in item.values())
# A bug report, whose name begins with its number, is reached from its package's index.
DOCS = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "docs").rglob("*.md")
        if not path.name[0].isdigit()}  # fmt: skip
ALONE = {name for name in DOCS if not (REPOSITORY / twin_of(name)).exists()}
ALONE -= {twin_of(name) for name in DOCS}


def list_pages(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    assert isinstance(nav, dict | list)
    return [page for part in parts for page in list_pages(part)]


def build(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    words = ["-m", "mkdocs", "build", "--strict", "-f", str(configuration), "-d", str(site)]
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=PATIENCE
    )


def test_the_navigation_lists_every_page() -> None:
    twins = {twin_of(name) for name in DOCUMENTS}
    assert sorted(list_pages(CONFIGURATION["nav"])) == sorted(DOCS | {*DOCUMENTS} | twins)


def test_both_languages_have_the_same_order() -> None:
    english = [page for page in list_pages(ENGLISH) if page not in ALONE]
    assert list_pages(CHINESE) == [twin_of(page) for page in english]


@pytest.mark.longer
def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    finished = build(REPOSITORY / "mkdocs.yml", tmp_path)
    assert finished.returncode == 0, finished.stderr
    pages = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.html")}
    assert {"index.html", "README_cn.html", "docs/api/norms.html"} < {*pages}
    assert "LayerNorm" in pages["examples/pair_mlp.html"].read_text(encoding="utf-8")
    for name, path in pages.items():
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', text), name
        assert not re.findall(r'<link[^>]*rel="(?:stylesheet|preconnect)"[^>]*"https?:', text), name
        language = "zh" if name.endswith("_cn.html") else "en"
        assert f'<html lang="{language}"' in text and 'class="mermaid"' not in text, name


@pytest.mark.longer
@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("other.md", "'docs/other.md' is not found"),
        ("../code.py", "'code.py' is not found"),
        ("../README.md#nowhere", "does not contain an anchor '#nowhere'"),
        ("../README.md#a-b--c", ""),  # as GitHub names the heading "A, b & c"
    ],
)
def test_a_broken_link_fails(tmp_path: Path, link: str, said: str) -> None:
    for path in ("mkdocs.yml", "tools/site_pages.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        text = (REPOSITORY / path).read_text(encoding="utf-8")
        (tmp_path / path).write_text(text.split("\nnav:")[0], encoding="utf-8")
    with (tmp_path / "mkdocs.yml").open("a", encoding="utf-8") as configuration:
        configuration.write("\nnav: [English: [README.md], 中文: [docs/page_cn.md]]\n")
    (tmp_path / "README.md").write_text("# A, b & c\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page_cn.md").write_text(f"# 页\n\n[x]({link})\n", encoding="utf-8")
    finished = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert finished.returncode == bool(said) and said in finished.stderr, finished.stderr
