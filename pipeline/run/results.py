"""Results for people and for other programs: text and JSON files, whole or not at all."""

import json
from pathlib import Path

from reprod_align.base.atomic import whole_file


def write_text(path: Path, text: str) -> None:
    """Write text in UTF-8, with a line end after it."""
    with whole_file(path) as handle:
        handle.write(f"{text}\n".encode())


def write_json(path: Path, content: object) -> None:
    """Write JSON; ValueError if it holds a NaN or an infinity."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False))
