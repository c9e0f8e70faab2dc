"""The arguments that several commands take, a quiet run of a user's file, the printed result."""

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Protocol

from reprod_align.base.console import quieten, without_warnings
from reprod_align.base.files import read_json
from reprod_align.errors import ReprodError


class Printable(Protocol):
    """A result that is printed as text or as JSON."""

    def summary(self) -> str:
        """Return the result as text."""

    def to_json(self) -> str:
        """Return the result as JSON."""


def add_file_argument(parser: ArgumentParser) -> None:
    """Declare the file with the pair."""
    parser.add_argument("file", type=Path, help="defines torch_model(), paddle_model(), inputs()")


def add_json_argument(parser: ArgumentParser, what: str = "result as JSON") -> None:
    """Declare --json, of commands that print nothing else in its place."""
    parser.add_argument("--json", action="store_true", help=f"print the {what}")


def add_python_arguments(parser: ArgumentParser) -> None:
    """Declare the two interpreters."""
    parser.add_argument("--torch-python", metavar="PATH", help="interpreter that has PyTorch")
    parser.add_argument("--paddle-python", metavar="PATH", help="interpreter that has Paddle")


def add_worker_arguments(parser: ArgumentParser, what: str) -> None:
    """Declare who does what is independent; what: that, in the plural. `Workers` takes both."""
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help=f"processes that judge {what}, here (1)")  # fmt: skip
    parser.add_argument("--cluster", default="", metavar="tcp://HOST:8786",
                        help=f"a scheduler of dask.distributed whose workers judge {what}")  # fmt: skip


def add_parallel_arguments(parser: ArgumentParser) -> None:
    """Declare the ranks of the port, and what they get."""
    from reprod_align.parallel.launch import TIME_LIMIT  # comparing files needs none of it

    parser.add_argument("--parallel", metavar="RANKS", help='ranks of the port, as "tp=2", "dp=2"')
    parser.add_argument("--time-limit", type=read_seconds, metavar="SECONDS", default=TIME_LIMIT,
                        help="with --parallel: that a rank gets for an answer (300)")  # fmt: skip
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="with --parallel: the ranks' logs"
    )


def add_name_map_argument(parser: ArgumentParser, names: str) -> None:
    """Declare --name-map; names: which ones it maps. `read_name_map` reads the file."""
    parser.add_argument("--name-map", type=Path, metavar="FILE.json", help=names)


def read_size(text: str, unit: int = 1024) -> int:
    """Return the bytes that a text names, as "8G" or "512M"; unit: what K is.

    Raises ArgumentTypeError for another text.
    """
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * unit ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if size < 1:
        raise ArgumentTypeError(f"expected a size such as 8G or 512M, got {text[:30]!r}")
    return size


def read_seconds(text: str) -> float:
    """Return a number of seconds above 0. Raises ArgumentTypeError for another text."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise ArgumentTypeError(f"expected a number of seconds, got {text[:30]!r}")
    return seconds


@contextmanager
def run_user_code(path: Path) -> Iterator[None]:
    """Keep stdout for the result alone; whatever the file's code raises becomes a ReprodError."""
    quieten()
    with without_warnings(), redirect_stdout(sys.stderr):
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: the file's exit code must not become ours
            from reprod_align.pair.file import explain_error

            raise explain_error(error, path) from error


def print_result(result: Printable, as_json: bool) -> None:
    """Print the result."""
    print(result.to_json() if as_json else result.summary())


def read_name_map(path: Path) -> Mapping[str, str]:
    """Return the names in a JSON file. Raises ReprodError if it is missing or holds anything else."""
    names = read_json(path)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ReprodError(f'{path}: expected a JSON object such as {{"name": "other name"}}')
    return names
