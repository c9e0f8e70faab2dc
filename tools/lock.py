"""Refresh constraints.txt: resolve the pinned requirements anew and write down every version chosen.

usage   make lock
"""

import json
import subprocess
import sys
from pathlib import Path

from reprod_align.base.files import whole_file

REPOSITORY = Path(__file__).resolve().parent.parent
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt")
HEADER = "# Every direct and indirect dependency, locked. Written by `make lock`; do not edit.\n"


def main() -> None:
    """Ask pip what it would install on an empty machine, and save the versions."""
    files = [word for name in REQUIREMENTS for word in ("-r", str(REPOSITORY / name))]
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", *options, *files]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = (package["metadata"] for package in report["install"])
    # "+cpu" and the like tell builds apart, not releases: a constraint on one would refuse the others
    pins = {p["name"].lower(): p["version"].split("+")[0] for p in packages}
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    with whole_file(REPOSITORY / "constraints.txt") as handle:
        handle.write((HEADER + "".join(lines)).encode())
    print(f"wrote constraints.txt: {len(lines)} packages")


if __name__ == "__main__":
    main()
