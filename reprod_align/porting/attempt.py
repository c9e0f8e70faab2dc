"""One attempt at a proof: import the draft, build the model, run it, run `align`.

What stands in the way is a Problem. A port runs in a process of its own (`run_guarded`), so that a draft
which ends the process is a problem like any other.
"""

import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import walk_tb
from types import ModuleType, TracebackType
from typing import Any, Final, Literal

from reprod_align.alignment import compare_pair
from reprod_align.backends import replace_attribute
from reprod_align.base.blocks import Array
from reprod_align.conversion.weight_map import ModelPair
from reprod_align.errors import describe_error
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.pair import PairSpec
from reprod_align.pair.file import PairFile, open_file
from reprod_align.porting.source import PAIR
from reprod_align.randomness import KeyedDraws
from reprod_align.report import Finding, Report

import numpy as np

Stage = Literal["import", "build", "run", "align"]


@dataclass(frozen=True)
class Problem:
    """One obstacle, and where it stands."""

    stage: Stage
    text: str
    """the error as "NameError: name 'Tensor' is not defined", or the finding's message"""
    line: int | None = None
    """of the draft"""
    code: str = ""
    """what stands in that line"""
    finding: Finding | None = None
    below: int | None = None
    """how many lines follow it: an edit of this line leaves that as it is"""

    def __str__(self) -> str:
        """Return it in one line."""
        place = f"line {self.line}: " if self.line else ""
        return f"{self.stage}: {place}{self.text}"


_SEED: Final = 20213
_STATISTICS: Final = ("running_mean", "running_var")
_SMALL, _LARGE = 0.02, 0.2


def stir_weights(side: Side) -> None:
    """Move a side's weights off their constants, for good.

    Rows of a matrix and vectors that hold one value throughout are moved, running statistics too;
    other buffers stay: they are masks and tables.
    """
    source = np.random.default_rng(_SEED)
    tensors, values = side.describe().tensors, side.values()
    for name, info in tensors.items():
        if info.is_float and (info.is_parameter or info.role in _STATISTICS) and values[name].size:
            side.load({name: _stir(values[name], source)})


def _stir(array: Array, source: np.random.Generator) -> Array:
    """Return an array with its constant rows moved."""
    rows = array.reshape(len(array) if array.ndim > 1 else 1, -1).astype(np.float64)
    constant = (rows == rows[:, :1]).all(axis=1, keepdims=True)
    noise = source.uniform(_SMALL, _LARGE, rows.shape)
    stirred = np.where(constant, rows * (1 + noise) + noise / 2, rows)
    return stirred.reshape(array.shape).astype(array.dtype)


class Obstacle(Exception):
    """The draft does not get as far as a comparison."""

    def __init__(self, problem: Problem) -> None:
        """Keep the problem."""
        super().__init__(str(problem))
        self.problem = problem


def attempt(folder: Path, port: str) -> Report:
    """Judge the pair in a folder. Raises Obstacle if the port does not import, build or run.

    port: the name of the port's module, which lies in the folder. Constant weights are moved off their
    constants first: a faithful port agrees on any weights. What PyTorch's side raises passes unchanged.
    """
    with open_pair(folder, port) as pair:
        with _name_stage("run", folder / f"{port}.py"):
            _run_port(pair.paddle, pair.inputs)
        stir_weights(pair.torch)
        try:
            return compare_pair(PairSpec(pair.torch, pair.paddle, pair.inputs))
        except ModelFailure as error:  # a kernel that float64 lacks
            if error.framework != pair.paddle.name:
                raise
            raise Obstacle(_make_problem("run", error, folder / f"{port}.py")) from error


@contextmanager
def open_pair(folder: Path, port: str) -> Iterator[ModelPair]:
    """Yield both sides of the pair file in a folder, the port's module imported anew."""
    path = folder / f"{port}.py"
    with _forget_afterwards(port, "paddle_utils"), open_file(folder / PAIR, PairFile) as file:
        torch = file.side("torch")
        with _name_stage("import", path):
            __import__(port)
        with _name_stage("build", path):
            paddle = file.side("paddle")
        yield ModelPair(torch, paddle, file.inputs())


@contextmanager
def open_port(folder: Path, port: str) -> Iterator[Callable[[], ModuleType]]:
    """Yield what imports the port's module from a folder anew."""
    with (
        _forget_afterwards(port, "paddle_utils"),
        replace_attribute(sys, "path", [str(folder), *sys.path]),
    ):
        yield lambda: import_module(port)


