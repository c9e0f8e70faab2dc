"""A client of the package mcp calls each tool over stdio, and cancels one; paths stay below the root."""

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reprod_align.agents import Root, make_words
from reprod_align.errors import ReprodError
from tests.contract.made import PORT, write_contract
from tests.warm import CHILDREN, warm_executable

import pytest

anyio = pytest.importorskip("anyio")

PAIR = """
import numpy as np
def torch_model():
    import torch
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)
def paddle_model():
    import paddle
    return paddle.nn.Linear(3, 2)
def inputs():
    return (np.random.default_rng(0).standard_normal((4, 3)),)
"""
SLOW = "import os, time\nopen('begun', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"


@pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed")
def test_the_tools(tmp_path: Path) -> None:
    """One server, each tool once, and one cancelled: its process ends."""
    (tmp_path / "pair.py").write_text(PAIR)
    (tmp_path / "slow.py").write_text(SLOW)
    write_contract(tmp_path, {"port.py": f"import torch\n{PORT}"})
    anyio.run(call_tools, tmp_path)


async def call_tools(folder: Path) -> None:
    from reprod_align.agents import make_server

    import mcp

    assert len(await make_server(Root(folder)).list_tools()) == 5
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), CHILDREN: "yes"}
    words = ["-m", "reprod_align", "mcp", "--root", str(folder)]
    start = mcp.StdioServerParameters(command=str(warm_executable()), args=words, env=environment)
    async with mcp.Client(start) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"align", "fix", "convert", "prove", "api"}
        seen: list[str] = []
        found = await call(client, "align", seen, file="pair.py")
        assert (found["exit_code"], found["result"]["passed"]) == (0, True), found
        assert any("making the models" in one for one in seen)
        found = await call(client, "fix", file="pair.py")
        assert found["exit_code"] == 0 and found["result"]["passed"]
        found = await call(
            client, "convert", source="none.bin", target="x.pdparams", pair="pair.py"
        )
        assert found["exit_code"] == 2 and "none.bin" in found["message"]
        found = await call(client, "prove", contract="contract.toml")
        assert found["exit_code"] == 1
        assert [one["code"] for one in found["result"]["refusals"]] == ["imports-torch"]
        found = await call(client, "api", search="batch-norm-momentum")
        assert found["exit_code"] == 0 and found["result"][0]["name"] == "batch-norm-momentum"
        refused = await client.call_tool("align", {"file": "../pair.py"})
        assert refused.is_error and "outside" in refused.content[0].text
        await cancel(client, folder)
        found = await call(client, "api", search="batch-norm-momentum")
        assert found["exit_code"] == 0, "the server lives on"


async def call(client: Any, name: str, seen: list[str] | None = None, **given: str) -> Any:
    """Return what a tool answers; seen: gets the messages of its progress."""

    async def note(progress: float, total: float | None, message: str | None) -> None:
        if seen is not None:
            seen.append(str(message))

    answer = await client.call_tool(name, given, progress_callback=note)
    assert not answer.is_error, answer
    return answer.structured_content


async def cancel(client: Any, folder: Path) -> None:
    """Begin what takes ten minutes, and cancel it."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "align", {"file": "slow.py"})
        with anyio.fail_after(120):
            while not (folder / "begun").exists() or not (folder / "begun").read_text():
                await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    number = int((folder / "begun").read_text())
    limit = time.monotonic() + 30
    while Path(f"/proc/{number}").exists() and time.monotonic() < limit:
        await anyio.sleep(0.05)
    assert not Path(f"/proc/{number}").exists()


def test_words_and_paths(tmp_path: Path) -> None:
    root = Root(tmp_path)
    (tmp_path / "out").symlink_to("/etc")
    whole = str(tmp_path / "a.py")
    assert make_words(root, "align", {"file": "a.py", "memory": "8G"}) == [
        "pair", "--json", "--memory=8G", whole,
    ]  # fmt: skip
    given = {"source": "a", "target": "b", "pair": "a.py", "dry_run": True, "verify": False}
    words = make_words(root, "convert", given)
    assert words[1:3] == ["--json", "--dry-run"] and f"--pair={whole}" in words
    for outside in ("/etc/passwd", "../x", "out/passwd", "a\0b"):
        with pytest.raises(ReprodError):
            make_words(root, "align", {"file": outside})
    with pytest.raises(ReprodError, match="reads as an option"):
        make_words(root, "api", {"name": "--write=x"})
    assert make_words(root, "api", {"name": "x", "search": ""}) == ["api", "--json", "x"]
    with pytest.raises(ReprodError, match="is not a folder"):
        Root(tmp_path / "none")
