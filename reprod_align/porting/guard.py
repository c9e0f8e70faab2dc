"""A port in a process of its own: what ends that process is a problem of the draft, and the port goes on."""

import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from reprod_align.porting.problem import Problem

VARIABLE: Final = "REPROD_ALIGN_PORT_GUARD"
"""the folder in which a guarded process notes what it attempts"""
_MOST: Final = 5  # restarts
_FAULTS: Final = {
    getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGBUS", "SIGILL")
    if hasattr(signal, name)
}  # fmt: skip
_open: list[Any] = []  # the trace's file, as long as the process lives


def is_guarded() -> bool:
    """Tell whether this process is one that `run_guarded` started."""
    return VARIABLE in os.environ


def run_guarded(words: Sequence[str]) -> int:
    """Run a command that ports, again if a fault ends it while it attempts a draft; return its exit code."""
    with TemporaryDirectory() as folder:
        for _ in range(_MOST):
            done = subprocess.run(words, env={**os.environ, VARIABLE: folder})
            if -done.returncode not in _FAULTS or not _note_fault(Path(folder), -done.returncode):
                break
        return done.returncode


def note_attempt(text: str, file: str) -> Problem | None:
    """Note that a draft is attempted next; return its problem if that ended a process before.

    file: the draft's name, for its line in the trace.
    """
    if not is_guarded():
        return None
    folder = Path(os.environ[VARIABLE])
    digest = sha256(text.encode()).hexdigest()
    ended = folder / f"{digest}.json"
    if ended.is_file():
        found = json.loads(ended.read_text(encoding="utf-8"))
        line = found["line"]
        code = text.splitlines()[line - 1].strip() if line else ""
        return Problem("run", f"the process ended with {found['signal']}", line, code)
    if paddle := sys.modules.get("paddle"):
        paddle.disable_signal_handler()  # it would hide the Python lines
    (folder / "attempt.json").write_text(json.dumps([digest, file]), encoding="utf-8")
    _open[:] = [(folder / "trace.txt").open("w", encoding="utf-8")]
    faulthandler.enable(_open[0])
    return None


def _note_fault(folder: Path, number: int) -> bool:
    """Keep which draft ended the process, and its line; tell whether it was one that is not known yet."""
    attempt, trace = folder / "attempt.json", folder / "trace.txt"
    if not attempt.is_file():
        return False
    digest, file = json.loads(attempt.read_text(encoding="utf-8"))
    text = trace.read_text(encoding="utf-8", errors="replace") if trace.is_file() else ""
    lines = re.findall(rf'{re.escape(file)}", line (\d+)', text)
    ended = folder / f"{digest}.json"
    if ended.is_file():
        return False
    found = {"signal": signal.Signals(number).name, "line": int(lines[0]) if lines else None}
    ended.write_text(json.dumps(found), encoding="utf-8")
    return True
