"""Judges a repaired source: on the batch of the pair, and on batches that the repair never saw.

The truth is the port as it was before the mutation, which is faithful: a repaired port computes its
numbers, run directly, in both modes, forward and backward. `align` has no say here.
"""

import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from benchmarks.mutants.batches import vary
from benchmarks.mutants.drawing import copied
from benchmarks.mutants.frozen import Frozen
from benchmarks.mutants.subjects import SUBJECTS, Subject
from benchmarks.mutants.truth import Arrays, differ, work_out
from examples.zoo.pair import Batch
from reprod_align import fix

import numpy as np

Repair = Literal["repaired", "given batch only", "not repaired", "does not apply", "none"]
"""what became of a patch; "none": there is no patch"""


def judge_fix(frozen: Frozen) -> tuple[Repair, float]:
    """Ask `fix` for the patch of a mutant, and judge it; return also the seconds that `fix` took."""
    subject = SUBJECTS[frozen.mutant.subject]
    module = subject.load(frozen.path)
    first, _, inputs = subject.make(module)
    start = time.perf_counter()
    found = fix(first, lambda: subject.make(module)[1], inputs)
    took = time.perf_counter() - start
    return judge_patch(frozen, found.patch if found.passed else None), took


def judge_patch(frozen: Frozen, patch: str | None) -> Repair:
    """Apply a unified diff to the mutated source and judge what comes out."""
    if not patch:
        return "none"
    mended = apply_patch(frozen.path, patch)
    return "does not apply" if mended is None else judge_source(frozen, mended)


def apply_patch(path: Path, patch: str) -> str | None:
    """Return the source after `patch`, whatever folders the diff names; None if it does not apply."""
    with TemporaryDirectory() as folder:
        copy, file = Path(folder, path.name), Path(folder, "repair.patch")
        copy.write_bytes(path.read_bytes())
        file.write_bytes(patch.encode())
        words = ["patch", "--silent", "--force", "--fuzz=0", "--binary", str(copy), str(file)]
        done = subprocess.run(words, capture_output=True)
        return copy.read_bytes().decode() if done.returncode == 0 else None


def judge_source(frozen: Frozen, text: str) -> Repair:
    """Compare a repaired source with the original on every batch."""
    name = frozen.mutant.subject
    with copied(name, frozen.original) as first, copied(name, text) as second:
        given, *unseen = batches(SUBJECTS[name], first)
        if not _agree(SUBJECTS[name], first, second, given):
            return "not repaired"
        rest = [_agree(SUBJECTS[name], first, second, batch) for batch in unseen]
        return "repaired" if all(rest) else "given batch only"


def batches(subject: Subject, path: Path) -> list[Batch]:
    """Return the pair's batch and three unseen ones on which the port at `path` runs."""
    given = subject.make(subject.load(path))[2]
    found = [given]
    for seed in range(4):  # a port may take one length alone: then other values stand for it
        for batch in vary(given, seed):
            if len(found) < 4 and _run(subject, path, batch) is not None:
                found.append(batch)
    return found


def _agree(subject: Subject, original: Path, repaired: Path, batch: Batch) -> bool:
    """Tell whether both compute the same; a repaired port that raises does not."""
    expected, actual = _run(subject, original, batch), _run(subject, repaired, batch)
    return expected is not None and actual is not None and not differ(expected, actual)


def _run(subject: Subject, path: Path, batch: Batch) -> Arrays | None:
    try:
        numbers: dict[str, np.ndarray] = dict(work_out(subject, path, batch))
        return numbers
    except Exception:  # whatever the port raises
        return None
