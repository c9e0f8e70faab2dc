"""The processes of one training, as paddle.distributed.launch starts them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

from pipeline.pd.model import use_device
from pipeline.training.processes import (
    ALONE,
    Processes,
    check_on_each_machine,
    claim_first_failure,
    follow_the_launcher,
    let_one_speak,
    read_rank,
)
from reprod_align.errors import ReprodError

import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.base import core

BACKENDS = {"cpu": "gloo", "gpu": "nccl"}


class Launched(Processes):
    """The processes that the launcher started."""

    def __init__(self, rank: int, world: int, device: str) -> None:
        """Meet the others; each works on the GPU that the launcher chose for it."""
        self.rank, self.world, self._device = rank, world, device
        os.environ["PADDLE_DISTRI_BACKEND"] = BACKENDS[device]  # a GPU build takes NCCL otherwise
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):  # it prints its flags
            dist.init_parallel_env()

    def add_up(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of every process's numbers."""
        use_device(self._device)
        sums = paddle.to_tensor(numbers, dtype="float64")
        dist.all_reduce(sums)
        return sums.tolist()

    def gather(self, value: Any) -> list[Any]:
        """Return every process's value."""
        values = []
        dist.all_gather_object(values, value)
        return values

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value."""
        values = [value if self.rank == 0 else None]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def wrap(self, model: nn.Layer) -> nn.Layer:
        """Return the model with DataParallel around it."""
        return paddle.DataParallel(model)

    def is_first_to_fail(self) -> bool:
        """Return whether this process is the first to fail."""
        store = core.create_or_get_global_tcp_store()
        return claim_first_failure(lambda name: store.add(name, 1))


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """Yield the processes that were started together; ReprodError if they can't be reached."""
    rank, world = read_rank("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM")
    if world == 1:
        yield ALONE
        return
    follow_the_launcher()
    local_rank = int(os.environ.get("PADDLE_RANK_IN_NODE", rank))
    check_on_each_machine(lambda: use_device(device), local_rank)
    try:
        processes = Launched(rank, world, device)
    except (RuntimeError, ValueError) as error:
        raise ReprodError(f"process {rank} of {world} cannot meet the others: {error}") from error
    with let_one_speak(processes):
        yield processes
        dist.barrier()
    dist.destroy_process_group()
