"""`reprod-align selftest FILE.py`: would the inputs in a user's file reveal a fault?"""

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path

from reprod_align.base.quiet import quieten, without_warnings
from reprod_align.errors import one_line
from reprod_align.pair.file import PairFile, opened, told_at
from reprod_align.selftest import SelfTest, selftest_sides


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("file", type=Path, help="the file that `reprod-align pair` takes")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 0 if all planted faults are revealed, 1 if not. Raises ReprodError if none can be."""
    quieten()
    with without_warnings(), redirect_stdout(sys.stderr):  # stdout is the result's alone
        result = tested(options.file)
    lines = result.summary().splitlines()  # names in it are the user's: no control characters
    print(result.to_json() if options.json else "\n".join(map(one_line, lines)))
    return 0 if result.passed else 1


def tested(path: Path) -> SelfTest:
    """Return the self-test of the pair in the file. Raises ReprodError for whatever is in the way."""
    try:
        with opened(path, PairFile) as file:
            sides = file.side("torch"), file.side("paddle")
            return selftest_sides(*sides, file.inputs(), **file.settings())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the file's exit code must not become ours
        raise told_at(error, path) from error
