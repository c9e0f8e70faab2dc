"""Reads JSON lines of a training loop, and the state of a Hugging Face or PaddleNLP Trainer."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from reprod_align.base.files import parse_json
from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.readers import Format, Head, LogLine, Runs, read_rows

STATE: Final = "trainer_state.json"


def read_json(path: Path) -> CurveLog:
    """Return the curves of JSON lines, of a list of objects, or of an object with a log_history.

    Raises CurveError, with the line's number, for a line that is not a JSON object; a last line
    that was cut off is left out, with a remark.
    """
    first = _read_first_line(path)
    if _is_object(first) and "log_history" not in first:
        return read_rows(path, "JSON lines", _read_lines(path))
    return _read_document(path)


def _read_first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as handle:
        return next((line for line in handle if line.strip()), "")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _read_lines(path: Path) -> Iterator[LogLine]:
    with path.open("rb") as handle:
        for line, text in enumerate(handle, 1):
            if text.strip():
                yield line, _parse_line(text)


def _parse_line(text: bytes) -> dict[str, Any] | str:
    """Return the line's object, or what is wrong with it."""
    try:
        value = parse_json(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8
        return f"not JSON ({type(error).__name__}: {error})"[:160]
    return value if isinstance(value, dict) else f"expected an object, got a {type(value).__name__}"


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
