"""What a check script does with its gates: it compares, and writes what its options ask for."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from reprod_align.page.content import Page
from reprod_align.page.outputs import require_outputs, write_outputs
from reprod_align.records.gate import Gate, check


def judge_gates(
    options: Namespace,
    gates: Sequence[Gate],
    kept: Mapping[str, Path],
    make_page: Callable[[], Page] | None = None,
) -> int:
    """Compare each gate's files; return the worst exit code. Writes --report, --markdown and --junit.

    kept: by the gates' names, where what `align` found after a failure is kept as JSON; earlier ones
    are removed. make_page: another page than that of these gates alone. Raises ReprodError if a file
    cannot be written, before anything is compared.
    """
    require_outputs(options)
    for path in kept.values():
        path.unlink(missing_ok=True)
    with redirect_stdout(sys.stderr) if options.markdown else nullcontext():
        code = max(check(gate) for gate in gates)
    write_outputs(options, make_page or partial(_make_page, gates, kept))
    return code


def read_results(files: Mapping[str, Path]) -> dict[str, Mapping[str, Any]]:
    """Return what gates wrote as JSON, by their names; those that wrote nothing are left out."""
    found = {name: _read(path) for name, path in files.items()}
    return {name: result for name, result in found.items() if result is not None}


def read_found(files: Iterable[Path]) -> Any:
    """Return the first report of `align` in these files; None if there is none."""
    from reprod_align.base.files import from_plain  # a plain check needs none
    from reprod_align.report import Report

    kept = map(_read, files)
    return next((from_plain(Report, plain) for plain in kept if plain is not None), None)


def _make_page(gates: Sequence[Gate], kept: Mapping[str, Path]) -> Page:
    from reprod_align.report.records import describe_step, make_page

    results = read_results({gate.name: Path(gate.result_file) for gate in gates})
    steps = [describe_step(gate.name, results.get(gate.name)) for gate in gates]
    found = read_found(kept[name] for name in results if name in kept)
    return make_page(Path(sys.argv[0]).name, steps, results, found)


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        result: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result
