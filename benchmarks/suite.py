"""Runs `align` over the whole suite of planted bugs and correct pairs, and counts.

    python -m benchmarks.suite [--float32] [FAMILY ...]     prints what was missed, misnamed or flagged

--float32: with ports that run in float32 alone, as where Paddle lacks a kernel.
exit 0 if every bug is caught, at least 95% are named first, and no correct pair is flagged.
"""

import sys
import time
import warnings
from collections import Counter

import pipeline  # noqa: F401
from tests.pairs.families import CASES, judged, run_in_float32

import torch
from tqdm import tqdm


def main(words: list[str]) -> int:
    """Judge every case; print the exceptions and a table."""
    narrow, families = "--float32" in words, [word for word in words if word != "--float32"]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    chosen = {n: c for n, c in CASES.items() if not families or n.partition("/")[0] in families}
    for name, case in tqdm(chosen.items(), disable=None):
        outcome = judged(run_in_float32(case) if narrow else case)
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
    sys.exit(main(sys.argv[1:]))
