"""What each tool runs: the words of a command line, its paths below the root."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reprod_align.errors import ReprodError


class Root:
    """The folder that a server's tools may reach."""

    def __init__(self, folder: Path) -> None:
        """Take the folder. Raises ReprodError if it is none."""
        if not folder.is_dir():
            raise ReprodError(f"--root {folder} is not a folder")
        self.folder = folder.resolve()

    def locate(self, name: str) -> str:
        """Return a path's whole name. Raises ReprodError where it, or a link in it, leaves the folder."""
        try:
            whole = (self.folder / name).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a ring of links, a NUL
            raise ReprodError(f"{name[:100]!r} is not a path: {error}") from error
        if not whole.is_relative_to(self.folder):
            raise ReprodError(f"{name[:100]!r} lies outside of {self.folder}, the server's root")
        return str(whole)


@dataclass(frozen=True)
class Tool:
    """How a tool's arguments become words."""

    command: str
    paths: Sequence[str] = ()
    """arguments that are paths and stand without an option"""
    path_options: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    """argument -> its option"""
    flags: Mapping[str, str] = field(default_factory=dict)
    plain: Sequence[str] = ()
    """arguments that are no paths and stand without an option"""


TOOLS: Final[Mapping[str, Tool]] = {
    "align": Tool("pair", ["file"], options={"memory": "--memory"}),
    "fix": Tool("fix", ["file"]),
    "convert": Tool(
        "convert", ["source", "target"], {"pair": "--pair", "map": "--map", "save_map": "--save-map"},
        {"select": "--select"}, {"dry_run": "--dry-run", "verify": "--verify", "no_check": "--no-check"},
    ),
    "prove": Tool(
        "prove", ["contract"], {"port": "--port", "certificate": "--certificate", "check": "--check"},
        {"digest": "--digest"},
    ),
    "api": Tool("api", options={"search": "--search"}, plain=["name"]),
}  # fmt: skip


def make_words(root: Root, name: str, given: Mapping[str, object]) -> list[str]:
    """Return the command line of a tool; empty arguments are left out.

    Raises ReprodError for a path outside of the root, and for text that would be read as an option.
    """
    tool = TOOLS[name]
    words = [tool.command, "--json"]
    for argument, option in tool.flags.items():
        words += [option] if given.get(argument) else []
    for argument, option in tool.options.items():
        words += [f"{option}={given[argument]}"] if given.get(argument) else []
    for argument, option in tool.path_options.items():
        words += [f"{option}={root.locate(str(given[argument]))}"] if given.get(argument) else []
    words += [root.locate(str(given[argument])) for argument in tool.paths]
    for argument in tool.plain:
        text = str(given.get(argument) or "")
        if text.startswith("-"):
            raise ReprodError(f"{argument}: {text[:60]!r} reads as an option")
        words += [text] if text else []
    return words
