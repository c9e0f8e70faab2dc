"""Draws mutants, one of each kind in turn, and keeps those that compute other numbers."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path

from benchmarks.apart import Broken, run_apart
from benchmarks.mutants.frozen import Entry, Mutant
from benchmarks.mutants.kinds import KINDS, Mutation, When, mutate, parses
from benchmarks.mutants.places import find_places, find_running
from benchmarks.mutants.source import Source, Splice, covering
from benchmarks.mutants.subjects import SUBJECTS
from benchmarks.mutants.truth import Arrays, call, collect_lines, differ, work_out

_PATIENCE = 60  # seconds for a mutant's own numbers
_TRIES = 10  # mutations of a kind, until one counts; the kind's turn passes after them
_PASSES = 5


@dataclass(frozen=True)
class Bench:
    """One port, its unmutated numbers and the lines that run."""

    name: str
    source: Source
    numbers: Arrays
    lines: dict[When, frozenset[int]]


@cache
def prepare(name: str) -> Bench:
    """Run a port as it is."""
    source = Source(SUBJECTS[name].path.read_bytes().decode())  # line ends stay as they are

    def look() -> tuple[Arrays, dict[When, frozenset[int]]]:
        with copied(name, source.text) as path:
            return work_out(SUBJECTS[name], path), collect_lines(SUBJECTS[name], path)

    numbers, lines = run_apart(look, 2 * _PATIENCE)
    return Bench(name, source, numbers, lines)


@contextmanager
def copied(name: str, text: str) -> Iterator[Path]:
    """Write a source under its own name to a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        path = Path(folder) / SUBJECTS[name].path.name
        path.write_bytes(text.encode())
        yield path


def draw(
    names: Sequence[str], kinds: Sequence[str], count: int, seed: int
) -> Iterator[tuple[Mutant, str]]:
    """Yield mutants and their originals: one of each kind in turn, from every file in turn.

    A kind of which the files have no more, or none within some tries, passes its turn; after
    some turns that all kinds passed, there are no more.
    """
    left = {kind: _shuffle(names, kind, seed) for kind in kinds}
    made = passed = 0
    while made < count and passed < _PASSES:
        before = made
        for kind in kinds:
            found = next(_changing(left[kind]), None)
            if found is not None and made < count:
                yield describe(*found, made)
                made += 1
        passed = 0 if made > before else passed + 1


def restore(entries: Sequence[Entry]) -> Iterator[tuple[Mutant, str]]:
    """Yield the mutants of a list that was frozen, whatever is drawn today.

    Raises ValueError if a source of an installed package is not the one that was mutated.
    """
    for number, entry in enumerate(entries):
        bench = prepare(entry["subject"])
        found = _find(bench, entry)
        places = find_change(bench, found) if found else None
        if found is None or places is None:
            raise ValueError(f"{entry['subject']}: another version of its source is installed")
        yield describe(bench, found, places, number)


def _find(bench: Bench, entry: Entry) -> Mutation | None:
    """Return the mutation that an entry stands for; None if the source reads otherwise."""
    splice = Splice(entry["start"], entry["end"], entry["after"])
    line = bench.source.line(splice.start)
    made = mutate(entry["kind"], bench.source, frozenset({line}))
    same = (it for it in made if (it.splice, it.before) == (splice, entry["before"]))
    return next(same, None)


def _shuffle(names: Sequence[str], kind: str, seed: int) -> Iterator[tuple[Bench, Mutation]]:
    """Yield the mutations of a kind, one of each file in turn, each file in an order of its own."""
    order = sorted(names)
    random.Random(f"{seed} {kind}").shuffle(order)
    held = [_of_file(name, kind, seed) for name in order]
    for turn in zip_longest(*held):
        yield from (found for found in turn if found is not None)


def _of_file(name: str, kind: str, seed: int) -> Iterator[tuple[Bench, Mutation]]:
    bench = prepare(name)
    found = mutate(kind, bench.source, bench.lines[KINDS[kind].when])
    random.Random(f"{seed} {kind} {name}").shuffle(found)
    yield from ((bench, mutation) for mutation in found)


def _changing(
    mutations: Iterator[tuple[Bench, Mutation]],
) -> Iterator[tuple[Bench, Mutation, list[str]]]:
    """Yield those of the next few mutations that compute other numbers, with the modules concerned."""
    for (bench, mutation), _ in zip(mutations, range(_TRIES), strict=False):
        places = find_change(bench, mutation)
        if places is not None:
            yield bench, mutation, places


def find_change(bench: Bench, mutation: Mutation) -> list[str] | None:
    """Return the modules that hold the line if the mutant computes other numbers; None otherwise."""
    text = mutation.splice.apply(bench.source.text)
    if not parses(text):
        return None

    def look() -> list[str] | None:
        subject = SUBJECTS[bench.name]
        with copied(bench.name, text) as path:
            try:
                changed = differ(bench.numbers, work_out(subject, path))
            except Exception:  # whatever the mutated code raises
                return None
            module = subject.load(path)
            _, model, inputs = subject.make(module)
            places = {*find_places(mutation.line, module, model)}
            if changed and not places:
                calls = partial(call, model, inputs, False, "float32")
                places = {*find_running(mutation.line, path, model, calls)}
            return sorted(places) if changed else None

    try:
        found: list[str] | None = run_apart(look, _PATIENCE)
        return found
    except Broken:
        return None


def describe(
    bench: Bench, mutation: Mutation, places: Sequence[str], number: int
) -> tuple[Mutant, str]:
    """Return a mutant with all that a judge needs, and the original source."""
    splice = mutation.splice
    mutated = Source(splice.apply(bench.source.text))
    end = splice.start + len(splice.after.encode())
    name = f"{number:04d}-{mutation.kind.replace(' ', '-')}-{bench.name}"
    mutant = Mutant(
        name, bench.name, SUBJECTS[bench.name].path.name, mutation.kind, mutation.line,
        mutation.statement, splice.start, splice.end, mutation.before, splice.after, mutation.cause,
        tuple(covering(mutated, splice.start, end)), tuple(places),
    )  # fmt: skip
    return mutant, bench.source.text
