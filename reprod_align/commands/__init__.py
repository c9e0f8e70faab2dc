"""The command `reprod-align`."""

import argparse
import sys
from pathlib import Path

from reprod_align.base.ending import ended
from reprod_align.base.json import as_json
from reprod_align.commands import api, curves, diff, pair, selftest
from reprod_align.pair import file as pair_file
from reprod_align.records.record import load_record
from reprod_align.records.verdict import EXACT, STRICT, compare_records, official_rule


def main(words: list[str] | None = None) -> int:
    """Run a command; return its exit code (0 aligned, 1 different, 2 cannot be done)."""
    return ended("reprod-align", lambda: _run(words))


def _run(words: list[str] | None) -> int:
    options = _parser().parse_args(words)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reprod-align", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("doctor", help="print versions, devices and what does not work")
    command.set_defaults(run=_doctor)
    command = commands.add_parser("compare", help="compare two records (.npy files)")
    command.add_argument("expected", type=Path, help="the reference's record")
    command.add_argument("actual", type=Path, help="the port's record")
    command.add_argument("--threshold", type=float, default=1e-6, help="largest mean difference")
    command.add_argument("--rule", choices=("official", "strict", "exact"), default="official")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=_compare)
    command = commands.add_parser(
        "pair", help="judge the pair of models in a Python file",
        description=pair_file.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    pair.add_arguments(command)
    command = commands.add_parser(
        "selftest", help="plant known faults: would the inputs in the pair's file reveal them?",
        description=selftest.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    selftest.add_arguments(command)
    command = commands.add_parser(
        "diff", help="compare two traces recorded with record_trace",
        description=diff.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    diff.add_arguments(command)
    command = commands.add_parser(
        "curves", help="name the first step at which two training runs part, from their logs",
        description=curves.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    curves.add_arguments(command)
    command = commands.add_parser(
        "api", help="show where PyTorch's and Paddle's APIs differ, and run it here",
        description=api.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    api.add_arguments(command)
    return parser


def _doctor(options: argparse.Namespace) -> int:
    from reprod_align.commands import (
        doctor,  # not above: the other commands do without what it needs
    )

    return doctor.main()


def _compare(options: argparse.Namespace) -> int:
    rules = {"official": official_rule(options.threshold), "strict": STRICT, "exact": EXACT}
    comparison = compare_records(
        load_record(options.expected), load_record(options.actual), rule=rules[options.rule]
    )
    print(as_json(comparison.to_json()) if options.json else comparison.summary())
    return 0 if comparison.passed else 1


if __name__ == "__main__":
    sys.exit(main())
