"""Reads JSON lines of a training loop, and the state of a Hugging Face or PaddleNLP Trainer."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from reprod_align.base.files import parse_json
from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.readers import Format, Head, LogLine, Runs, read_rows

STATE: Final = "trainer_state.json"


def read_json(path: Path) -> CurveLog:
    """Return the curves of JSON lines, of a list of objects, or of an object with a log_history.

    Raises CurveError, with the line's number, for a line that is not a JSON object; a last line
    that was cut off is left out, with a remark.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as handle:
        first = next((line for line in handle if line.strip()), "")
    try:
        is_row = isinstance(json.loads(first), dict) and "log_history" not in first
    except (ValueError, RecursionError):
        is_row = False
    return read_rows(path, "JSON lines", _read_lines(path)) if is_row else _read_document(path)


def _read_lines(path: Path) -> Iterator[LogLine]:
    """Yield each line's object, or what is wrong with it."""
    with path.open("rb") as handle:
        for line, text in enumerate(handle, 1):
            if not text.strip():
                continue
            try:
                value = parse_json(text.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:  # also text that is not UTF-8
                yield line, f"not JSON ({type(error).__name__}: {error})"[:160]
                continue
            wrong = f"expected an object, got a {type(value).__name__}"
            yield line, value if isinstance(value, dict) else wrong


def _read_document(path: Path) -> CurveLog:
    try:
        document = parse_json(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise CurveError(
            f"{path} is damaged at line {error.lineno}: {error.msg}; expected JSON lines, a list of "
            f"objects or a {STATE}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CurveError(f"{path} cannot be read as JSON: {error}") from error
    history = document.get("log_history") if isinstance(document, dict) else document
    if not isinstance(history, list) or not all(isinstance(row, dict) for row in history):
        raise CurveError(f"{path}: expected a log_history, a list of JSON objects")
    if not history:
        raise CurveError(f"{path}: its log_history is empty")
    kind = "a Trainer's log_history" if isinstance(document, dict) else "JSON"
    return read_rows(path, kind, enumerate(history, 1))


def _is_json(head: Head) -> bool:
    start = "".join(head.text.split())[:2]
    return start[:1] == "{" or start in ("[{", "[]")


def _find_state(folder: Path, files: Sequence[Path]) -> Runs:
    """Return a Trainer's own state in its output folder, else that of its latest checkpoint."""
    states = [path for path in files if path.name == STATE]
    return [[max(states, key=_read_checkpoint)]] if states else []


def _read_checkpoint(state: Path) -> tuple[bool, int]:
    number = state.parent.name.rpartition("-")[2]
    return "checkpoint-" not in state.parent.name, int(number) if number.isdecimal() else 0


JSON: Final = Format(
    "JSON lines",
    read_json,
    (
        'JSON lines: `{"step": 1, "epoch": 0, "loss": 0.69, "lr": 2e-05}`',
        "every numeric key is a curve, also in lines with other keys (evaluation)",
    ),
    (
        'JSON lines：`{"step": 1, "epoch": 0, "loss": 0.69, "lr": 2e-05}`',
        "每个数值键是一条曲线；键不同的行（评估）也可以",
    ),
    _is_json,
    rank=1,
)
TRAINER: Final = Format(
    STATE,
    read_json,
    (
        f"`{STATE}` of Hugging Face's and PaddleNLP's Trainer, or the run's folder",
        "reads `log_history`; in a folder, that of the last checkpoint",
    ),
    (
        f"Hugging Face 与 PaddleNLP Trainer 的 `{STATE}`，或其输出目录",
        "读取 `log_history`；目录则取最后一个 checkpoint",
    ),
    find_runs=_find_state,
    rank=1,
)
