"""The file of --name-map, which the commands that pair two sides' names take."""

from collections.abc import Mapping
from pathlib import Path

from reprod_align.base.json import read_json
from reprod_align.errors import ReprodError


def read_name_map(path: Path) -> Mapping[str, str]:
    """Return the names in a JSON file. Raises ReprodError if it is missing or holds anything else."""
    names = read_json(path)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ReprodError(f'{path}: expected a JSON object such as {{"name": "other name"}}')
    return names
