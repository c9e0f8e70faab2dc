"""Runs every script of the plain steps in a process of its own, in the guide's order.

python -m benchmarks.plain HOME DATA     HOME: where `make align` has put weights and fake data
"""

import subprocess
import sys

STEPS = (("forward", ("forward",)), ("metric", ("metric",)), ("loss", ("loss",)),
         ("bp_align", ("lr", "bp_align")), ("train_align", ("train_align",)))  # fmt: skip


def main(home: str, data: str) -> None:
    """Run both sides and the check of each step."""
    for _, names in STEPS:
        for name in names:
            for script in ("pt", "pd", "check"):
                words = [sys.executable, "-m", f"benchmarks.plain.{script}", name, home, data]
                subprocess.run(words, check=True, capture_output=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
