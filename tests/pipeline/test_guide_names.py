"""A command of the guide's is answered with ours, in one line; the page lists them all."""

import subprocess
import sys
from pathlib import Path

from pipeline.guide_names import NEW_NAMES
from tests.conftest import REPOSITORY

import pytest

PAGES = ("docs/guide.md", "docs/guide_cn.md")


@pytest.mark.parametrize("name", NEW_NAMES)
def test_the_guides_name_says_ours(name: str) -> None:
    program = sys.executable if name.endswith(".py") else "sh"
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)}
    path = REPOSITORY / name
    finished = subprocess.run([program, path.name], cwd=path.parent, env=environment,
                              capture_output=True, text=True)  # fmt: skip
    assert finished.returncode == 2 and finished.stdout == ""
    assert finished.stderr.count("\n") == 1 and finished.stderr.startswith(
        f"{name} has another name"
    )
    for new in NEW_NAMES[name]:
        assert new in finished.stderr and (REPOSITORY / new).is_file()


@pytest.mark.parametrize("page", PAGES)
def test_the_page_lists_every_name(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for name, new in NEW_NAMES.items():
        assert Path(name).name in text, name
        assert all(Path(each).name in text for each in new)
