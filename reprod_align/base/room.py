"""The room of a worker: a process of its own, in whose main thread one command's tasks run.

dask runs tasks in threads, where Paddle's copies of a process can't compute, and for as long as a worker
lives, while the files of models change. So each command gets a fresh process, which ends with its worker;
where it ends by itself, the worker ends too, and dask runs the task in another.
"""

import hashlib
import os
import pickle
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from reprod_align.base import find_version
from reprod_align.base.console import end_with_parent, quieten, without_progress, without_warnings
from reprod_align.errors import ReprodError, describe_error

_PACKAGES: Final = ("numpy", "torch", "paddlepaddle", "paddlepaddle-gpu")


def digest(*parts: str | bytes) -> str:
    """Return a digest of texts and bytes in order: what a result is called."""
    made = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()


@cache
def digest_judge() -> str:
    """Return a digest of what judges: this library's sources, and the versions of what computes."""
    root = Path(__file__).resolve().parents[1]
    sources = [(file.relative_to(root).as_posix(), file) for file in root.rglob("*.py")]
    texts = [part for name, file in sorted(sources) for part in (name, file.read_bytes())]
    return digest(*map(find_version, _PACKAGES), *texts)


# ---------------------------------------------------------------------- in a worker


class _Room:
    """A process that answers one task after the other."""

    def __init__(self, first: bytes | None = None) -> None:
        """Start it; first: a task whose answer nobody waits for."""
        self._pipe, theirs = Pipe()
        handle = theirs.fileno()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "reprod_align.base.room", str(handle)],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL, stdout=2, pass_fds=[handle],
            )  # fmt: skip
        self._waits = first is not None
        if first is not None:
            self._pipe.send_bytes(first)

    def ask(self, task: bytes) -> bytes:
        """Return the answer. Raises EOFError or OSError if the process ends."""
        self._pipe.send_bytes(task)
        if self._waits:
            self._pipe.recv_bytes()
            self._waits = False
        return self._pipe.recv_bytes()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()


_rooms: Final[dict[str, _Room]] = {}
"""this worker's room, by the command whose tasks run in it: one at most"""
_one_task: Final = threading.Lock()
"""a worker that was started with several threads asks its room from one at a time"""


def run_in_room(command: str, task: bytes) -> bytes:
    """Return the answer to a task: (whether it raised, its result or its error), pickled."""
    with _one_task:
        if command not in _rooms:
            start_room(command)
        room = _rooms[command]
        try:
            return room.ask(task)
        except (EOFError, OSError):
            if _rooms.get(command) is not room:
                raise  # the command ends, and waits for nothing
            os._exit(1)  # as a worker that was killed ends: the scheduler counts it


def start_room(command: str, first: bytes | None = None) -> None:
    """Start the room of a command in the place of any other; first: a task whose answer is dropped."""
    close_room()
    _rooms[command] = _Room(first)


def close_room(command: str = "") -> None:
    """End the room of a command; "": that of any."""
    for known in [one for one in _rooms if command in ("", one)]:
        _rooms.pop(known).close()


# ---------------------------------------------------------------------- in its room


def answer(task: bytes) -> bytes:
    """Run a task, (the command's digest of the judge, a function, its argument), pickled."""
    found: Any
    try:
        judge, work, given = pickle.loads(task)
        if digest_judge() != judge:
            raise ReprodError(
                f"the worker on {socket.gethostname()} has other sources of reprod_align, or other "
                "versions of the frameworks, than the command: give it the same"
            )
        with without_progress(), without_warnings():
            return pickle.dumps((False, work(given)))
    except (Exception, SystemExit) as error:
        found = error
    try:
        pickle.loads(made := pickle.dumps((True, found)))
    except Exception:  # a class that does not come back
        made = pickle.dumps((True, ReprodError(describe_error(found))))
    return made


def _serve(pipe: "Connection[Any, Any]") -> None:
    with suppress(EOFError, OSError):  # the worker has ended
        while True:
            pipe.send_bytes(answer(pipe.recv_bytes()))


if __name__ == "__main__":
    end_with_parent()
    quieten()
    _serve(Connection(int(sys.argv[1])))
