"""Run every script in order, each in a process of its own, and say how each check ended.

exit    0 all aligned, 1 a check found a difference, 2 a script could not do its work
"""

import subprocess
import sys
import time

from informer_run import Run, start
from informer_settings import HERE, STEPS

from tabulate import tabulate

CHECKED = {0: "aligned", 1: "DIFFERENT"}


def main(run: Run) -> int:
    """Convert, then run both sides and the check of every step."""
    began, rows = time.monotonic(), []
    for script in ("pt_checkpoint.py", "torch2paddle.py"):
        if script_fails(script, run):
            return 2
    for step in STEPS:
        started = time.monotonic()
        if script_fails(f"pt_{step}.py", run) or script_fails(f"pd_{step}.py", run):
            return 2
        code = script_fails(f"check_{step}.py", run)
        rows.append(
            (step, CHECKED.get(code, "not comparable"), f"{time.monotonic() - started:.0f}")
        )
        if code == 2:
            return 2
    print(tabulate(rows, headers=("step", "verdict", "seconds")))
    print(f"{time.monotonic() - began:.0f} seconds in all")
    return int(any(verdict != CHECKED[0] for _, verdict, _ in rows))


def script_fails(script: str, run: Run) -> int:
    """Run a script with the same choices; return its exit code, 2 for any above 1."""
    print(f"$ {run.command(script)}", flush=True)
    finished = subprocess.run([sys.executable, str(HERE / script), *run.words], check=False)
    return finished.returncode if finished.returncode in (0, 1) else 2


if __name__ == "__main__":
    start(main, __doc__)
