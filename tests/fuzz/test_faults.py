"""What goes wrong around a command that writes: kills, a full disk, a closed folder, two at once.

The old file stays until the new one is whole; what could not be done is one line and exit code 2.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Finished, one_line_error, run_warm_python

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
COMMAND = "from reprod_align.commands import main; code = main({words})"
PREPARE = """
import numpy as np, torch
from pathlib import Path
from reprod_align import save_record
for name in "ab":
    save_record(name, {"x": np.arange(900.0), "y": np.ones(4)})
torch.save(torch.nn.Linear(60, 40).state_dict(), "a.bin")
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


def command(*words: str) -> str:
    return COMMAND.format(words=list(words))


ENDING = "from reprod_align.base.ending import run_command\n"
RECORD = """import numpy as np; from reprod_align import save_record
code = run_command('save', lambda: save_record('r.npy', {'x': np.ones(999)}) and 0)"""
TRACE = """import numpy as np; from reprod_align.traces.file import save_trace
from tests.traces.made import trace
code = run_command('save', lambda: save_trace('t.trace', trace(np.ones(999))))"""
CHECKPOINT = """import numpy as np; from pathlib import Path
from pipeline.training.state import write_state
code = run_command('save', lambda: write_state(Path('s.state'), {'x': np.ones(999)}, {}))"""
CHECK = """from pathlib import Path; from reprod_align import Gate, check
pair = Path('a.npy'), Path('b.npy')
code = check(Gate('forward', pair, pair, Path('forward.log'), 'make'))"""
CONVERT = ("convert", "a.bin", "w.pdparams", "--pair", "mine.py")

WRITERS: Mapping[str, Writer] = {
    "a record": Writer("r.npy", ENDING + RECORD, 8000),
    "a trace": Writer("t.trace", ENDING + TRACE, 8000),
    "a checkpoint": Writer("s.state", ENDING + CHECKPOINT, 8000),
    "a check's log": Writer("forward.log", CHECK, 300),
    "curves --report": Writer(
        "c.html", command("curves", "one", "two", "--report", "c.html"), 3000
    ),
    "pair --report": Writer("p.html", command("pair", "mine.py", "--report", "p.html"), 3000),
    "convert": Writer("w.pdparams", command(*CONVERT), 9000),
    "convert --save-map": Writer("m.json", command(*CONVERT, "--save-map", "m.json"), 60),
}

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
    finished = run_warm_python("-c", PREPARE, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def run(folder: Path, writer: Writer, before: str = "", **environment: str) -> Finished:
    end = "\nimport sys; sys.stdout.flush(); sys.exit(code)"
    return run_warm_python("-c", f"{before}\n{writer.code}{end}", cwd=folder, **environment)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*.tmp")]


@pytest.mark.parametrize("name", WRITERS)
def test_a_killed_command_leaves_the_old_file(folder: Path, name: str) -> None:
    """Killed by the system at the first byte too many, wherever that is."""
    writer = WRITERS[name]
    target = folder / writer.target
    places = np.random.default_rng(len(name)).integers(0, writer.least, 3)
    old = (
        b"old" if name != "a check's log" else None
    )  # a check removes the old log first: it fails closed
    for size in (0, *places.tolist()):
        target.write_bytes(b"old")
        finished = run(folder, writer, LIMIT.format(action="SIG_DFL", size=size))
        assert finished.returncode not in (0, 1, 2), (size, finished)
        assert (target.read_bytes() if target.exists() else None) in (b"old", old), size
    finished = run(folder, writer)
    assert finished.returncode == 0, finished.stderr
    assert target.stat().st_size >= writer.least


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_one_line(folder: Path, name: str) -> None:
    writer = WRITERS[name]
    target = folder / writer.target
    target.write_bytes(b"old")
    finished = run(folder, writer, LIMIT.format(action="SIG_IGN", size=max(150, writer.least // 2)))
    assert finished.returncode == 2, finished
    assert "File too large" in finished.stderr and "Traceback" not in finished.stderr
    assert not target.exists() or target.read_bytes() == b"old"
    assert leftovers(folder) == []


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_cannot_be_written_in_is_one_line(folder: Path, name: str) -> None:
    writer = WRITERS[name]
    elsewhere = Writer("", writer.code.replace(writer.target, f"/proc/self/{writer.target}"), 0)
    error = run(folder, elsewhere)
    assert error.returncode == 2 and "Traceback" not in error.stderr, error
    if name != "a check's log":  # it tells of the log and of the result
        assert "/proc/self" in one_line_error(error)


@pytest.mark.parametrize("name", WRITERS)
def test_two_runs_in_one_folder_and_neither_home_nor_network(folder: Path, name: str) -> None:
    writer = WRITERS[name]
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run, folder, writer, ALONE, HOME="/nonexistent") for _ in range(2)]
    assert [one.result().returncode for one in runs] == [0, 0], [
        one.result().stderr for one in runs
    ]
    assert (folder / writer.target).stat().st_size >= writer.least
    assert leftovers(folder) == []
