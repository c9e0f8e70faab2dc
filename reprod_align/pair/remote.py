"""A side that lives in a process of its own, with an interpreter that may lack the other framework.

`RemoteSide` is to the judge what `LocalSide` is; `remote_child` is the other end.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import Pipe
from pathlib import Path
from typing import IO, Any, Self

from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.errors import ReprodError
from reprod_align.model.projection import Projection
from reprod_align.model.settings import OptimizerSettings
from reprod_align.model.side import Inputs, ModelInfo, Step
from reprod_align.model.trace import Array, Trace, unload
from reprod_align.model.watch import NO_PINS, Keep, Pins
from reprod_align.pair.file import FRAMEWORKS, Framework, Settings
from reprod_align.pair.wire import Wire

_PATIENCE = 10.0  # seconds that a process gets to end by itself


@dataclass(frozen=True)
class Hello:
    """What a side's process says when it is ready."""

    name: str
    functions: frozenset[str]
    """those that the file defines for this side: "loss", "optimizer", "scheduler" """
    inputs: Inputs
    settings: Settings
    remarks: list[str]
    """on the file"""


class RemoteSide:
    """One side of the pair in a file, in another process. Use it as a context manager.

    Each method raises ReprodError if the process is gone, and what the side itself raised.
    """

    def __init__(self, python: str, file: Path, framework: Framework) -> None:
        """Start the interpreter `python`, which loads `file`; nothing is waited for yet."""
        self._label = f"{FRAMEWORKS[framework]} process ({python})"
        with ExitStack() as stack:  # given up again if the interpreter does not start
            self._said = stack.enter_context(tempfile.TemporaryFile())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ours, theirs = Pipe()
            self._wire = Wire(ours)
            with theirs:
                words = str(file), framework, str(theirs.fileno())
                self._process = _started(python, words, theirs.fileno(), folder, self._said)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return this side."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the process, whatever it is at."""
        self._process.kill()
        self._process.wait()
        self._wire.close()
        self._stack.close()

    @cached_property
    def hello(self) -> Hello:
        """What the process said first."""
        said: Hello = self._answer()
        return said

    @property
    def name(self) -> str:
        """The framework's name."""
        return self.hello.name

    @property
    def remarks(self) -> Sequence[str]:
        """What is no fault but should be known."""
        said: list[str] = self._ask("remarks")
        return said

    @property
    def asked_float32(self) -> bool:
        """Whether the model asked for float32 while float64 was at work."""
        return bool(self._ask("asked_float32"))

    @property
    def loss(self) -> object | None:
        """None if there is no loss."""
        return self._function("loss")

    @property
    def optimizer(self) -> object | None:
        """None if there is no optimizer."""
        return self._function("optimizer")

    @property
    def scheduler(self) -> object | None:
        """None if there is no scheduler."""
        return self._function("scheduler")

    def describe(self) -> ModelInfo:
        """Return the model's modules with their settings, and its tensors."""
        info: ModelInfo = self._ask("describe")
        return info

    def values(self) -> dict[str, Array]:
        """Return every parameter and buffer by name, in the framework's own layout."""
        arrays: dict[str, Array] = self._ask("values")
        return arrays

    def load(self, values: Mapping[str, Array]) -> None:
        """Give the named tensors these values."""
        self._ask("load", dict(values))

    def optimizer_settings(self) -> OptimizerSettings:
        """Return how the optimizer treats each parameter."""
        settings: OptimizerSettings = self._ask("optimizer_settings")
        return settings

    @contextmanager
    def working(self, dtype: str | None, throughout: bool = False) -> Iterator[None]:
        """Work in `dtype`; afterwards everything is as it was."""
        self._ask("start_working", dtype, throughout)
        try:
            yield
        except Exception:  # at any other, such as an interrupt, the process is ended anyway
            self._ask("stop_working")
            raise
        self._ask("stop_working")

    def run(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep = "outputs",
        objective: Projection | None = None,
        pins: Pins = NO_PINS,
    ) -> Trace:
        """Run forward and backward once, as `LocalSide` does."""
        unload()
        trace: Trace = self._ask("run", inputs, training, draws, keep, objective, pins)
        return trace

    def train(
        self,
        inputs: Inputs,
        steps: int,
        draws: Sequence[KeyedDraws],
        objective: Projection | None = None,
        gradients: Sequence[Mapping[str, Array]] | None = None,
        rates: Sequence[Sequence[float]] | None = None,
    ) -> list[Step]:
        """Train for `steps` steps, as `LocalSide` does."""
        unload()
        taken: list[Step] = self._ask("train", inputs, steps, draws, objective, gradients, rates)
        return taken

    def rates(self, steps: int) -> list[list[float]]:
        """Return the learning rates of the schedule alone."""
        rates: list[list[float]] = self._ask("rates", steps)
        return rates

    def _function(self, name: str) -> object | None:
        return name if name in self.hello.functions else None

    def _ask(self, method: str, *arguments: object) -> Any:
        try:
            self._wire.send((method, arguments))
        except OSError as error:
            raise self._gone() from error
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._wire.receive()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        if isinstance(answer, ReprodError):
            raise answer
        return answer

    def _gone(self) -> ReprodError:
        """Return the error that says how the process ended, and its last words."""
        how = _ending(self._ended())
        self._said.seek(0)
        lines = [line.strip() for line in self._said.read().decode(errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "nothing on stderr")
        return ReprodError(f"the {self._label} ended, {how}: {last[:300]}")

    def _ended(self) -> int:
        try:
            return self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _started(
    python: str, words: tuple[str, ...], pipe: int, folder: Path, said: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """Start the other end. Raises ReprodError if there is no such interpreter."""
    try:
        return subprocess.Popen(
            [python, "-m", "reprod_align.pair.child", *words],
            env=_environment(folder),
            pass_fds=[pipe],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what the file prints; our stdout is the report's alone
            stderr=said,
        )
    except OSError as error:
        raise ReprodError(f"cannot start {python}: {error.strerror or error}") from error


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment in which this package can be imported, and nothing that lies beside it.

    folder: an empty one; it gets a link to the package.
    """
    (folder / "reprod_align").symlink_to(Path(__file__).resolve().parents[1])
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"}
    return os.environ | own
