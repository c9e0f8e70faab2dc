"""The command `reprod-align`: one module per command, imported only when its command is asked for.

The arguments that several commands take are declared here too.

A new command is a module here with `add_arguments(parser)` and `run(options)`, which returns the exit
code, and one line in `COMMANDS`.
"""

import re
import sys
from argparse import (
    Action,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from reprod_align import __version__
from reprod_align.base.console import outlive, quieten, run_command, without_warnings
from reprod_align.base.files import read_json
from reprod_align.errors import ReprodError

COMMANDS: Final[Mapping[str, str]] = {
    "new": "write a skeleton of the five steps for a model of your own",
    "doctor": "print versions, devices and what does not work",
    "compare": "compare two records (.npy files)",
    "pair": "judge the pair of models in a Python file",
    "fix": "mend the port in a pair's file: a patch, and its proof",
    "convert": "convert weights between PyTorch and Paddle, and prove the result",
    "port": "port a PyTorch file to Paddle, and prove the port",
    "selftest": "plant known faults: do the inputs in the pair's file reveal them?",
    "diff": "compare two traces recorded with record_trace",
    "prove": "prove that a port keeps a contract that its author cannot loosen",
    "submit": "check the five steps' records and logs, and pack them as a zip archive",
    "verify": "verify someone's submission without trusting it",
    "curves": "name the first step at which two training runs diverge, from their logs",
    "mcp": "serve align, fix, convert, prove and api to an agent",
    "api": "show where PyTorch's and Paddle's APIs differ, and run it here",
}
"""Module's name -> what its command does, in the order of --help."""

COMPLETION: Final = "--print-completion"
_SHELLS: Final = ("bash", "zsh", "tcsh")  # those of shtab


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (0 aligned, 1 different, 2 cannot be done)."""
    if words is None and sys.argv[1:2] in (["pair"], ["fix"]):
        outlive("reprod-align")  # what runs there is the user's, on two frameworks
    return run_command("reprod-align", lambda: _run(sys.argv[1:] if words is None else words))


def parse(words: Sequence[str]) -> Namespace:
    """Return the command's options; its `run` is among them. Exits where the words are wrong."""
    if list(words[:1]) == [COMPLETION]:  # a script knows all commands
        with without_warnings():  # the frameworks', at import
            return build_parser(_list_importable()).parse_args(words)
    return build_parser(words[:1]).parse_args(words)


def build_parser(names: Sequence[str]) -> ArgumentParser:
    """Return the parser with every command, and the arguments of these; only their modules are imported."""
    parser = ArgumentParser(prog="reprod-align", description="Compares a port with its reference.")
    parser.add_argument("--version", action="version", version=f"reprod-align {__version__}")
    parser.add_argument(
        COMPLETION, action=_PrintCompletion, choices=_SHELLS, metavar="SHELL",
        help=f"print a script that completes commands in {', '.join(_SHELLS)}",
    )  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, does in COMMANDS.items():
        command = commands.add_parser(name, help=does, formatter_class=RawDescriptionHelpFormatter)
        if name in names:
            module = import_module(f"reprod_align.commands.{name}")
            command.description = module.__doc__
            command.set_defaults(run=module.run)
            module.add_arguments(command)
            command.add_argument(
                "--quiet", action="store_true", help="print errors alone, and what --json or "
                "--markdown ask for: the exit code tells the rest",
            )  # fmt: skip
            command.add_argument(
                "--no-color", action="store_true",
                help="on a terminal: no colour; as NO_COLOR=1 does",
            )  # fmt: skip
    return parser


def _list_importable() -> list[str]:
    """Return the commands whose modules load here: one needs Paddle at once."""
    found = []
    for name in COMMANDS:
        with suppress(ImportError):
            import_module(f"reprod_align.commands.{name}")
            found.append(name)
    return found


class _PrintCompletion(Action):
    """Prints the script and exits."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None
    ) -> None:
        try:
            shtab = import_module("shtab")
        except ModuleNotFoundError as error:
            raise ReprodError(f"{COMPLETION} needs shtab: python -m pip install shtab") from error
        print(shtab.complete(parser, values))
        parser.exit()


def _run(words: Sequence[str]) -> int:
    from reprod_align.page.outputs import show_output  # after --help and --version

    quieten()  # a command's module may import a framework
    options = parse(words)
    asked = getattr(options, "json", False) or getattr(options, "markdown", False)
    with show_output(options.quiet, asked, not options.no_color):
        code: int = options.run(options)
    return code


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
    """Declare the processes and the cluster that judge `what`, a plural; `Workers` takes both."""
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


def print_result(result: Printable, as_json: bool) -> None:
    """Print the result."""
    print(result.to_json() if as_json else result.summary())


def read_name_map(path: Path) -> Mapping[str, str]:
    """Return the names in a JSON file. Raises ReprodError if it is missing or holds anything else."""
    names = read_json(path)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ReprodError(f'{path}: expected a JSON object such as {{"name": "other name"}}')
    return names
