"""The processes of one training that torchrun starts, in torch. pd_ranks.py is its twin."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pipeline.pt.learner import place
from pipeline.training.ranks import (
    ALONE,
    FAILED,
    Ranks,
    claimed,
    follow_the_launcher,
    on_each_machine,
    one_voice,
    started,
)
from reprod_align.errors import ReprodError

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BACKENDS = {"cpu": "gloo", "gpu": "nccl"}


class Processes:
    """What every process knows and says: a `Ranks`."""

    def __init__(self, rank: int, world: int, device: str) -> None:
        """Meet the others; each works on its own GPU."""
        self.rank, self.world, self._device = rank, world, device
        if device == "gpu":
            _take_gpu(int(os.environ.get("LOCAL_RANK", rank)))
        dist.init_process_group(BACKENDS[device])

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of every process's numbers."""
        sums = torch.tensor(numbers, dtype=torch.float64, device=place(self._device))
        dist.all_reduce(sums)
        return sums.tolist()

    def gathered(self, value: Any) -> list[Any]:
        """Return every process's value."""
        values = [None] * self.world
        dist.all_gather_object(values, value)
        return values

    def from_first(self, value: Any) -> Any:
        """Return the first process's value."""
        values = [value if self.rank == 0 else None]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def wrapped(self, model: nn.Module) -> nn.Module:
        """Return the model with DistributedDataParallel around it."""
        return DistributedDataParallel(model)

    def is_first_to_fail(self) -> bool:
        """Return whether no other process has failed before."""
        store = dist.distributed_c10d._get_default_store()
        return claimed(lambda name: store.add(name, 1))


@contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """Yield the processes that were started together; ReprodError if they can't be reached."""
    rank, world = started("RANK", "WORLD_SIZE")
    if world == 1:
        yield ALONE
        return
    follow_the_launcher()
    on_each_machine(lambda: place(device), int(os.environ.get("LOCAL_RANK", rank)))
    try:
        ranks = Processes(rank, world, device)
    except (RuntimeError, ValueError) as error:
        raise ReprodError(f"process {rank} of {world} cannot meet the others: {error}") from error
    with one_voice(ranks):
        yield ranks
        dist.barrier()
    dist.destroy_process_group()


def _take_gpu(number: int) -> None:
    found = torch.cuda.device_count()
    if number > found:
        sys.exit(FAILED)  # the process before says so
    if number == found:
        raise ReprodError(f"--device gpu: this machine has {found} GPUs, and more processes")
    torch.cuda.set_device(number)
