"""Tries the library with the frameworks of this environment, and writes docs/versions.md.

python tools/versions.py try      judge examples/pair_mlp.py, run tests/smoke.txt, and note what came of it
python tools/versions.py check    the same, and note nothing
python tools/versions.py write    put the notes into docs/versions.md and its Chinese twin
"""

import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "tests" / "smoke.txt"
NOTES = ROOT / "docs" / "results" / "versions.json"
PAGES = ROOT / "docs" / "versions.md", ROOT / "docs" / "versions_cn.md"
PACKAGES = ("paddlepaddle", "torch", "numpy")
BEGIN, END = "<!-- table: tools/versions.py -->", "<!-- end -->"
# what the faulty example must be told: the three mistakes that it makes
FOUND = ["layer-norm-epsilon", "own-code", "adam-l2"]


def judge(faulty: bool) -> tuple[int, list[str], str]:
    """Return the exit code of the example, the codes of its findings, and the last line of an error."""
    command = [sys.executable, "-W", "ignore", "-m", "reprod_align", "pair"]
    done = subprocess.run(
        [*command, "examples/pair_mlp.py", "--json"], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"FAULTY": "1" if faulty else ""},
    )  # fmt: skip
    if done.returncode == 2:
        return 2, [], done.stderr.strip().splitlines()[-1]
    return done.returncode, [one["code"] for one in json.loads(done.stdout)["findings"]], ""


def run_smoke() -> tuple[int, int]:
    """Return how many of the chosen tests passed, and how many there are. Prints what failed."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(
        [*command, "@tests/smoke.txt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], file=sys.stderr)
    passed = re.search(r"^(?:.*, )?(\d+) passed", done.stdout, re.M)
    return int(passed[1]) if passed else 0, len(SMOKE.read_text(encoding="utf-8").splitlines())


def list_missing() -> list[str]:
    """Return a line for each private name that these frameworks lack."""
    from reprod_align.backends.paddle.private import NAMES as OF_PADDLE
    from reprod_align.backends.torch.private import NAMES as OF_TORCH

    return OF_TORCH.list_missing() + OF_PADDLE.list_missing()


def make_row() -> dict[str, Any]:
    """Return what the frameworks of this environment are, and what came of the example."""
    row: dict[str, Any] = {name: version(name).partition("+")[0] for name in PACKAGES}
    row["python"] = platform.python_version()
    faithful, faulty = judge(False), judge(True)
    row["faithful"] = faithful[2] or ("faithful" if faithful[0] == 0 else ", ".join(faithful[1]))
    row["faulty"] = faulty[2] or ", ".join(faulty[1])
    passed, chosen = run_smoke()
    row["smoke"] = f"{passed} of {chosen}"
    row["missing"] = list_missing()
    judged = faithful[:2] == (0, []) and faulty[:2] == (1, FOUND)
    row["right"] = judged and passed == chosen and not row["missing"]
    return row


def keep(row: dict[str, Any]) -> None:
    """Put a row in the place of an earlier one of the same frameworks."""
    rows = [one for one in read() if name(one) != name(row)]
    rows = sorted([*rows, row], key=name)
    NOTES.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def read() -> list[dict[str, Any]]:
    """Return the rows that were noted."""
    return json.loads(NOTES.read_text(encoding="utf-8")) if NOTES.is_file() else []


def name(row: dict[str, Any]) -> list[list[int]]:
    """Return the versions of a row, as numbers: of the frameworks, of Python and of numpy before its last."""
    versions = [[int(part) for part in row[one].split(".")] for one in (*PACKAGES, "python")]
    paddle, torch, numpy, python = versions
    return [paddle, torch, python[:2], numpy[:2]]


def make_table() -> str:
    """Return the rows as a table of Markdown; its words are the same in both languages."""
    heads = ("paddlepaddle", "torch", "numpy", "Python", "pair_mlp.py", "FAULTY=1", "smoke")
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for row in read():
        cells = (
            *(row[one] for one in PACKAGES),
            row["python"],
            row["faithful"],
            row["faulty"],
            row["smoke"],
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def fill(page: str) -> str:
    """Return a page with the table of today in its place."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{make_table()}\n\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Do what the first argument says; 1 if a fault was missed or a faithful pair flagged."""
    if sys.argv[1:] == ["write"]:
        for page in PAGES:
            page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if sys.argv[1:] not in (["try"], ["check"]):
        print(__doc__)
        return 2
    row = make_row()
    if sys.argv[1] == "try":
        keep(row)
    print(json.dumps(row, indent=1))
    return 0 if row["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
