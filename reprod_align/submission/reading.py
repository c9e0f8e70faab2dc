"""Reads JSON of someone else's: what it may grow to is known before it is parsed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reprod_align.base.files import parse_json
from reprod_align.submission.findings import DAMAGED, Findings
from reprod_align.submission.folder import Submission

_MOST_BYTES = 32 * 2**20
_MOST_VALUES = 2_000_000
"""values in a file, of 50 to 100 bytes in memory each; a check of 10,000 tensors writes 600,000"""


def get_dict(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object of that name in another one; an empty one if there is none."""
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def read_object(submission: Submission, name: str, findings: Findings) -> dict[str, Any]:
    """Return a JSON object; an empty one, and a fault, if the file is something else."""
    try:
        found = parse(read_text(submission.files[name], _MOST_BYTES))
        if isinstance(found, dict):
            return found
        reason = f"holds a {type(found).__name__}, not an object"
    except (OSError, RecursionError, ValueError) as error:
        reason = f"is not JSON: {str(error)[:100]}"
    findings.add(DAMAGED, f"{name} {reason}")
    return {}


def parse(text: str) -> Any:
    """Return what JSON holds. Raises ValueError if it is not JSON, or would grow too large."""
    if sum(map(text.count, "[{,:")) > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values")
    return parse_json(text)


def read_text(path: Path, most: int) -> str:
    """Return a file's text; ValueError if it has more than `most` bytes, or is not UTF-8."""
    size = path.stat().st_size
    if size > most:
        raise ValueError(f"{size} bytes; the most is {most}")
    return path.read_text(encoding="utf-8")
