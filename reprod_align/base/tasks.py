"""Independent tasks, run here one by one, or by workers of `dask.distributed`.

A result is a file of a folder that every machine sees, named by the digest of all that it was made from.
So whoever is stopped, the command, a worker or a machine, what was finished is there when it is asked for
again, and nothing is judged twice. Which task runs where, and that it runs again where a worker ends, is
dask's work.
"""

import logging
import pickle
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

from reprod_align.base.console import tell
from reprod_align.base.files import read_json, require_writable, write_json
from reprod_align.base.room import close_room, digest, digest_judge, run_in_room, start_room
from reprod_align.base.text import count
from reprod_align.errors import ReprodError

Task = TypeVar("Task")
Result = TypeVar("Result")
WorkFunction = Callable[[Any], Any]
RunTasks = Callable[[WorkFunction, Sequence[Any]], Iterator[tuple[Any, Any]]]
"""takes a function and tasks; yields each task with the function's result, as soon as it has it"""

__all__ = ["HERE", "ResultFolder", "Workers", "digest", "digest_judge"]

INSTALL: Final = "python -m pip install 'reprod-align[cluster]'"
_PATIENCE: Final = "10s"  # for a scheduler to answer


class ResultFolder:
    """Results by digest: one file each, which is there whole or not at all."""

    def __init__(self, folder: Path | None) -> None:
        """Take the folder; it is made with the first result. None: nothing is found, nothing kept.

        Raises ReprodError if it cannot be written.
        """
        self.folder = folder
        if folder is None:
            return
        if folder.exists() and not folder.is_dir():
            raise ReprodError(f"{folder} is not a folder: results are kept in one, a file for each")
        require_writable(folder)

    def path(self, name: str, ending: str = ".json") -> Path | None:
        """Return where the result of this digest lies, None if nothing is kept."""
        return None if self.folder is None else self.folder / f"{name}{ending}"

    def find(self, name: str) -> Any:
        """Return the result of this digest; None if there is none, or its file is damaged."""
        path = self.path(name)
        if path is None or not path.is_file():
            return None
        with suppress(ReprodError):
            return read_json(path)
        return None

    def keep(self, name: str, result: Any) -> None:
        """Keep a result, as JSON. Raises ReprodError if it cannot be written."""
        path = self.path(name)
        if path is not None:
            write_json(path, result)


# ---------------------------------------------------------------------- who runs them


@dataclass(frozen=True)
class Workers:
    """Where tasks run: in this process, or in workers of dask.distributed."""

    jobs: int = 1
    """processes on this machine; 1 is this one"""
    cluster: str = ""
    """the address of a scheduler that runs already, as tcp://HOST:8786"""

    def __post_init__(self) -> None:
        """Raise ReprodError if the values contradict each other, or dask.distributed is missing."""
        if type(self.jobs) is not int or self.jobs < 1:
            raise ReprodError(f"jobs: expected a whole number above 0, got {self.jobs!r}")
        if self.cluster and self.jobs > 1:
            raise ReprodError("jobs starts workers here, cluster uses those that run: give one")
        if self.are_apart and find_spec("distributed") is None:
            asked = f"--cluster {self.cluster}" if self.cluster else f"--jobs {self.jobs}"
            raise ReprodError(f"{asked} needs the package distributed: {INSTALL}")

    @property
    def are_apart(self) -> bool:
        """Whether the tasks run in other processes."""
        return self.jobs > 1 or bool(self.cluster)

    @contextmanager
    def at_work(self, prepare: Callable[[], object] | None = None) -> Iterator[RunTasks]:
        """Yield what runs tasks. Raises ReprodError if no scheduler answers.

        prepare: what each process does first, without being waited for; it may fail.
        """
        if not self.are_apart:
            yield _run_here
            return
        from distributed import Client, LocalCluster

        with ExitStack() as stack:
            stack.enter_context(_without_logs())
            address: Any = self.cluster
            if not address:
                # what its memory is limited to, `--memory` says; dask would end a worker in mid-task
                address = stack.enter_context(
                    LocalCluster(
                        n_workers=self.jobs, threads_per_worker=1, memory_limit=0,
                        dashboard_address=":0", silence_logs=logging.CRITICAL,
                    )
                )  # fmt: skip
            try:
                client = Client(address, timeout=_PATIENCE)
            except (OSError, ValueError) as error:
                raise ReprodError(f"no scheduler answers at {self.cluster}: {error}") from error
            crew = _Crew(client, self.cluster)
            stack.callback(crew.close)
            if prepare is not None:
                crew.prepare(prepare)
            yield crew.run


HERE: Final = Workers()
"""this process alone"""


def _run_here(work: WorkFunction, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
    for task in tasks:
        yield task, work(task)


class _Crew:
    """The workers of a scheduler, for one command."""

    def __init__(self, client: Any, address: str) -> None:
        """Take dask's client, and the scheduler's address for messages."""
        self._client, self._address = client, address
        self._command, self._is_alone = secrets.token_hex(8), False

    def prepare(self, work: Callable[[], object]) -> None:
        """Start a room on each worker that is connected, and run this function in it first."""
        self._client.run(start_room, self._command, _pack(_call, work))

    def run(self, work: WorkFunction, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        """Yield each task and its result, as the workers finish them."""
        from distributed import as_completed

        futures = {
            self._client.submit(run_in_room, self._command, _pack(work, task), pure=False): task
            for task in tasks
        }
        if not self._client.scheduler_info()["workers"]:
            tell(f"waiting for workers of {self._address}")
        try:
            for future in as_completed(futures):
                yield futures[future], self._read(future, futures[future])
        finally:
            if not self._is_alone:
                with suppress(Exception):  # the scheduler may be gone all the same
                    self._client.cancel([*futures])

    def _read(self, future: Any, task: object) -> Any:
        """Return a task's result, or raise its error; ReprodError if its workers end, or all are gone."""
        from distributed import KilledWorker

        try:
            answer: bytes = future.result()
        except KilledWorker as error:
            raise ReprodError(
                f"{task}: {count(error.allowed_failures + 1, 'worker')} ended while at it: "
                "the system may have no memory left"
            ) from error
        except Exception as error:
            self._is_alone = True
            raise ReprodError(
                f"the scheduler {self._address} is gone: what was finished is kept, start the command "
                "again"
            ) from error
        failed, found = pickle.loads(answer)
        if failed:
            raise found
        return found

    def close(self) -> None:
        """End the rooms, and leave the workers to others."""
        with suppress(Exception):  # the scheduler may be gone all the same
            if not self._is_alone:
                self._client.run(close_room, self._command)
        with suppress(Exception):
            self._client.close(timeout=1)


def _pack(work: WorkFunction, task: object) -> bytes:
    import cloudpickle

    packed: bytes = cloudpickle.dumps((digest_judge(), work, task))
    return packed


def _call(work: Callable[[], object]) -> None:
    work()


@contextmanager
def _without_logs() -> Iterator[None]:
    """Let dask log nothing in the block: a worker that ends is its own business, the rest is raised."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
