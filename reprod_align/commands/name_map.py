"""The file of --name-map, which the commands that pair two sides' names take."""

import json
from collections.abc import Mapping
from pathlib import Path

from reprod_align.errors import MissingInputError, ReprodError


def read_name_map(path: Path) -> Mapping[str, str]:
    """Return the names in a JSON file. Raises ReprodError if it is missing or holds anything else."""
    if not path.is_file():
        raise MissingInputError(f"{path} is missing")
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise ReprodError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ReprodError(f'{path}: expected a JSON object such as {{"name": "other name"}}')
    return names
