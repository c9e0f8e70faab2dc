"""A side that lives in a process of its own, with an interpreter that may lack the other framework.

`RemoteSide` offers what `LocalSide` does; `pair.child` is the other end.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import isfunction
from multiprocessing import Pipe
from pathlib import Path
from typing import IO, Any, Final, Self

from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.errors import ReprodError
from reprod_align.model.side import Inputs, Side
from reprod_align.model.store import unload
from reprod_align.pair.file import Settings
from reprod_align.pair.wire import Wire

FUNCTIONS: Final = ("loss", "optimizer", "scheduler")
"""of `Side`: what the file may define"""
_NAMES: Final = {name: value for name, value in vars(Side).items() if not name.startswith("_")}
PROPERTIES: Final = [n for n, value in _NAMES.items() if isinstance(value, property)
                     and n not in ("name", *FUNCTIONS)]  # fmt: skip
METHODS: Final = [n for n, value in _NAMES.items() if isfunction(value) and n != "working"]
"""of `Side`: what the other process is asked by its name"""

_PATIENCE = 10.0  # seconds that a process gets to end by itself


class ProcessEnded(ReprodError):
    """A side's process ended before it had answered."""


class OutOfTime(ReprodError):
    """A side's process was ended because its time was over."""


@dataclass(frozen=True)
class Hello:
    """The first message of a side's process, sent when it is ready."""

    name: str
    functions: frozenset[str]
    """those that the file defines for this side: "loss", "optimizer", "scheduler" """
    inputs: Inputs
    settings: Settings
    remarks: list[str]
    """on the file"""
    versions: dict[str, str]
    """of the packages that its interpreter has"""
    reference: Framework = "torch"
    """of the model that is right"""


@dataclass(frozen=True)
class Launch:
    """How a side's process is started, where not as `pair` does it."""

    command: tuple[str, ...]
    """the interpreter, and what it is given before the file, the framework and the pipe"""
    environment: Mapping[str, str]
    folder: Path
    """where it works"""
    pipes: tuple[int, ...] = ()
    """further descriptors that it inherits"""
    prepare: Callable[[], None] | None = None
    """called in the new process before the interpreter starts"""
    seconds: float | None = None
    """after which it is ended"""


class RemoteSide:
    """One side of the pair in a file, in another process. Use it as a context manager.

    Each method raises ReprodError if the process is gone, and what the side itself raised.
    """

    def __init__(
        self,
        python: str,
        file: Path,
        framework: Framework,
        memory: int | None = None,
        launch: Launch | None = None,
    ) -> None:
        """Start the interpreter `python`, which loads `file`; nothing is waited for yet.

        memory: bytes that it may take before what it keeps goes to files; None: what is free.
        launch: how to start it otherwise.
        """
        self._label = f"{FRAMEWORKS[framework]} process ({python})"
        with ExitStack() as stack:  # given up again if the interpreter does not start
            self._said = stack.enter_context(tempfile.TemporaryFile())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ours, theirs = Pipe()
            self._wire = Wire(ours)
            with theirs:
                limit = [str(memory)] if memory else []
                words = (str(file), framework, str(theirs.fileno()), *limit)
                chosen = launch or Launch(
                    (python, "-m", "reprod_align.pair.child"), make_environment(folder), Path.cwd()
                )
                self._process = start_process(chosen, words, self._said, theirs.fileno())
            self._seconds, self._is_late = chosen.seconds, False
            if chosen.seconds is not None:
                timer = threading.Timer(chosen.seconds, self._end_late)
                timer.daemon = True
                timer.start()
                stack.callback(timer.cancel)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return this side."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the process, also in the middle of an answer."""
        self._process.kill()
        self._process.wait()
        self._wire.close()
        self._stack.close()

    @cached_property
    def hello(self) -> Hello:
        """What the process said first."""
        said: Hello = self._answer()
        return said

    def __getattr__(self, name: str) -> Any:
        """Return what `Side` has under this name: its methods run in the other process."""
        if name == "name":
            return self.hello.name
        if name in FUNCTIONS:  # None where the file defines none
            return name if name in self.hello.functions else None
        if name in PROPERTIES:
            return self._ask(name)
        if name in METHODS:
            return partial(self._ask, name)
        raise AttributeError(name)

    @contextmanager
    def working(
        self, dtype: str | None, throughout: bool = False, at_rest: bool = False
    ) -> Iterator[None]:
        """Work in `dtype`; afterwards everything is as it was."""
        self._ask("start_working", dtype, throughout, at_rest)
        try:
            yield
        except Exception:  # at any other, such as an interrupt, the process is ended anyway
            with suppress(ReprodError):  # the process may be gone: what was raised first says why
                self._ask("stop_working")
            raise
        self._ask("stop_working")

    def _ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        _ = self.hello  # it comes before the first answer
        unload()
        plain = [dict(one) if isinstance(one, Mapping) else one for one in arguments]
        try:
            self._wire.send((name, plain, options))
        except OSError as error:
            raise self._describe_end() from error
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._wire.receive()
        except (EOFError, OSError) as error:
            raise self._describe_end() from error
        except ReprodError:
            self._wire.close()  # where the next message begins is not known
            raise
        if isinstance(answer, ReprodError):
            raise answer
        return answer

    def _end_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def _describe_end(self) -> ReprodError:
        """Return the error that says how the process ended, and its last words."""
        if self._is_late:
            return OutOfTime(f"the {self._label} was ended after {self._seconds:g} s")
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._said.seek(0)
        lines = [line.strip() for line in self._said.read().decode(errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "nothing on stderr")
        return ProcessEnded(f"the {self._label} ended, {describe_code(code)}: {last[:300]}")


@contextmanager
def start_sides(
    file: Path, torch_python: str | None, paddle_python: str | None, memory: int | None = None
) -> Iterator[tuple[RemoteSide, RemoteSide]]:
    """Yield PyTorch's side and Paddle's, each in a process of its own; None: this interpreter.

    memory: bytes that each may take. Raises ReprodError if an interpreter does not start.
    """
    with (
        RemoteSide(torch_python or sys.executable, file, "torch", memory) as torch,
        RemoteSide(paddle_python or sys.executable, file, "paddle", memory) as paddle,
    ):
        yield torch, paddle


def describe_code(code: int) -> str:
    """Return how a process ended, in words."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def end_group(pid: int) -> None:
    """End the group of processes that a process leads: itself, and all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def start_process(
    launch: Launch, words: tuple[str, ...], said: IO[bytes], pipe: int | None = None
) -> "subprocess.Popen[bytes]":
    """Start a process whose stderr goes to `said`. Raises ReprodError if there is no such interpreter.

    pipe: what it answers through; then what it prints goes to our stderr, and else to `said` too.
    """
    try:
        return subprocess.Popen(
            [*launch.command, *words],
            env=launch.environment,
            cwd=launch.folder,
            pass_fds=[*([] if pipe is None else [pipe]), *launch.pipes],
            preexec_fn=launch.prepare,
            stdin=subprocess.DEVNULL,
            stdout=said if pipe is None else 2,  # our stdout is the report's alone
            stderr=said,
        )
    except OSError as error:
        raise ReprodError(f"cannot start {launch.command[0]}: {error.strerror or error}") from error


def make_environment(folder: Path) -> dict[str, str]:
    """Return the environment in which this package can be imported, and nothing that lies beside it.

    folder: an empty one; it gets a link to the package.
    """
    (folder / "reprod_align").symlink_to(Path(__file__).resolve().parents[1])
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"}
    return os.environ | own
