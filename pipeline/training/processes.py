"""The processes of one training: who they are, and what they tell each other.

pipeline/pt/processes.py joins those that torchrun starts, pipeline/pd/processes.py those of
paddle.distributed.launch; a training in one process is `ALONE`. Every process calls the same methods in
the same order: each waits for the others.
"""

import argparse
import ctypes
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any, NoReturn, TypeVar

from reprod_align.errors import ReprodError

Value = TypeVar("Value")

FAILED = 2  # the exit code of a process that leaves it to another to say why
PATIENCE = 1.0  # seconds in which the first process, which the launchers show, may speak first
_SET_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
_LOST = re.compile("gloo|nccl|connection|tcp ?store|socket", re.IGNORECASE)


class Processes:
    """The processes of a training; this class is the one process that no launcher started.

    `rank` is this process's number from 0, `world` is how many there are.
    """

    rank = 0
    world = 1

    def add_up(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of every process's numbers, added in float64."""
        return list(numbers)

    def gather(self, value: Value) -> list[Value]:
        """Return every process's value, in the order of the processes."""
        return [value]

    def broadcast(self, value: Value) -> Value:
        """Return the first process's value."""
        return value

    def wrap(self, model: Any) -> Any:
        """Return `model` as it is called in training: its gradients become the mean over the processes."""
        return model

    def is_first_to_fail(self) -> bool:
        """Return whether this process is the first to say why the training ends."""
        return True


ALONE = Processes()


def run_first_alone(processes: Processes, work: Callable[[], Value]) -> Value:
    """Do `work` in every process, the first one before the others: it may write files and print."""
    if not processes.rank:
        done = work()
        processes.broadcast(None)
        return done
    processes.broadcast(None)
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        return work()


def read_rank(rank: str, world: str) -> tuple[int, int]:
    """Return this process's rank and how many there are, from the launcher's environment variables."""
    try:
        return int(os.environ.get(rank, 0)), int(os.environ.get(world, 1))
    except ValueError as error:
        raise ReprodError(f"{rank} and {world} must be whole numbers: {error}") from error


def check_on_each_machine(check: Callable[[], object], local_rank: int) -> None:
    """Run a check that fails in all processes of a machine or succeeds in all; the first reports it."""
    try:
        check()
    except ReprodError:
        if local_rank:
            sys.exit(FAILED)
        raise


def follow_the_launcher() -> None:
    """Get SIGTERM when the launcher dies, also of `kill -9`, which it cannot pass on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))


@contextmanager
def let_one_speak(processes: Processes) -> Iterator[None]:
    """Let one process alone report what ends the block; the others exit silently with FAILED."""
    try:
        yield
    except Exception as error:
        if processes.world > 1:
            _leave_it_to_others(processes)
            if _is_lost(error):
                raise ReprodError(
                    "another process of this training has ended; with --output, the same command "
                    "goes on from the last checkpoint"
                ) from error
        raise
    except KeyboardInterrupt:
        if processes.rank:
            sys.exit(128 + signal.SIGINT)
        raise


def _leave_it_to_others(processes: Processes) -> None:
    if processes.rank:
        time.sleep(PATIENCE)
    if not processes.is_first_to_fail():
        sys.exit(FAILED)


def _is_lost(error: Exception) -> bool:
    """Whether a collective operation raised the error because another process is gone."""
    return not isinstance(error, ReprodError) and bool(_LOST.search(str(error)))


def claim_first_failure(count: Callable[[str], int]) -> bool:
    """Return whether the training's shared store counts this failure as the first.

    False without a store: it is gone with the first process.
    """
    try:
        return count("reprod_align/failed") == 1
    except Exception:  # of many kinds in Paddle
        return False


def quieten_unless_first(parser: argparse.ArgumentParser) -> None:
    """Let the first process alone report a wrong command line: all processes have the same."""
    names = (("RANK", "WORLD_SIZE"), ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
    for rank, world in names:
        if os.environ.get(world, "1") != "1" and os.environ.get(rank, "0") != "0":
            parser.error = _leave  # type: ignore[method-assign]


def _leave(message: str) -> NoReturn:
    sys.exit(FAILED)
