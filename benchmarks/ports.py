"""Ports real PyTorch sources of installed packages by `reprod-align port`, beside PaConvert alone.

    python -m benchmarks.ports [NAME ...] [--alone] [--json FILE]

Needs the extra `port`, and the packages of benchmarks/requirements-ports.txt, installed with --no-deps into
an environment of their own on top of requirements.txt. Sources are read where they are installed. A row
of a package that is missing says so.

exit 0 if at least two thirds of the sources are faithful at the end
"""

import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.port_list import CASES
from reprod_align.base.text import table
from reprod_align.pair.remote import end_group

from tqdm import tqdm

_PATIENCE = 900  # seconds for one source
_HEADERS = (
    "source",
    "PaConvert alone",
    "imports",
    "builds",
    "at once",
    "in the end",
    "edits",
    "left",
)


def main() -> int:
    """Print the table; each source is ported in a process of its own."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows too")
    parser.add_argument("--alone", action="store_true", help="PaConvert alone beside it")
    options = parser.parse_args()
    names = options.names or list(CASES)
    rows = [port_apart(name, options.alone) for name in tqdm(names, disable=None)]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table([_HEADERS, *(cells(row) for row in rows)])))
    faithful = sum(row["passed"] for row in rows)
    print(f"{faithful} of {len(rows)} faithful at the end")
    return int(3 * faithful < 2 * len(rows))


def port_apart(name: str, alone: bool = False) -> dict[str, Any]:
    """Return the row of one source."""
    with TemporaryDirectory() as folder:
        out = Path(folder, "row.json")
        words = [
            sys.executable,
            "-m",
            "benchmarks.port_cases",
            name,
            str(out),
            *(["--alone"] if alone else []),
        ]
        with Path(folder, "stderr").open("w+", encoding="utf-8", errors="replace") as errors:
            process = subprocess.Popen(words, stdout=errors, stderr=errors, start_new_session=True)
            try:
                process.wait(_PATIENCE)
                errors.seek(0)
                said = (errors.read().strip().splitlines() or ["nothing on stderr"])[-1]
            except subprocess.TimeoutExpired:
                end_group(process.pid)
                process.wait()
                said = f"took longer than {_PATIENCE} s"
        if out.is_file():
            row: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
            return row
    return {"name": name, "passed": False, "error": said}


def cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row."""
    if "error" in row:
        return [row["name"], *[""] * 4, "not run", "", row["error"][:80]]
    marks = ["yes" if row[key] else "no" for key in ("imports", "builds")]
    left = row["left"][0][:80] if row["left"] else ""
    return [
        row["name"],
        row["alone"],
        *marks,
        row["at_once"],
        row["verdict"],
        str(row["edits"]),
        left,
    ]


if __name__ == "__main__":
    sys.exit(main())
