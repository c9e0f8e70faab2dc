"""What is ready for the day of a release: the workflow, its notes, and the hook for pre-commit."""

import re
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY
from tools import absolute_links, changelog
from tools.lock import list_newer

import pytest
import yaml

PROJECT = '[project]\nname = "x"\nversion = "1.2.0"\n'
CHANGES = "# Changelog\n\n## 1.2.0\n\n- New.\n\n### Part\n\n- More.\n\n## 1.1.0\n\n- Old.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    return tmp_path


def test_the_notes_of_a_release(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert changelog.main(["v1.2.0"], root) == 0
    assert capsys.readouterr().out == "- New.\n\n### Part\n\n- More.\n"


def test_a_tag_of_another_version_or_without_notes_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert changelog.main(["v1.1.0"], root) == 2 and changelog.main([], root) == 2
    (root / "CHANGELOG.md").write_text(CHANGES.replace("## 1.2.0", "## 1.2.0 (unreleased)"))
    assert changelog.main(["v1.2.0"], root) == 2
    said = capsys.readouterr()
    assert said.out == "" and "the release is 1.1.0" in said.err and "(unreleased)" in said.err


def test_the_page_that_a_package_index_shows_has_no_relative_link(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = "https://github.com/owner/name/blob/abc"
    made = absolute_links.make_absolute("[a](b.md#c) [d](#e) [f](https://g.h) ![i](j.svg)", root)
    assert made == f"[a]({root}/b.md#c) [d](#e) [f](https://g.h) ![i]({root}/j.svg)"
    page = REPOSITORY / "README.md"
    assert absolute_links.main([str(page), root]) == 0 and absolute_links.main([]) == 2
    shown = capsys.readouterr().out
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert len(links) > 40 and all(one.startswith(("https://", "http://", "#")) for one in links)
    inside = [one.removeprefix(f"{root}/") for one in links if one.startswith(root)]
    assert len(inside) > 30 and all((REPOSITORY / one.partition("#")[0]).exists() for one in inside)


@pytest.fixture(scope="module")
def jobs() -> Any:
    path = REPOSITORY / ".github" / "workflows" / "release.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def test_the_workflow_publishes_what_was_tried_and_holds_no_secret(jobs: Any) -> None:
    assert list(jobs) == ["build", "try", "publish"]
    assert [job.get("needs") for job in jobs.values()] == [None, "build", "try"]
    publish = jobs["publish"]
    assert publish["permissions"]["id-token"] == "write" and "tag" in publish["if"]
    text = (REPOSITORY / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text and "password" not in text
    for job in jobs.values():
        for step in job["steps"]:  # what a tag is called never becomes part of a script
            assert "${{" not in step.get("run", "")


def test_the_hook_judges_each_file_and_fails_with_one(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    command = tmp_path / "bin" / "reprod-align"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\necho "$@"\ncase "$2" in *bad*) exit 1;; esac\n')
    command.chmod(0o755)

    def judge(*names: str) -> "subprocess.CompletedProcess[str]":
        words = ["bash", "-c", f'{hook["entry"]} "$@"', "hook", *names]
        env = {"PATH": f"{command.parent}:/usr/bin:/bin"}
        return subprocess.run(words, env=env, capture_output=True, text=True)

    fine = judge("pair one.py", "pair_two.py")
    assert (fine.returncode, fine.stdout) == (0, "pair pair one.py\npair pair_two.py\n")
    bad = judge("pair_bad.py", "pair_two.py")
    assert bad.returncode != 0 and "pair_two.py" in bad.stdout


def test_a_version_that_the_oldest_python_lacks_is_not_locked() -> None:
    asked = {"old": ">=3.9", "any": None, "new": ">=3.11.5", "without": "<3.11"}
    packages = [{"name": name, "version": "1", "requires_python": it} for name, it in asked.items()]
    assert list_newer(packages) == ["new==1 (Python >=3.11.5)", "without==1 (Python <3.11)"]
