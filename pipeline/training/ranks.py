"""The processes of one training: who they are, and what they tell each other.

`pt_ranks` and `pd_ranks` join those that torchrun and paddle.distributed.launch start; a training in one
process is `ALONE`. Every process calls the same methods in the same order: each waits for the others.
"""

import argparse
import ctypes
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any, NoReturn, Protocol, TypeVar

from reprod_align.errors import ReprodError

Value = TypeVar("Value")

FAILED = 2  # the exit code of a process that leaves it to another to say why
PATIENCE = 1.0  # seconds in which the first process, which the launchers show, may speak first
_SET_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
_LOST = re.compile("gloo|nccl|connection|tcp ?store|socket", re.IGNORECASE)


class Ranks(Protocol):
    """This process among those of the training; `rank` counts from 0, `world` is how many there are."""

    rank: int
    world: int

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of every process's numbers, added in float64."""

    def gathered(self, value: Value) -> list[Value]:
        """Return every process's value, in the order of the ranks."""

    def from_first(self, value: Value) -> Value:
        """Return the first process's value."""

    def wrapped(self, model: Any) -> Any:
        """Return `model` as it is called in training: its gradients become the mean over the processes."""

    def is_first_to_fail(self) -> bool:
        """Return whether no other process has said why the training ends."""


class Alone:
    """The one process of a training that no launcher started."""

    rank = 0
    world = 1

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Return the numbers."""
        return list(numbers)

    def gathered(self, value: Value) -> list[Value]:
        """Return the value alone."""
        return [value]

    def from_first(self, value: Value) -> Value:
        """Return the value."""
        return value

    def wrapped(self, model: Any) -> Any:
        """Return the model."""
        return model

    def is_first_to_fail(self) -> bool:
        """Return True: there is no other."""
        return True


ALONE = Alone()


def first_then_others(ranks: Ranks, work: Callable[[], Value]) -> Value:
    """Do `work` in every process: the first one may write files, and it alone makes remarks."""
    if not ranks.rank:
        done = work()
        ranks.from_first(None)
        return done
    ranks.from_first(None)
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        return work()


def started(rank: str, world: str) -> tuple[int, int]:
    """Return this process's rank and how many there are, from the launcher's environment variables."""
    try:
        return int(os.environ.get(rank, 0)), int(os.environ.get(world, 1))
    except ValueError as error:
        raise ReprodError(f"{rank} and {world} must be whole numbers: {error}") from error


def on_each_machine(check: Callable[[], object], local_rank: int) -> None:
    """Run what fails in every process of a machine or in none; its first process says so."""
    try:
        check()
    except ReprodError:
        if local_rank:
            sys.exit(FAILED)
        raise


def follow_the_launcher() -> None:
    """Get SIGTERM when the launcher dies, whatever it dies of: it can't pass on `kill -9`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))


@contextmanager
def one_voice(ranks: Ranks) -> Iterator[None]:
    """Let one process alone say what ends the block; the others leave with FAILED and no word."""
    try:
        yield
    except Exception as error:
        if ranks.world > 1:
            _leave_it_to_others(ranks)
            if _is_lost(error):
                raise ReprodError(
                    "another process of this training has ended; with --output, the same command "
                    "goes on from the last checkpoint"
                ) from error
        raise
    except KeyboardInterrupt:
        if ranks.rank:
            sys.exit(128 + signal.SIGINT)
        raise


def _leave_it_to_others(ranks: Ranks) -> None:
    if ranks.rank:
        time.sleep(PATIENCE)
    if not ranks.is_first_to_fail():
        sys.exit(FAILED)


def _is_lost(error: Exception) -> bool:
    """Whether the error is what a collective operation raises when a process is gone."""
    return not isinstance(error, ReprodError) and bool(_LOST.search(str(error)))


def claimed(count: Callable[[str], int]) -> bool:
    """Return whether the training's shared store counts this failure as the first; not if it is gone."""
    try:
        return count("reprod_align/failed") == 1
    except Exception:  # of many kinds in Paddle; the store was the first process's, which is gone
        return False


def quiet_unless_first(
    parser: argparse.ArgumentParser, environment: Mapping[str, str] = os.environ
) -> None:
    """Say what is wrong with the command line, the same in every process, in the first one alone."""
    names = (("RANK", "WORLD_SIZE"), ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
    for rank, world in names:
        if environment.get(world, "1") != "1" and environment.get(rank, "0") != "0":
            parser.error = _leave  # type: ignore[method-assign]


def _leave(message: str) -> NoReturn:
    sys.exit(FAILED)
