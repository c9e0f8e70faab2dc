"""The processes of one training that paddle.distributed.launch starts, in Paddle. pt_ranks.py is its twin."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

from pipeline.pd.learner import place
from pipeline.training.ranks import (
    ALONE,
    Ranks,
    claimed,
    follow_the_launcher,
    on_each_machine,
    one_voice,
    started,
)
from reprod_align.errors import ReprodError

import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.base import core

BACKENDS = {"cpu": "gloo", "gpu": "nccl"}


class Processes:
    """What every process knows and says: a `Ranks`."""

    def __init__(self, rank: int, world: int, device: str) -> None:
        """Meet the others; each works on the GPU that the launcher chose for it."""
        self.rank, self.world, self._device = rank, world, device
        os.environ["PADDLE_DISTRI_BACKEND"] = BACKENDS[device]  # a GPU build takes NCCL otherwise
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):  # it tells its flags
            dist.init_parallel_env()

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of every process's numbers."""
        place(self._device)
        sums = paddle.to_tensor(numbers, dtype="float64")
        dist.all_reduce(sums)
        return sums.tolist()

    def gathered(self, value: Any) -> list[Any]:
        """Return every process's value."""
        values = []
        dist.all_gather_object(values, value)
        return values

    def from_first(self, value: Any) -> Any:
        """Return the first process's value."""
        values = [value if self.rank == 0 else None]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def wrapped(self, model: nn.Layer) -> nn.Layer:
        """Return the model with DataParallel around it."""
        return paddle.DataParallel(model)

    def is_first_to_fail(self) -> bool:
        """Return whether no other process has failed before."""
        store = core.create_or_get_global_tcp_store()
        return claimed(lambda name: store.add(name, 1))


@contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """Yield the processes that were started together; ReprodError if they can't be reached."""
    rank, world = started("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM")
    if world == 1:
        yield ALONE
        return
    follow_the_launcher()
    on_each_machine(lambda: place(device), int(os.environ.get("PADDLE_RANK_IN_NODE", rank)))
    try:
        ranks = Processes(rank, world, device)
    except (RuntimeError, ValueError) as error:
        raise ReprodError(f"process {rank} of {world} cannot meet the others: {error}") from error
    with one_voice(ranks):
        yield ranks
        dist.barrier()
    dist.destroy_process_group()
