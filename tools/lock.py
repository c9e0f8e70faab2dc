"""Refresh constraints.txt: resolve the pinned requirements anew and write down every version chosen.

usage   make lock

pip resolves for the Python that runs it; a version that OLDEST cannot install is refused, and named.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reprod_align.base.files import whole_file

from packaging.specifiers import SpecifierSet

REPOSITORY = Path(__file__).resolve().parent.parent
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt")
OLDEST = "3.11.2"  # Debian 12's Python
HEADER = "# Every direct and indirect dependency, locked. Written by `make lock`; do not edit.\n"


def main() -> None:
    """Ask pip what it would install on an empty machine, and save the versions."""
    files = [word for name in REQUIREMENTS for word in ("-r", str(REPOSITORY / name))]
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", *options, *files]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = [package["metadata"] for package in report["install"]]
    if newer := list_newer(packages):
        raise SystemExit(
            f"Python {OLDEST} cannot install {', '.join(newer)}: "
            f"pin an older version in {' or '.join(REQUIREMENTS)}"
        )
    # "+cpu" and the like tell builds apart, not releases: a constraint on one would refuse the others
    pins = {p["name"].lower(): p["version"].split("+")[0] for p in packages}
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    with whole_file(REPOSITORY / "constraints.txt") as handle:
        handle.write((HEADER + "".join(lines)).encode())
    print(f"wrote constraints.txt: {len(lines)} packages")


def list_newer(packages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the packages, of a report's metadata, that ask for a newer Python than OLDEST."""
    return [
        f"{one['name']}=={one['version']} (Python {one['requires_python']})"
        for one in packages
        if OLDEST not in SpecifierSet(one.get("requires_python") or "")
    ]


if __name__ == "__main__":
    main()