def _run_port(port: Side, inputs: Inputs) -> None:
    """Run the port in both modes by itself: an error shows its line before anything is compared."""
    with warnings.catch_warnings(), port.working("float64", throughout=True):
        warnings.simplefilter("ignore")
        for training in (False, True):
            try:
                port.run(inputs, training, KeyedDraws(0, {}))
            except ModelFailure as error:
                if not error.is_unshared and not error.lacks_kernel:
                    raise


@contextmanager
def _forget_afterwards(*names: str) -> Iterator[None]:
    """Import the named modules anew in the block, and leave none of them behind."""
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        for name in names:
            sys.modules.pop(name, None)
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.dont_write_bytecode = kept


@contextmanager
def _name_stage(stage: Stage, path: Path) -> Iterator[None]:
    """Turn what the block raises into an Obstacle with the draft's line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise Obstacle(_make_problem(stage, error, path)) from error


def _make_problem(stage: Stage, error: BaseException, path: Path) -> Problem:
    cause = error.__cause__ or error  # of a ModelFailure, or of what CALL raised
    text = error.text if isinstance(error, ModelFailure) else describe_error(cause)
    line = _find_line(cause, path)
    if not line:
        return Problem(stage, text)
    rows = path.read_text(encoding="utf-8").splitlines()
    return Problem(stage, text, line, rows[line - 1].strip(), below=len(rows) - line)


def _find_line(error: BaseException, path: Path) -> int | None:
    """Return the innermost line of a file that an error came through."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = list(_walk(error.__traceback__, path))
    return lines[-1] if lines else None


def _walk(trace: TracebackType | None, path: Path) -> Iterator[int]:
    for frame, line in walk_tb(trace):
        if Path(frame.f_code.co_filename) == path:
            yield line


VARIABLE: Final = "REPROD_ALIGN_PORT_GUARD"
"""the folder in which a guarded process notes what it attempts"""
_MOST: Final = 5  # restarts
_FAULTS: Final = {
    getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGBUS", "SIGILL")
    if hasattr(signal, name)
}  # fmt: skip
_open: list[Any] = []  # the trace's file, as long as the process lives


def is_guarded() -> bool:
    """Tell whether this process is one that `run_guarded` started."""
    return VARIABLE in os.environ


def run_guarded(words: Sequence[str]) -> int:
    """Run a command that ports, again if a fault ends it while it attempts a draft; return its exit code."""
    with TemporaryDirectory() as folder:
        for _ in range(_MOST):
            done = subprocess.run(words, env={**os.environ, VARIABLE: folder})
            if -done.returncode not in _FAULTS or not _note_fault(Path(folder), -done.returncode):
                break
        return done.returncode


def note_attempt(text: str, file: str) -> Problem | None:
    """Note that a draft is attempted next; return its problem if that ended a process before.

    file: the draft's name, for its line in the trace.
    """
    if not is_guarded():
        return None
    folder = Path(os.environ[VARIABLE])
    digest = sha256(text.encode()).hexdigest()
    ended = folder / f"{digest}.json"
    if ended.is_file():
        found = json.loads(ended.read_text(encoding="utf-8"))
        line = found["line"]
        code = text.splitlines()[line - 1].strip() if line else ""
        return Problem("run", f"the process ended with {found['signal']}", line, code)
    if paddle := sys.modules.get("paddle"):
        paddle.disable_signal_handler()  # it would hide the Python lines
    (folder / "attempt.json").write_text(json.dumps([digest, file]), encoding="utf-8")
    _open[:] = [(folder / "trace.txt").open("w", encoding="utf-8")]
    faulthandler.enable(_open[0])
    return None


def _note_fault(folder: Path, number: int) -> bool:
    """Keep which draft ended the process, and its line; tell whether it was one that is not known yet."""
    attempt, trace = folder / "attempt.json", folder / "trace.txt"
    if not attempt.is_file():
        return False
    digest, file = json.loads(attempt.read_text(encoding="utf-8"))
    text = trace.read_text(encoding="utf-8", errors="replace") if trace.is_file() else ""
    lines = re.findall(rf'{re.escape(file)}", line (\d+)', text)
    ended = folder / f"{digest}.json"
    if ended.is_file():
        return False
    found = {"signal": signal.Signals(number).name, "line": int(lines[0]) if lines else None}
    ended.write_text(json.dumps(found), encoding="utf-8")
    return True
