"""Which parts explain the gap: the sentence for each outcome, and strict JSON."""

import json
import math
from dataclasses import replace

from reprod_align.curves.report import PARTS, Explanation, Replay, Swapped

import pytest

ROWS = tuple(Swapped(part, 1e-3, 0.0) for part in PARTS)
BLAMED = (Swapped("optimizer", 1e-12, 1e-3), *ROWS[:4], ROWS[5])
FOUND = Explanation(
    curve="loss",
    step=7,
    logged=1e-3,
    restored=0,
    begin=4,
    last=8,
    replays=(Replay("PyTorch", 0.0), Replay("Paddle", None)),
    replayed=1e-3,
    weights_apart=0.0,
    whole=1e-3,
    floor=1e-11,
    rows=BLAMED,
    together=1e-12,
    findings=("optimizer: eps",),
    remarks=(),
)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "the optimizer explains it: with PyTorch's in its place 1.0e-12 of 1.0e-03 is left"),
        ({"together": 5e-4}, "the optimizer explains a part of it: "),
        ({"together": math.nan}, "the optimizer explains a part of it: "),
        ({"rows": ROWS}, "no part alone makes it, they do together"),
        (
            {"whole": 0.0, "replayed": 0.0},
            "no part explains it: replayed in float64, over steps 5 to 8",
        ),
        (
            {"whole": 0.0, "restored": 4},
            "it was made before: from PyTorch's state over steps 5 to 8",
        ),
        ({"whole": 0.0}, "the initial weights explain it: they differ by 0.0e+00"),
    ],
)
def test_the_sentence(changed: dict[str, object], words: str) -> None:
    assert replace(FOUND, **changed).sentence.startswith(words)


def test_a_gap_that_is_not_finite_comes_first() -> None:
    rows = (Swapped("data", 0.0, 1e-3), Swapped("loss", 0.0, math.nan))
    assert replace(FOUND, rows=rows).guilty == ("loss", "data")


def test_text_and_json() -> None:
    lines = FOUND.text().splitlines()
    assert lines[0] == "which part of a step makes loss differ at step 7?"
    assert lines[3].split() == ["optimizer", "1.0e-12", "1.0e-03", "<-", "makes", "it"]
    assert "Paddle's log has no loss of these steps to hold the replay against" in lines
    found = json.loads(json.dumps(replace(FOUND, logged=math.nan).to_json(), allow_nan=False))
    assert found["logged"] == "nan" and found["guilty"] == ["optimizer"]
