"""Reads the lines that a training script prints: "global step 10, epoch: 0, loss: 0.69, ..."."""

import re
from pathlib import Path
from typing import Final

from reprod_align.curves.log import CurveError, CurveLog, read_count
from reprod_align.curves.readers import Format, LogLine, read_rows

# No part of these gives letters back once it has taken them (`*+`): time is linear in the line.
_NUMBER: Final = r"[-+]?(?>\d++\.?\d*+(?:[eE][-+]?\d++)?+|\.\d++(?:[eE][-+]?\d++)?+|nan|inf)"
_STEP: Final = re.compile(r"\b(?:global[_ ]?)?(?:step|iter(?:ation)?)s?+[\s:=\[]*+(\d++)\b", re.I)
_EPOCH: Final = re.compile(r"\bepoch[\s:=\[]*+(\d++(?:\.\d++)?+)", re.I)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*+m")
_WORD: Final = r"[A-Za-z][\w/@.]*+"
# a name, at most two words, a colon or an equals sign, and a number that no word goes on from
_PAIR: Final = re.compile(
    rf"(?<![\w/@.])(?:(?![A-Za-z])[\w/@.])*+({_WORD}(?: {_WORD})?+)\s*+[:=]\s*+({_NUMBER})(?!\.*+[\w:/-])",
    re.I,
)
_LONGEST: Final = 1 << 20  # letters of a line; a progress bar without line ends stays below
_NOT_VALUES: Final = ("step", "iter", "epoch", "batch", "rank_id", "rank")


def read_text(path: Path) -> CurveLog | None:
    """Return the curves in lines that name a step and have `name: number` beside it.

    Other lines are passed over: a printed log has many. None if there is no such line.
    """
    rows: list[LogLine] = []
    with path.open(encoding="utf-8-sig", errors="replace") as handle:
        for line, text in enumerate(iter(lambda: handle.readline(_LONGEST), ""), 1):
            if len(text) == _LONGEST:
                raise CurveError(f"{path}, line {line} is longer than {_LONGEST:,} characters")
            row = _read_row(_COLOUR.sub("", text))
            if row:
                rows.append((line, row))
    if not rows:
        return None
    return read_rows(path, "printed lines", rows)


def _read_row(text: str) -> dict[str, object]:
    """Return the numbers of one line with its step; nothing if it lacks either."""
    step, epoch = _STEP.search(text), _EPOCH.search(text)
    if step is None:
        return {}
    values: dict[str, object] = {name: float(value) for name, value in _PAIR.findall(text)
                                 if not _counts(name)}  # fmt: skip
    if not values:
        return {}
    return values | {"step": read_count(step[1])} | ({"epoch": float(epoch[1])} if epoch else {})


def _counts(name: str) -> bool:
    word = name.lower().split()[-1].removeprefix("global_")
    return word.rstrip("s") in _NOT_VALUES or word == "progress_or_epoch"


PRINTED_LINES: Final = Format(
    "printed lines with a step",
    read_text,
    (
        "what PaddleNLP's trainer or examples print: "
        "`global step 10, epoch: 0, batch: 9, loss: 0.69, lr: ...`",
        "only lines with a step are read",
    ),
    (
        "PaddleNLP Trainer 或示例打印的内容：`global step 10, epoch: 0, batch: 9, loss: 0.69, lr: ...`",
        "只读带步数的行，其余略过",
    ),
    lambda head: bool(head.text.strip()),
    rank=3,
)
