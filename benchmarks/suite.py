"""Runs `align` over the whole suite of planted bugs and correct pairs, and counts.

    python -m benchmarks.suite [--float32] [FAMILY ...]     prints what was missed, misnamed or flagged

--float32: with ports that run in float32 alone, as where Paddle lacks a kernel.
exit 0 if every bug is caught, at least 95% are named first, and no correct pair is flagged.
"""

import argparse
import sys
import time
import warnings
from collections import Counter

import pipeline  # noqa: F401
from tests.pairs.families import CASES, judged, run_in_float32

import torch
from tqdm import tqdm


def read_arguments() -> argparse.Namespace:
    """Return the options and the families; a family that the suite does not have ends the program."""
    families = sorted({name.partition("/")[0] for name in CASES})
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--float32", action="store_true", help="ports run in float32 alone")
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help=f"of {', '.join(families)}; default: all"
    )
    given = parser.parse_args()
    unknown = sorted(set(given.families) - set(families))
    if unknown:
        parser.error(f"unknown family: {', '.join(unknown)}; known: {', '.join(families)}")
    return given


def main() -> int:
    """Judge every case; print the exceptions and a table."""
    given = read_arguments()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    chosen = {
        name: case
        for name, case in CASES.items()
        if not given.families or name.partition("/")[0] in given.families
    }
    for name, case in tqdm(chosen.items(), disable=None):
        outcome = judged(run_in_float32(case) if given.float32 else case)
        kind = "bug" if case.culprits else "correct"
        verdict = "passed" if outcome.passed else "named" if outcome.named else "unnamed"
        counts[kind, verdict] += 1
        if (kind, verdict) not in (("bug", "named"), ("correct", "passed")):
            tqdm.write(f"{name}: {kind}, {verdict}")
    bugs = sum(count for (kind, _), count in counts.items() if kind == "bug")
    correct = sum(count for (kind, _), count in counts.items() if kind == "correct")
    named, missed = counts["bug", "named"], counts["bug", "passed"]
    flagged = correct - counts["correct", "passed"]
    print(f"{bugs} bugs: {bugs - missed} caught, {named} named by the first finding")
    print(f"{correct} correct pairs: {flagged} flagged")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(missed > 0 or flagged > 0 or named < 0.95 * bugs)


if __name__ == "__main__":
    sys.exit(main())
