"""pipeline/side.py: each script has a process of its own and ends as it would alone; servers may fail."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.side import Server

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing forks elsewhere")
SCRIPT = """
import os, signal, sys
from pathlib import Path
print(sys.argv[1:], sys.path[0] == str(Path(__file__).parent), "reprod_log" in sys.modules, sys.stdin.read())
if sys.argv[1] == "seen":
    sys.exit(5 if "mark" in vars(os) else 0)
os.mark = True
if sys.argv[1] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "lacks":
    import no_such_package
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    started = Server("checks", {})
    yield started
    started.stop()


def run(server: Server, folder: Path, word: str) -> tuple[int | None, str]:
    script, output = folder / "script.py", folder / "output"
    script.write_text(SCRIPT)
    output.write_text("")
    ended = server.run([str(script), word], str(output))
    return ended and ended[0], output.read_text()


def test_a_script_ends_as_it_would_alone(server: Server, tmp_path: Path) -> None:
    assert run(server, tmp_path, "3") == (3, "['3'] True True \n")
    assert run(server, tmp_path, "dies")[0] == -signal.SIGKILL
    assert run(server, tmp_path, "lacks")[0] == 1
    assert run(server, tmp_path, "seen") == (0, "['seen'] True True \n"), "no trace of the others"


def test_its_memory_is_told(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "large.py"
    script.write_text("held = b'1' * 2**29")
    ended = server.run([str(script)], os.devnull)
    assert ended is not None and ended[1] > 2**19


def test_without_a_server_nothing_is_run(tmp_path: Path) -> None:
    """An unknown side stands for libraries that can't be imported."""
    lost = Server("checks", {"PYTHONPATH": "", "PYTHONHOME": "/nowhere"})
    assert run(lost, tmp_path, "3") == (None, "")
    assert run(lost, tmp_path, "3") == (None, ""), "nor is it asked again"
