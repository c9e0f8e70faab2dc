"""One attempt at a proof: import the draft, build the model, run it, run `align`."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from types import TracebackType

from reprod_align.alignment import compare_sides
from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.conversion.models import Pair
from reprod_align.errors import describe_error
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.pair.file import PairFile, open_file
from reprod_align.porting.pair_text import PAIR
from reprod_align.porting.problem import Problem, Stage
from reprod_align.porting.stir import stir_weights
from reprod_align.report import Report


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
        return compare_sides(pair.torch, pair.paddle, pair.inputs)


@contextmanager
def open_pair(folder: Path, port: str) -> Iterator[Pair]:
    """Yield both sides of the pair file in a folder, the port's module imported anew."""
    path = folder / f"{port}.py"
    with _forget_afterwards(port, "paddle_utils"), open_file(folder / PAIR, PairFile) as file:
        torch = file.side("torch")
        with _name_stage("import", path):
            __import__(port)
        with _name_stage("build", path):
            paddle = file.side("paddle")
        yield Pair(torch, paddle, file.inputs())


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
