"""Starts the ranks with `paddle.distributed.launch`, talks to all of them at once, and ends them.

A rank that ends, answers nothing for too long or cannot start is a RankFailure: which rank, how, and
where its log lies. However this process ends, no rank outlives it: each holds a lifeline, and goes when
it breaks.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Listener, wait
from pathlib import Path
from typing import Any, Final, Self

from reprod_align.errors import ReprodError
from reprod_align.pair.remote import end_group, make_environment
from reprod_align.pair.wire import Wire
from reprod_align.parallel import Mesh

ADDRESS: Final = "REPROD_ALIGN_RANKS"
LIFELINE: Final = "REPROD_ALIGN_LIFELINE"
KEY: Final = "REPROD_ALIGN_KEY"
MESH: Final = "REPROD_ALIGN_MESH"
"""the environment of a rank: where it connects, and what run it belongs to"""


@dataclass(frozen=True)
class Asked:
    """What a rank asks as its model runs."""

    topic: str
    """"inputs" or "outputs": what to pin at a call; "objective": what the outputs weigh"""
    path: str
    index: int
    parent: int | None
    leaves: dict[str, tuple[Any, bool]]
    """by path: the array that this rank holds, and whether a gradient can flow through it"""


@dataclass(frozen=True)
class OpenedPort:
    """What a rank says of the port that it has made."""

    name: str
    functions: frozenset[str]
    """those that the file defines for this side: "loss", "optimizer", "scheduler" """
    shards: dict[str, tuple[int | None, str]]
    """by name: the axis that is cut among the ranks of tp, None for none; and the kind of layer"""
    borders: dict[str, tuple[int | None, int | None]]
    """by path of the engine's layers: the axis along which they take, and give, a part"""
    planted: str = ""
    """where the fault that was asked for is: a layer or parameter, "" for the model or its training"""
    no_place: str = ""
    """why the fault that was asked for has no place in the port"""


TIME_LIMIT: Final = 300.0
"""seconds that every rank gets for one answer, unless another limit is given"""
_GRACE: Final = 5.0  # seconds that the others get to answer when one rank has failed
_LAST_WORDS: Final = 300  # characters


class RankFailure(ReprodError):
    """A rank is gone, or does not answer: nothing more can be asked of any."""


