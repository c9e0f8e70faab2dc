"""Tries things in copies of this process: a kernel that crashes, or a loop without an end, is an answer.

An edit can give a kernel sizes that end the process, or ask for all memory there is.
"""

import faulthandler
import gc
import math
import os
import pickle
import resource
import select
import signal
import struct
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from reprod_align.model.store import read_free

_WORKERS = 2  # at once; each takes one thread
_HEADER = struct.Struct("<qq")  # the number of a task, and the bytes of its answer
_END = -1
_LEAST = 2**30  # bytes for a copy, if less is said to be free: it could tell nothing otherwise
_IDLE = 20  # times the patience: what a copy may take by the clock
_LOOK = 1.0  # seconds between two looks at a copy
_ASLEEP = 15
"""looks in a row at which a copy sleeps: a kernel that waits for threads which were not copied never wakes"""
Task = Any
Work = Callable[[Task], Any]

FAILED = None
"""the answer of a task that ended its process, or took too long"""


@dataclass
class _Worker:
    """A copy of this process that works on every `step`-th task from `first` on."""

    first: int
    step: int
    process: int = 0
    pipe: BinaryIO | None = None
    next: int = 0


def try_in_order(
    tasks: Callable[[], Iterable[Task]],
    work: Work,
    prepare: Callable[[], None],
    patience: float,
    workers: int = 0,
) -> Generator[tuple[int, Any], None, None]:
    """Yield the number of each task and its answer, in order; FAILED if it ended its process twice.

    tasks: gives the same tasks whenever it is called. prepare: called in each copy first. patience:
    seconds of a processor for one task, so that a busy machine ends none; where nothing is computed, as
    in a deadlock, many times as long. A copy may also end for what the task has no part in, such as a
    lock that another thread held when it was made: unless its time was up, another copy takes the task
    once more. Where processes can't be copied, the tasks run in this one.
    Raises RuntimeError if `tasks` raises.
    """
    if not hasattr(os, "fork"):
        yield from ((number, work(task)) for number, task in enumerate(tasks()))
        return
    count = workers or min(_WORKERS, os.cpu_count() or 1)
    crew = [_Worker(first, count) for first in range(count)]
    try:
        yield from _collect(crew, tasks, work, prepare, patience)
    finally:
        for worker in crew:
            _stop(worker)


def _collect(
    crew: list[_Worker],
    tasks: Callable[[], Iterable[Task]],
    work: Work,
    prepare: Callable[[], None],
    patience: float,
) -> Iterator[tuple[int, Any]]:
    known: dict[int, Any] = {}
    number, ends, retried = 0, set[int](), set[int]()
    for worker in crew:
        worker.next = worker.first
        _start(worker, tasks, work, prepare, patience)
    while number not in ends:
        if number in known:
            yield number, known.pop(number)
            number += 1
            continue
        worker = crew[number % len(crew)]
        answer = _read(worker, _IDLE * patience)
        if answer is None:
            if _stop(worker) == signal.SIGXCPU or worker.next in retried:
                known[worker.next] = FAILED
                worker.next += worker.step
            else:
                retried.add(worker.next)
            _start(worker, tasks, work, prepare, patience)
        elif answer[0] == _END:
            if answer[1] is not None:
                raise RuntimeError(f"listing what to try: {answer[1]}")
            ends.add(worker.next)
        else:
            known[answer[0]] = answer[1]
            worker.next = answer[0] + worker.step


def _start(
    worker: _Worker,
    tasks: Callable[[], Iterable[Task]],
    work: Work,
    prepare: Callable[[], None],
    patience: float,
) -> None:
    """Copy this process; the copy works from the worker's next task on."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        worker.process, worker.pipe = child, os.fdopen(reading, "rb", buffering=0)
        return
    try:
        os.close(reading)
        gc.freeze()  # a copy finalizes nothing of this process: the threads that this may ask are not there
        _silence()
        _limit_memory(worker.step)
        prepare()
        with os.fdopen(writing, "wb") as out:
            for number, task in enumerate(_list_all(tasks, out)):
                if number >= worker.next and number % worker.step == worker.first:
                    _limit_time(patience)
                    _write(out, number, pickle.dumps(work(task)))
            _write(out, _END, pickle.dumps(None))
    finally:
        os._exit(0)


def _list_all(tasks: Callable[[], Iterable[Task]], out: BinaryIO) -> Iterator[Task]:
    """Yield the tasks; what listing them raises, which no other copy would get past, is told."""
    try:
        yield from tasks()
    except Exception as error:
        _write(out, _END, pickle.dumps(f"{type(error).__name__}: {error}"))
        raise


def _write(out: BinaryIO, number: int, content: bytes) -> None:
    out.write(_HEADER.pack(number, len(content)) + content)
    out.flush()


def _silence() -> None:
    faulthandler.disable()  # it would tell of crashes that are answers
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def _limit_memory(shares: int) -> None:
    """Let a copy take its share of what is free, so that an edit that asks for more fails alone."""
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + max(_LEAST, read_free() // shares)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _limit_time(patience: float) -> None:
    """Let a copy end when its next task has taken so many seconds of a processor."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = math.ceil(time.process_time() + patience)
    resource.setrlimit(resource.RLIMIT_CPU, (limit if most < 0 else min(limit, most), most))


def _read(worker: _Worker, patience: float) -> tuple[int, Any] | None:
    """Return a worker's next answer and its number; None if it ended or takes too long."""
    assert worker.pipe is not None
    end, asleep = time.monotonic() + patience, 0
    while not select.select([worker.pipe], [], [], _LOOK)[0]:
        asleep = asleep + 1 if _sleeps(worker.process) else 0
        if asleep >= _ASLEEP or time.monotonic() > end:
            return None
    header = _take(worker.pipe, _HEADER.size)
    if len(header) < _HEADER.size:
        return None
    number, size = _HEADER.unpack(header)
    content = _take(worker.pipe, size)
    return (number, pickle.loads(content)) if len(content) == size else None


def _sleeps(process: int) -> bool:
    """Tell whether no thread of a process computes or waits for a processor; False where nothing tells."""
    try:
        stats = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/stat")]
    except OSError:
        return False
    return bool(stats) and all(stat.rpartition(") ")[2][:1] == "S" for stat in stats)


def _take(pipe: BinaryIO, size: int) -> bytes:
    """Return so many bytes of a pipe; fewer where it ends."""
    content = b""
    while len(content) < size:
        part = pipe.read(size - len(content))
        if not part:
            break
        content += part
    return content


def _stop(worker: _Worker) -> int:
    """End a copy if it still runs; return the signal that ended it, 0 if none did."""
    if worker.pipe is None:
        return 0
    worker.pipe.close()
    worker.pipe = None
    with suppress(ProcessLookupError):
        os.kill(worker.process, signal.SIGKILL)
    try:
        _, status = os.waitpid(worker.process, 0)
    except ChildProcessError:
        return 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
