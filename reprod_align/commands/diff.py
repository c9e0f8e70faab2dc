"""Compares two traces recorded with `record_trace`, with numpy alone.

Lists the relative difference of every output in call order, then of every gradient in backward
order, and names the first that differs.

exit 0 aligned, 1 something differs or has no partner, 2 cannot be compared
"""

import re
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reprod_align.base.files import as_json
from reprod_align.commands import add_name_map_argument, read_name_map
from reprod_align.errors import ReprodError
from reprod_align.page.outputs import add_output_arguments, require_outputs, write_outputs
from reprod_align.traces import load_trace
from reprod_align.traces.diff import TraceDiff, compare_traces

if TYPE_CHECKING:  # an import stays light
    from reprod_align.page import Page


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("expected", type=Path, help="the reference's trace")
    parser.add_argument(
        "actual", type=Path, help="the port's trace, or a folder with one of each rank"
    )
    add_name_map_argument(
        parser, "module or parameter names of the first trace -> of the second, with all below them"
    )
    parser.add_argument(
        "--allow-unpaired", action="store_true",
        help="modules and parameters that only one trace has are listed, but do not fail",
    )  # fmt: skip
    parser.add_argument(
        "--fused", action="append", default=[], metavar="NAME=SIZES",
        help="of ranks: the end of a parameter's name, and the sizes of what it holds of several, each cut "
        "among the ranks by itself, as qkv.weight=24,12,12; may be repeated",
    )  # fmt: skip
    add_output_arguments(parser)


def run(options: Namespace) -> int:
    """Print the comparison; return 0 if it passes, 1 if not."""
    require_outputs(options)
    names = read_name_map(options.name_map) if options.name_map else None
    expected = load_trace(options.expected)
    if options.actual.is_dir():
        from reprod_align.parallel.traces import (  # a single trace needs none
            compare_ranks,
            load_ranks,
        )

        ranks, fused = load_ranks(options.actual), dict(map(_read_fused, options.fused))
        result = compare_ranks(expected, ranks, names, options.allow_unpaired, fused)
    else:
        actual = load_trace(options.actual)
        result = compare_traces(expected, actual, names, options.allow_unpaired)
    if not options.markdown:
        print(as_json(result.to_json()) if options.json else result.summary())
    write_outputs(options, partial(_make_page, options, result))
    return 0 if result.passed else 1


def _make_page(options: Namespace, result: TraceDiff) -> "Page":
    from reprod_align.report.pages import make_trace_page  # a plain comparison needs none

    return make_trace_page(result, f"{options.expected.name} | {options.actual.name}")


def _read_fused(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.partition("=")
    if not name or not re.fullmatch(r"\d{1,9}(,\d{1,9})+", sizes):
        raise ReprodError(f"--fused {text!r}: expected as qkv.weight=24,12,12")
    return name, tuple(map(int, sizes.split(",")))
