"""The command `reprod-align`: one module per command, imported only when its command is asked for.

A new command is a module here with `add_arguments(parser)` and `run(options)`, which returns the exit
code, and one line in `COMMANDS`.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from reprod_align.base.ending import run_command

COMMANDS: Final[Mapping[str, str]] = {
    "doctor": "print versions, devices and what does not work",
    "compare": "compare two records (.npy files)",
    "pair": "judge the pair of models in a Python file",
    "convert": "convert weights between PyTorch and Paddle, and prove the result",
    "port": "port a PyTorch file to Paddle, and prove the port",
    "selftest": "plant known faults: do the inputs in the pair's file reveal them?",
    "diff": "compare two traces recorded with record_trace",
    "submit": "check the five steps' records and logs, and pack them as a zip archive",
    "verify": "verify someone's submission without trusting it",
    "curves": "name the first step at which two training runs diverge, from their logs",
    "api": "show where PyTorch's and Paddle's APIs differ, and run it here",
}
"""Module's name -> what its command does, in the order of --help."""


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (0 aligned, 1 different, 2 cannot be done)."""
    return run_command("reprod-align", lambda: _run(sys.argv[1:] if words is None else words))


def parse(words: Sequence[str]) -> Namespace:
    """Return the command's options; its `run` is among them. Exits where the words are wrong."""
    parser = ArgumentParser(prog="reprod-align", description="Compares a port with its reference.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, does in COMMANDS.items():
        command = commands.add_parser(name, help=does, formatter_class=RawDescriptionHelpFormatter)
        if [name] == list(words[:1]):  # only the module that is asked for is imported
            module = import_module(f"reprod_align.commands.{name}")
            command.description = module.__doc__
            command.set_defaults(run=module.run)
            module.add_arguments(command)
    return parser.parse_args(words)


def _run(words: Sequence[str]) -> int:
    options = parse(words)
    code: int = options.run(options)
    return code
