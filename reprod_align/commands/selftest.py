"""Plants known faults in the pair of a user's file: do the inputs reveal them?

With --parallel the port runs on several ranks of paddle.distributed.fleet, as with `pair --parallel`, and
the faults are those of such runs: sums left out, gradients counted twice, another rank's part.

exit 0 every planted fault is revealed, 1 some are not, 2 the pair cannot be tested
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from reprod_align.base.console import without_warnings
from reprod_align.commands import (
    add_file_argument,
    add_json_argument,
    add_parallel_arguments,
    print_result,
)
from reprod_align.pair.file import PairFile, open_file, run_user_code

if TYPE_CHECKING:  # it imports Paddle, which must be quietened first
    from reprod_align.selftest import SelfTest


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_argument(parser)
    add_json_argument(parser)
    add_parallel_arguments(parser)


def run(options: Namespace) -> int:
    """Print the outcome of every planted fault; return 0 if all are revealed, 1 if not."""
    if options.parallel is None:
        result = plant_faults(options.file)
    else:
        result = plant_on_ranks(options.file, options.parallel, options.time_limit, options.logs)
    print_result(result, options.json)
    return 0 if result.passed else 1


def plant_faults(path: Path) -> "SelfTest":
    """Return the self-test of the pair in the file. Raises ReprodError if it cannot be tested."""
    with without_warnings():  # Paddle's own; without Paddle the error is not the user's file's
        from reprod_align.selftest import selftest_pair
    with run_user_code(path), open_file(path, PairFile) as file:
        return selftest_pair(file.pair())


def plant_on_ranks(path: Path, parallel: str, time_limit: float, logs: Path | None) -> "SelfTest":
    """Return the self-test of the pair in the file, its port on ranks. Raises as `plant_faults` does."""
    with without_warnings():
        from reprod_align.parallel.selftest import selftest_parallel
    with run_user_code(path):
        return selftest_parallel(path, parallel, time_limit, logs)
