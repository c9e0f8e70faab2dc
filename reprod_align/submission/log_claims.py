"""What a log claims: reprod_log's lines, with or without dates, and those that this library adds.

logits:
    mean diff: check passed: True, value: 1.1e-08
diff check passed
strict logits: passed True, max relative 2.7e-15 (tolerance 1e-09)
strict check passed
reprod_align: passed
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reprod_align.errors import RecordError

_MOST_BYTES = 64 * 2**20
_STAMP = re.compile(r"\[\d{4}/\d\d?/\d\d? \d\d?:\d\d:\d\d\] root INFO: ?")
_CHECK = re.compile(r"\s+(\w+) diff: check passed: (True|False), value: (\S+)")
_WORDS = {"passed": True, "failed": False}


@dataclass(frozen=True)
class Claim:
    """One statistic of one key: which, whether it passed, and its value."""

    method: str
    passed: bool
    value: float


@dataclass
class LogClaims:
    """What the last report of a log claims."""

    keys: dict[str, list[Claim]] = field(default_factory=dict)
    passed: bool | None = None
    """the line "diff check passed"; None: it is not there"""
    strict: list[str] = field(default_factory=list)
    """the lines that begin with "strict " """
    verdict: bool | None = None
    """the line "reprod_align: passed" """
    earlier: int = 0
    """reports that stand before it"""


def read_claims(path: Path) -> LogClaims:
    """Return what a log claims. Raises RecordError if it is not a text, or too long for a log."""
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise RecordError(f"has {size} bytes; a log has at most {_MOST_BYTES}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"is not a text in UTF-8 (byte {error.start})") from None
    return _read_lines(_strip_stamps(text))


def _strip_stamps(text: str) -> Iterator[str]:
    for line in text.replace("\r\n", "\n").split("\n"):  # splitlines() would split at U+2028, too
        stamp = _STAMP.match(line)
        yield line[stamp.end() :] if stamp else line


def _read_lines(lines: Iterator[str]) -> LogClaims:
    claims, key = LogClaims(), ""
    for line in lines:
        start, _, rest = line.strip().partition(" check ")
        if found := _CHECK.fullmatch(line.rstrip()):
            claim = Claim(found[1], found[2] == "True", _read_number(found[3]))
            claims.keys.setdefault(key, []).append(claim)
            continue
        if line.startswith("reprod_align: "):
            claims.verdict = line.strip() == "reprod_align: passed"
        elif start == "diff" and rest in _WORDS:
            claims.passed = _WORDS[rest]
        elif line.startswith("strict "):
            claims.strict.append(line.rstrip())
        elif line.rstrip().endswith(":") and not line.startswith("remark: "):
            if claims.passed is not None:  # a further report
                claims = LogClaims(earlier=claims.earlier + 1)
            key = line.rstrip()[:-1]
    return claims


def _read_number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
