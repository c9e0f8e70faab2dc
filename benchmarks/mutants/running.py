"""Runs one mutant in a process of its own, so that a hang or a crash is one row."""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.apart import Broken, run_apart
from benchmarks.mutants.scoring import Row, score
from benchmarks.mutants.subjects import SUBJECTS
from benchmarks.mutants.truth import Arrays, collect_lines, differ, work_out
from reprod_align import align

from benchmarks.mutants.operators import Mutation, mutate

PATIENCE = 120  # seconds for a mutant


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

    numbers, lines = run_apart(look, PATIENCE)
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
        row = run_apart(lambda: _judge(bench, mutation, row), PATIENCE)
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
