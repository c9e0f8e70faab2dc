"""Runs one mutant in a process of its own, so that a hang or a crash is one row."""

import os
import pickle
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.operators import Mutation, mutate
from benchmarks.mutants.scoring import Row, score
from benchmarks.mutants.subjects import SUBJECTS
from benchmarks.mutants.truth import Arrays, collect_lines, differ, work_out
from reprod_align import align

PATIENCE = 120  # seconds for a mutant
_PAUSE = 0.05


class Broken(Exception):
    """The process ended without an answer: it hung or crashed."""


@dataclass(frozen=True)
class Bench:
    """One port, its unmutated numbers and its mutations."""

    name: str
    source: str
    numbers: Arrays
    mutations: Sequence[Mutation]


def prepare(name: str, sample: int, seed: int) -> Bench:
    """Choose mutations of a port: `sample` of them, of as many kinds as there are; 0: all.

    They come in an order that `seed` decides; a mutant that changes nothing takes no place.
    """
    source = SUBJECTS[name].path.read_text(encoding="utf-8")

    def look() -> tuple[Arrays, frozenset[int]]:
        with _copied(name, source) as path:
            return work_out(SUBJECTS[name], path), collect_lines(SUBJECTS[name], path)

    numbers, lines = run_apart(look)
    return Bench(name, source, numbers, _shuffle(mutate(source, lines), seed))


def _shuffle(mutations: Sequence[Mutation], seed: int) -> list[Mutation]:
    """Return the mutations in turns, one of each kind, each kind in an order of its own."""
    kinds: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        kinds.setdefault(mutation.kind, []).append(mutation)
    source = random.Random(seed)
    order: list[tuple[int, str, Mutation]] = []
    for kind, found in sorted(kinds.items()):
        source.shuffle(found)
        order += [(at, kind, mutation) for at, mutation in enumerate(found)]
    return [mutation for *_, mutation in sorted(order, key=lambda one: one[:2])]


def judge_mutants(bench: Bench, sample: int) -> Iterator[Row]:
    """Yield a row for each mutant until `sample` of them count (0: all)."""
    counted = 0
    for mutation in bench.mutations:
        row = judge_mutant(bench, mutation)
        counted += row.counts
        yield row
        if counted == sample:
            return


def judge_mutant(bench: Bench, mutation: Mutation) -> Row:
    """Run one mutant directly and, if it computes other numbers, through `align`."""
    row = Row(bench.name, mutation.kind, mutation.line, mutation.before, mutation.after)
    start = time.perf_counter()
    try:
        row = run_apart(lambda: _judge(bench, mutation, row))
    except Broken as error:
        row.outcome = str(error)
    row.seconds = time.perf_counter() - start
    return row


def _judge(bench: Bench, mutation: Mutation, row: Row) -> Row:
    subject = SUBJECTS[bench.name]
    with _copied(bench.name, mutation.apply(bench.source)) as path:
        try:
            changed = differ(bench.numbers, work_out(subject, path))
        except Exception as error:
            row.outcome, row.message = "raises", f"{type(error).__name__}: {error}"[:200]
            return row
        if changed:
            module = subject.load(path)
            first, second, inputs = subject.make(module)
            score(row, mutation, align(first, second, inputs), module, second)
    return row


class _copied:
    """A folder that holds the source under its own name, and is removed afterwards."""

    def __init__(self, name: str, source: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mutant-")
        self._path = Path(self._folder.name) / SUBJECTS[name].path.name
        self._path.write_text(source, encoding="utf-8")

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def run_apart(work: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Return what `work` returns in a copy of this process; Broken if it hangs, crashes or raises."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if not child:
            _answer(work, answer)
        if not _ended(child, patience):
            raise Broken("hung")
        answer.seek(0)
        held = answer.read()
    if not held:
        raise Broken("crashed")
    found = pickle.loads(held)
    if isinstance(found, BaseException):
        raise found
    return found


def _answer(work: Callable[[], Any], answer: Any) -> None:
    """Work in the child, write the result and end."""
    warnings.simplefilter("ignore")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        found = work()
    except BaseException as error:
        found = Broken(f"crashed: {type(error).__name__}: {error}"[:300])
    try:
        answer.write(pickle.dumps(found))
        answer.flush()
    finally:
        os._exit(0)


def _ended(child: int, patience: float) -> bool:
    """Wait for the child; end it if it takes too long, and tell whether it ended by itself."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(_PAUSE)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