class Ranks:
    """The processes of a parallel run. Use it as a context manager.

    Raises RankFailure where a rank does not start.
    """

    def __init__(
        self,
        mesh: Mesh,
        python: str | None = None,
        time_limit: float = TIME_LIMIT,
        logs: Path | None = None,
    ) -> None:
        """Take the mesh, an interpreter that has Paddle, and a folder for the ranks' logs.

        Without a folder the logs are kept only if a rank fails.
        """
        self.mesh, self._limit = mesh, time_limit
        self._python, self._own_logs = python or sys.executable, logs is None
        self._logs = Path(tempfile.mkdtemp(prefix="reprod_align_ranks_")) if logs is None else logs
        self._folder = Path(tempfile.mkdtemp(prefix="reprod_align_"))
        self._connections: list[Connection[Any, Any]] = []
        self._lifelines: list[Connection[Any, Any]] = []
        self._pids: dict[int, int] = {}
        self._launcher: subprocess.Popen[bytes] | None = None
        self.broken: RankFailure | None = None
        """why nothing more can be asked"""
        self.stands_in: list[str] = []
        """the names of the engine's functions that CPU stand-ins replace"""

    def __enter__(self) -> Self:
        """Start the ranks."""
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """End the ranks, whatever they are at."""
        self._end()

    # ------------------------------------------------------------------ questions

    def ask(self, name: str, *arguments: Any, **options: Any) -> list[Any]:
        """Ask every rank the same, and return their answers in the order of the ranks."""
        return self.ask_each([(name, arguments, options)] * self.mesh.size)

    def ask_each(self, questions: Sequence[tuple[str, Sequence[Any], dict[str, Any]]]) -> list[Any]:
        """Ask each rank its own question; errors are among the answers."""
        self.send([(name, list(arguments), options) for name, arguments, options in questions])
        return self.receive()

    def send(self, messages: Sequence[Any]) -> None:
        """Send each rank its message."""
        if self.broken is not None:
            raise self.broken
        for rank, message in enumerate(messages):
            try:
                self._wires[rank].send(message)
            except OSError:
                raise self._fail(rank, "ended") from None

    def receive(self) -> list[Any]:
        """Return one message of every rank, in their order.

        An error of one rank stands for the others, which may wait for it for ever.
        """
        answers: dict[int, Any] = {}
        deadline = time.monotonic() + self._limit
        while len(answers) < self.mesh.size:
            silent = {self._connections[r]: r for r in range(self.mesh.size) if r not in answers}
            ready = wait(list(silent), max(0.0, deadline - time.monotonic()))
            if not ready:
                failed = [r for r, one in answers.items() if isinstance(one, ReprodError)]
                if failed:
                    # the others hang in a collective that the rank which failed never enters
                    self.broken = RankFailure(
                        f"rank {failed[0]} raised and the others wait for it: {answers[failed[0]]}"
                    )
                    return [answers.get(r, answers[failed[0]]) for r in range(self.mesh.size)]
                late = next(r for r in range(self.mesh.size) if r not in answers)
                waited = f"has not answered for {self._limit:.0f} s"
                raise self._fail(
                    late, f"{waited}, as a collective does that another rank never enters"
                )
            rank = silent[ready[0]]  # type: ignore[index]
            try:
                answers[rank] = self._wires[rank].receive()
            except (EOFError, OSError):
                raise self._fail(rank, "ended") from None
            if isinstance(answers[rank], ReprodError):
                deadline = min(deadline, time.monotonic() + _GRACE)
        return [answers[rank] for rank in range(self.mesh.size)]

    # ------------------------------------------------------------------ beginning and end

    def _start(self) -> None:
        key = secrets.token_bytes(16)
        mesh, folder = self.mesh, self._folder
        with (
            Listener(str(folder / "ranks"), "AF_UNIX", mesh.size, key) as listener,
            Listener(str(folder / "lifelines"), "AF_UNIX", mesh.size, key) as lifelines,
        ):
            own = {ADDRESS: listener.address, LIFELINE: lifelines.address}
            own |= {KEY: key.hex(), MESH: mesh.name}
            packages = folder / "packages"
            packages.mkdir()
            environment = make_environment(packages) | {k: str(v) for k, v in own.items()}
            environment.setdefault("OMP_NUM_THREADS", "1")
            environment["MKL_NUM_THREADS"] = environment["OMP_NUM_THREADS"]
            self._launcher = self._launch(environment)
            self._meet(listener, lifelines)
        started = self.receive()
        for rank, said in enumerate(started):
            if isinstance(said, ReprodError):
                raise self._fail(rank, f"cannot start fleet ({said})")
        self.stands_in = started[0]

    def _launch(self, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        words = ["--nproc_per_node", str(self.mesh.size), "--log_dir", str(self._logs)]
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") == ""
        words += ["--backend", "auto" if shutil.which("nvidia-smi") and not hidden else "gloo"]
        command = [self._python, "-m", "paddle.distributed.launch", *words]
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            with (self._logs / "launch.log").open("wb") as said:
                return subprocess.Popen(
                    [*command, str(Path(__file__).with_name("rank.py"))],
                    env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                    start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise ReprodError(f"cannot start {command[0]}: {error.strerror or error}") from error

    def _meet(self, listener: Listener, lifelines: Listener) -> None:
        """Wait until every rank has connected, while the launcher lives."""
        deadline = time.monotonic() + self._limit
        met: dict[int, Connection[Any, Any]] = {}
        while len(met) < self.mesh.size:
            self._lifelines.append(self._accept(lifelines, deadline))
            connection = self._accept(listener, deadline)
            rank, pid = Wire(connection).receive()
            met[rank], self._pids[rank] = connection, pid
        self._connections = [met[rank] for rank in range(self.mesh.size)]
        self._wires = [Wire(connection) for connection in self._connections]

    def _accept(self, listener: Any, deadline: float) -> "Connection[Any, Any]":
        """Return the next connection. Raises RankFailure if the launcher ends or time is up first."""
        socket = listener._listener._socket
        while not wait([socket], 0.2):
            assert self._launcher is not None
            over = time.monotonic() > deadline
            if self._launcher.poll() is not None or over:
                missing = next(r for r in range(self.mesh.size) if r not in self._pids)
                how = f"has not started within {self._limit:.0f} s" if over else "cannot be started"
                raise self._fail(missing, how)
        found: Connection[Any, Any] = listener.accept()
        return found

    def _fail(self, rank: int, how: str) -> RankFailure:
        """Return the error that says what became of a rank, with its last words and its log."""
        self._own_logs = False  # they are worth keeping now
        log = self._logs / f"workerlog.{rank}"
        code = self._find_code(rank) if how == "ended" else ""
        if not log.is_file() or not log.stat().st_size:
            log = self._logs / "launch.log"
        said = _read_last_line(log)
        self.broken = RankFailure(
            f"rank {rank} of {self.mesh.size} {how}{code}: {said}; log: {log}"
        )
        return self.broken

    def _find_code(self, rank: int) -> str:
        """Return how a rank's process ended, as far as the launcher's log tells."""
        with suppress(OSError):
            for line in (self._logs / "launch.log").read_text(errors="replace").splitlines():
                if "exit code" in line or "exit_code" in line:
                    return f" ({line.strip()[-60:]})"
        return ""

    def _end(self) -> None:
        for connection in [*self._lifelines, *self._connections]:
            connection.close()
        for pid in self._pids.values():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if self._launcher is not None:
            end_group(self._launcher.pid)
            self._launcher.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._own_logs:
            shutil.rmtree(self._logs, ignore_errors=True)


def _read_last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "it left no log"
    told = [line.strip() for line in lines if line.strip()]
    return told[-1][:_LAST_WORDS] if told else "nothing in its log"
