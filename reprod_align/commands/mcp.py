"""Serves the commands to an agent, by the Model Context Protocol over stdin and stdout.

Its tools are align, fix, convert, prove and api; each returns the JSON of its command, reports what it is
doing, and ends when the client cancels it. Paths are limited to --root and what lies below it. That limits
what an agent can name, and not what the models that it names can do: align and fix run them with your rights.

exit 0 the client has left, 2 it cannot be served
"""

from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from pathlib import Path

from reprod_align.errors import ReprodError


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--root", type=Path, default=Path(), metavar="FOLDER",
        help="the only folder whose files the tools may name (default: the present one)",
    )  # fmt: skip


def run(options: Namespace) -> int:
    """Serve one client. Raises ReprodError if the package mcp is not installed."""
    if find_spec("mcp") is None:
        raise ReprodError('mcp needs the package mcp: python -m pip install "reprod-align[mcp]"')
    from reprod_align.agents import serve

    serve(options.root)
    return 0
