"""What goes wrong around a command that writes: kills, a full disk, a closed folder, two at once.

The old file stays until the new one is whole; what could not be done is one line and exit code 2.
"""

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tests.conftest import REPOSITORY, Finished, one_line_error, run_warm_python
from tests.porting.paconvert import needs_paconvert

import numpy as np
import pytest

PAIR = """
import numpy as np

def torch_model():
    import torch
    torch.manual_seed(0)
    return torch.nn.Linear(60, 40)

def paddle_model():
    from paddle import nn
    return nn.Linear(60, 40)

inputs = (np.ones((4, 60)),)
"""
NET = """
import numpy as np
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(6, 4)

    def forward(self, x):
        return torch.relu(self.inner(x))

inputs = (np.random.default_rng(0).standard_normal((4, 6)),)
"""
COMMAND = "from reprod_align.commands import main; code = main({words})"
PREPARE = """
import numpy as np, torch
from pathlib import Path
from reprod_align import save_record
for name in "ab":
    save_record(name, {"x": np.arange(900.0), "y": np.ones(4)})
torch.save(torch.nn.Linear(60, 40).state_dict(), "a.bin")
from tests.submission.making import make_submission
make_submission(Path("."))
for name in ("one", "two"):
    Path(name).write_text("".join(f'{{"step": {n}, "loss": {1 / n}}}\\n' for n in range(1, 40)))
"""


@dataclass(frozen=True)
class Writer:
    """A command that writes a file."""

    target: str
    code: str
    """runs it in the folder; leaves its exit code in `code`"""
    least: int
    """bytes below which its file is not whole"""
    given: str = ""
    """what the code names to be written, if that is not the target"""
    keeps: bool = True
    """the old file stays until the new one is whole; False: it is removed first, so that all fails closed"""
    new: bool = False
    """it makes the target's folder, which is there whole or not at all"""

    def place_old(self, folder: Path) -> bytes | None:
        """Put the old file there; return what a run that failed may leave beside it."""
        target = folder / self.target
        if self.new:
            shutil.rmtree(target.parent, ignore_errors=True)
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"old")
        return b"old" if self.keeps else None

    def read(self, folder: Path) -> bytes | None:
        """Return the target's content, None if it is not there."""
        target = folder / self.target
        return target.read_bytes() if target.exists() else None


def command(*words: str) -> str:
    return COMMAND.format(words=list(words))


ENDING = "from reprod_align.base.console import run_command\n"
RECORD = """import numpy as np; from reprod_align import save_record
code = run_command('save', lambda: save_record('r.npy', {'x': np.ones(999)}) and 0)"""
TRACE = """import numpy as np; from reprod_align.traces import save_trace
from tests.traces.made import trace
code = run_command('save', lambda: save_trace('t.trace', trace(np.ones(999))))"""
CHECKPOINT = """import numpy as np; from pathlib import Path
from pipeline.training.state import write_state
code = run_command('save', lambda: write_state(Path('s.state'), {'x': np.ones(999)}, {}))"""
CHECK = """from pathlib import Path; from reprod_align import Gate, check
pair = Path('a.npy'), Path('b.npy')
code = check(Gate('forward', pair, pair, Path('forward.log'), 'make'))"""
SCRIPT = f"""import os, runpy, sys
os.environ["PYTHONPATH"] = {str(REPOSITORY)!r}
sys.argv = ["x", "--profile", "tiny", "--home", "."]
try:
    runpy.run_path({str(REPOSITORY)!r} + "/pipeline/Step4/pt_lr_scheduler.py", run_name="__main__")
except SystemExit as end:
    code = end.code"""
API = """import reprod_align.api.pages as pages
pages.run_entry = lambda entry: pages.EntryOutcome("equal", "visible")
"""
PORT = ("port", "net.py", "--torch", "net:Net()", "--inputs", "net:inputs", "--out", "ported")
CONVERT = ("convert", "a.bin", "w.pdparams", "--pair", "mine.py")

