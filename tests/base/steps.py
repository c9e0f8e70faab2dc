"""Tasks for tests of `base.tasks`: they note their steps, and end workers where they are told to."""

import os
import signal
import threading
from pathlib import Path

from reprod_align.base.tasks import ResultFolder, digest
from reprod_align.errors import ReprodError


def square(folder: Path, task: str) -> int:
    """Return the square of the number that a task begins with; each is judged once and kept.

    "3 dies" ends its process before it has judged, "3 ends its worker" the worker, "3 dies after" its process
    when the result is kept, each the first time alone; "3 dies always" each time. "3 raises" raises.
    """
    number, _, fate = task.partition(" ")
    note(folder, f"begins {number}")
    note(folder, f"process {os.getpid()}")
    results, name = ResultFolder(folder / "results"), digest(number)
    if fate == "raises":
        raise ReprodError(f"{number} is not judged")
    if fate == "dies always" or (fate == "dies" and is_first(folder, number)):
        os.kill(os.getpid(), signal.SIGKILL)
    if fate == "ends its worker" and is_first(folder, number):
        os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait()  # for what ends with it: this process
    found = results.find(name)
    if found is None:
        note(folder, f"judges {number}")
        found = int(number) ** 2
        results.keep(name, found)
    if fate == "dies after" and is_first(folder, number):
        os.kill(os.getpid(), signal.SIGKILL)
    return int(found)


def end_scheduler(scheduler: int, task: str) -> str:
    """End the process of the scheduler, and never return."""
    os.kill(scheduler, signal.SIGKILL)
    threading.Event().wait()
    return task


def note(folder: Path, line: str) -> None:
    """Add a line to the notes of all workers."""
    with (folder / "notes").open("a") as notes:
        notes.write(f"{line}\n")


def count_notes(folder: Path, line: str) -> int:
    """Return how often a line was noted."""
    return (folder / "notes").read_text().splitlines().count(line)


def is_first(folder: Path, name: str) -> bool:
    """Tell whether nobody has asked for this name before."""
    try:
        (folder / f"{name} came").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
