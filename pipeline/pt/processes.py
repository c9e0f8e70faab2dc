"""The processes of one training, as torchrun starts them."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pipeline.pt.model import use_device
from pipeline.training.processes import (
    ALONE,
    FAILED,
    Processes,
    check_on_each_machine,
    claim_first_failure,
    follow_the_launcher,
    let_one_speak,
    read_rank,
)
from reprod_align.errors import ReprodError

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BACKENDS = {"cpu": "gloo", "gpu": "nccl"}


class Launched(Processes):
    """The processes that the launcher started."""

    def __init__(self, rank: int, world: int, device: str) -> None:
        """Meet the others; each works on its own GPU."""
        self.rank, self.world, self._device = rank, world, device
        if device == "gpu":
            _take_gpu(int(os.environ.get("LOCAL_RANK", rank)))
        dist.init_process_group(BACKENDS[device])

    def add_up(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of every process's numbers."""
        sums = torch.tensor(numbers, dtype=torch.float64, device=use_device(self._device))
        dist.all_reduce(sums)
        return sums.tolist()

    def gather(self, value: Any) -> list[Any]:
        """Return every process's value."""
        values = [None] * self.world
        dist.all_gather_object(values, value)
        return values

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value."""
        values = [value if self.rank == 0 else None]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def wrap(self, model: nn.Module) -> nn.Module:
        """Return the model with DistributedDataParallel around it."""
        return DistributedDataParallel(model)

    def is_first_to_fail(self) -> bool:
        """Return whether this process is the first to fail."""
        store = dist.distributed_c10d._get_default_store()
        return claim_first_failure(lambda name: store.add(name, 1))


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """Yield the processes that were started together; ReprodError if they can't be reached."""
    rank, world = read_rank("RANK", "WORLD_SIZE")
    if world == 1:
        yield ALONE
        return
    follow_the_launcher()
    local_rank = int(os.environ.get("LOCAL_RANK", rank))
    check_on_each_machine(lambda: use_device(device), local_rank)
    try:
        processes = Launched(rank, world, device)
    except (RuntimeError, ValueError) as error:
        raise ReprodError(f"process {rank} of {world} cannot meet the others: {error}") from error
    with let_one_speak(processes):
        yield processes
        dist.barrier()
    dist.destroy_process_group()


def _take_gpu(number: int) -> None:
    found = torch.cuda.device_count()
    if number > found:
        sys.exit(FAILED)  # the process before says so
    if number == found:
        raise ReprodError(f"--device gpu: this machine has {found} GPUs, and more processes")
    torch.cuda.set_device(number)