WRITERS: Mapping[str, Writer] = {
    "a record": Writer("r.npy", ENDING + RECORD, 8000),
    "a trace": Writer("t.trace", ENDING + TRACE, 8000),
    "a checkpoint": Writer("s.state", ENDING + CHECKPOINT, 8000),
    "a check's log": Writer("forward.log", CHECK, 300, keeps=False),
    "a step's script": Writer("log_reprod/strict/lr_torch.npy", SCRIPT, 900, '"."', keeps=False),
    "curves --report": Writer(
        "c.html", command("curves", "one", "two", "--report", "c.html"), 3000
    ),
    "pair --report": Writer("p.html", command("pair", "mine.py", "--report", "p.html"), 3000),
    "convert": Writer("w.pdparams", command(*CONVERT), 9000),
    "submit": Writer("s.zip", command("submit", "log_reprod", "--output", "s.zip"), 4000),
    "api --write": Writer(
        "table/README.md", API + command("api", "--write", "table"), 3000, "table"
    ),
    "new": Writer("mine/README.md", command("new", "mine"), 800, "mine", new=True),
    "port": Writer("ported/report.md", command(*PORT), 300, "ported", new=True),
    "convert --save-map": Writer("m.json", command(*CONVERT, "--save-map", "m.json"), 60),
}
NAMES = [pytest.param(n, marks=needs_paconvert) if n == "port" else n for n in WRITERS]

LIMIT = """
import resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.{action})
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""
ALONE = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo") and "." in str(arguments):
        raise OSError("no network")
sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "mine.py").write_text(PAIR)
    (folder / "net.py").write_text(NET)
    finished = run_warm_python("-c", PREPARE, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "folder"))


def run(folder: Path, writer: Writer, before: str = "", **environment: str) -> Finished:
    end = "\nimport sys; sys.stdout.flush(); sys.exit(code)"
    return run_warm_python("-c", f"{before}\n{writer.code}{end}", cwd=folder, **environment)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*.tmp")]


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_command_leaves_the_old_file(folder: Path, name: str) -> None:
    """Killed by the system at the first byte too many, wherever that is."""
    writer = WRITERS[name]
    places = np.random.default_rng(len(name)).integers(0, writer.least, 3)
    for size in (0, *places.tolist()):
        old = writer.place_old(folder)
        finished = run(folder, writer, LIMIT.format(action="SIG_DFL", size=size))
        assert finished.returncode not in (0, 1, 2), (size, finished)
        assert writer.read(folder) in (b"old" if old else None, old), size
        assert not writer.new or not (folder / writer.target).parent.exists(), size
    finished = run(folder, writer)
    assert finished.returncode == 0, finished.stderr
    assert len(writer.read(folder) or b"") >= writer.least


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_one_line(folder: Path, name: str) -> None:
    writer = WRITERS[name]
    old = writer.place_old(folder)
    finished = run(folder, writer, LIMIT.format(action="SIG_IGN", size=max(150, writer.least // 2)))
    assert finished.returncode == 2, finished
    assert "File too large" in finished.stderr and "Traceback" not in finished.stderr
    assert writer.read(folder) in (None, old)
    assert not writer.new or not (folder / writer.target).parent.exists()
    assert leftovers(folder) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_cannot_be_written_in_is_one_line(folder: Path, name: str) -> None:
    writer = WRITERS[name]
    given = writer.given or writer.target
    elsewhere = f"/proc/self/{given}" if given[0] != '"' else '"/proc/self"'
    code = writer.code.replace(given, elsewhere)
    assert code != writer.code
    error = run(folder, replace(writer, code=code))
    assert error.returncode == 2 and "Traceback" not in error.stderr, error
    if name != "a check's log":  # it tells of the log and of the result
        assert "/proc/" in one_line_error(error)


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_in_one_folder_and_neither_home_nor_network(folder: Path, name: str) -> None:
    """A folder that must be new is one run's; the other is told."""
    writer = WRITERS[name]
    writer.place_old(folder)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run, folder, writer, ALONE, HOME="/nonexistent") for _ in range(2)]
    finished = [one.result() for one in runs]
    assert sorted(one.returncode for one in finished) in ([0, 0], [0, 2] if writer.new else None)
    for one in finished:
        assert one.returncode == 0 or one_line_error(one)
    assert len(writer.read(folder) or b"") >= writer.least
    assert leftovers(folder) == []
