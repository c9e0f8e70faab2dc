"""Compares two traces recorded with `record_trace`, offline and with numpy alone.

Lists the relative difference of every output in call order, then of every gradient in backward
order, and names the first that differs.

exit 0 aligned, 1 different or something without a partner, 2 cannot be compared
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from reprod_align.base.json import as_json
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.traces.diff import compare_traces
from reprod_align.traces.file import load_trace


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Give the command its arguments, and what it runs."""
    command.add_argument("expected", type=Path, help="the reference's trace")
    command.add_argument("actual", type=Path, help="the port's trace")
    command.add_argument(
        "--name-map", type=Path, metavar="FILE.json",
        help="module or parameter names of the first trace -> of the second, with all below them",
    )  # fmt: skip
    command.add_argument(
        "--allow-unpaired", action="store_true",
        help="modules and parameters that only one trace has are listed, but do not fail",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    names = _name_map(options.name_map) if options.name_map else None
    expected, actual = load_trace(options.expected), load_trace(options.actual)
    result = compare_traces(expected, actual, names, options.allow_unpaired)
    print(as_json(result.to_json()) if options.json else result.summary())
    return 0 if result.passed else 1


def _name_map(path: Path) -> Mapping[str, str]:
    if not path.is_file():
        raise MissingInputError(f"{path} is missing")
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReprodError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ReprodError(f"{path}: a JSON object of name -> name expected")
    return names
