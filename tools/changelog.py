"""Prints what CHANGELOG.md says of one version: the notes of its release.

python tools/changelog.py 0.1.0

exit 0 printed, 2 it has no such section, or pyproject.toml names another version
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find_section(text: str, version: str) -> str:
    """Return the lines below the heading of a version, "" if there is none or it is not released yet."""
    found = re.search(rf"^## {re.escape(version)}\s*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1].strip() if found else ""


def main(words: list[str], root: Path = ROOT) -> int:
    """Print the section of the version that the first word names, with or without a v before it."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    version = words[0].removeprefix("v")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if project["version"] != version:
        said = f"pyproject.toml has version {project['version']}, the release is {version}"
        print(f"changelog: {said}", file=sys.stderr)
        return 2
    section = find_section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if not section:
        said = f"CHANGELOG.md has no section '## {version}': name it so, without '(unreleased)'"
        print(f"changelog: {said}", file=sys.stderr)
        return 2
    print(section)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
