"""A command run in this process, with options as the command line gives them."""

from pathlib import Path
from types import ModuleType

from reprod_align.commands import parse


def run(command: ModuleType, *words: str | Path) -> int:
    """Return the exit code of a command's module."""
    name = command.__name__.rpartition(".")[2]
    options = parse([name, *map(str, words)])
    assert options.run is command.run
    return int(command.run(options))
