"""Compares two records: the reference's and the port's.

exit 0 the records agree, 1 they differ, 2 they cannot be compared
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from reprod_align.base.files import as_json
from reprod_align.commands import add_json_argument
from reprod_align.records import load_record
from reprod_align.records.compare import EXACT, STRICT, compare_records, official_rule


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("expected", type=Path, help="the reference's record")
    parser.add_argument("actual", type=Path, help="the port's record")
    parser.add_argument("--threshold", type=float, default=1e-6, help="largest mean difference")
    parser.add_argument("--rule", choices=("official", "strict", "exact"), default="official")
    add_json_argument(parser)


def run(options: Namespace) -> int:
    """Print the comparison; return 0 if it passes, 1 if not."""
    rules = {"official": official_rule(options.threshold), "strict": STRICT, "exact": EXACT}
    comparison = compare_records(
        load_record(options.expected), load_record(options.actual), rule=rules[options.rule]
    )
    print(as_json(comparison.to_json()) if options.json else comparison.summary())
    return 0 if comparison.passed else 1
