"""The server of the Model Context Protocol, `reprod-align mcp`: the commands as tools of an agent.

Each tool runs a command in a process of its own and returns its JSON. A command runs until it is done or
the client cancels it: then its process, and all that it started, is ended. Progress is reported.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reprod_align import __version__
from reprod_align.base.console import LINES, MARK, PROGRESS
from reprod_align.base.files import parse_json
from reprod_align.errors import ReprodError, one_line
from reprod_align.pair.remote import end_group

import anyio
from anyio.streams.text import TextReceiveStream
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError


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


_INSTRUCTIONS: Final = (
    "Judges whether a PaddlePaddle model is a faithful port of a PyTorch one. exit_code 0: faithful, 1: not, "
    "2: it cannot be judged, and message says why. align and fix run the code of the file that is named."
)


def make_server(root: Root) -> MCPServer[Any]:
    """Return the server with its five tools; paths are seen from the root, and must stay below it."""
    server: MCPServer[Any] = MCPServer(
        "reprod-align", instructions=_INSTRUCTIONS, version=__version__, log_level="ERROR"
    )

    async def align(file: str, context: Context, memory: str = "") -> dict[str, Any]:
        """Judge the pair of models in a Python file: verdict, findings, where and why.

        file: defines torch_model(), paddle_model(), inputs(). memory: the most to take, as 8G.
        """
        return await run_command(root, "align", locals())

    async def fix(file: str, context: Context) -> dict[str, Any]:
        """Look for the edits that make the port in a pair's file faithful: a patch, and its proof."""
        return await run_command(root, "fix", locals())

    async def convert(
        source: str,
        target: str,
        context: Context,
        pair: str = "",
        map: str = "",
        save_map: str = "",
        select: str = "",
        dry_run: bool = False,
        verify: bool = False,
        no_check: bool = False,
    ) -> dict[str, Any]:
        """Convert weights between PyTorch and Paddle, and prove the result.

        pair: the file with the two models; map: a weight map in their place. dry_run: write nothing.
        """
        return await run_command(root, "convert", locals())

    async def prove(
        contract: str,
        context: Context,
        port: str = "",
        certificate: str = "",
        check: str = "",
        digest: str = "",
    ) -> dict[str, Any]:
        """Prove that a port keeps a contract, a TOML file; refusals say by name what is not allowed.

        port: the folder with the port's files. certificate: where to write it. check: one to repeat.
        """
        return await run_command(root, "prove", locals())

    async def api(context: Context, name: str = "", search: str = "") -> dict[str, Any]:
        """Show where PyTorch's and Paddle's APIs differ: one entry, run here, or all that hold a word."""
        return await run_command(root, "api", locals())

    for one in (align, fix, convert, prove, api):
        server.add_tool(one)
    return server


async def run_command(root: Root, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run a tool's command; return its exit code, its JSON and what it said. Raises ToolError."""
    context: Context = given["context"]
    try:
        words = make_words(root, tool, {k: v for k, v in given.items() if k != "context"})
    except ReprodError as error:
        raise ToolError(str(error)) from error
    process = await anyio.open_process(
        [sys.executable, "-m", "reprod_align", *words],
        stdin=subprocess.DEVNULL,
        cwd=root.folder,
        env=os.environ | {PROGRESS: LINES, "PYTHONSAFEPATH": "1"},
        start_new_session=True,
    )
    printed: list[str] = []
    said: list[str] = []
    try:
        async with anyio.create_task_group() as reading:
            reading.start_soon(_collect, process.stdout, printed)
            reading.start_soon(_follow, process.stderr, said, context)
        await process.wait()
    finally:  # done, failed or cancelled
        end_group(process.pid)
        with anyio.CancelScope(shield=True):
            await process.wait()
    return _describe(process.returncode, "".join(printed), said)


async def _collect(stream: Any, into: list[str]) -> None:
    async for part in TextReceiveStream(stream, errors="replace"):
        into.append(part)


async def _follow(stream: Any, into: list[str], context: Context) -> None:
    """Report what the command is doing; keep what else it says."""
    rest, count = "", 0
    async for part in TextReceiveStream(stream, errors="replace"):
        *lines, rest = (rest + part).split("\n")
        for line in lines:
            if line.startswith(MARK):
                count += 1
                await context.report_progress(count, message=one_line(line.removeprefix(MARK)))
            elif line.strip():
                into.append(one_line(line))
    if rest.strip():
        into.append(one_line(rest))


def _describe(code: int | None, printed: str, said: list[str]) -> dict[str, Any]:
    try:
        result = parse_json(printed) if printed.strip() else None
    except (ValueError, RecursionError):
        result = printed
    return {"exit_code": code, "result": result, "message": said[-1] if said else ""}


def serve(folder: Path) -> None:
    """Serve one client over stdin and stdout until it leaves. Raises ReprodError if `folder` is none."""
    make_server(Root(folder)).run("stdio")
