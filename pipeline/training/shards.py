"""Some rows of a batch that draw what they would draw as rows of the whole batch.

With it, a batch that passes through the model in parts, for gradient accumulation or in several
processes, gets the dropout masks that it gets in one piece.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pipeline.training.options import NATIVE, TrainingOptions
from pipeline.training.processes import Processes
from reprod_align.randomness import (
    Draws,
    Float64,
    Int64,
    Shape,
    SharedRandom,
    UnsharedDrawError,
)

import numpy as np

Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    """Rows of an optimizer step's batch that pass through the model at a time."""

    inputs: dict[str, Any]  # the model's, tensors (B, L)
    labels: Any  # tensor (B,)
    share: float  # of its mean loss in the mean loss of the whole batch
    draws: Draws  # its rows of the whole batch's random numbers
    seed: int | None  # native mode: of the framework's generator, before the first part of a batch
    is_last: bool  # of its batch, in this process


@dataclass(frozen=True)
class Shard:
    """One process's rows of a batch of `examples`.

    There may be fewer examples than processes: a process without rows runs a dummy row with weight
    zero, since all must take part in a backward pass of data parallel training.
    """

    rows: slice
    examples: int
    counts: bool = True

    def share(self, rows: slice) -> float:
        """Return the share of the mean loss of some of its rows in the mean loss of the batch."""
        return (rows.stop - rows.start) / self.examples if self.counts else 0.0

    def draws(self, whole: Draws, rows: slice) -> Draws:
        """Return the stream for some of its rows, counted from its first, out of the batch's stream."""
        first = self.rows.start
        return draw_rows(whole, slice(first + rows.start, first + rows.stop), self.examples)

    def split(
        self, batch: dict[str, Any], options: TrainingOptions, step: tuple[int, int]
    ) -> Iterator[Part]:
        """Yield its rows, the tensors of `batch`, in parts of --batch-size.

        step: the epoch, and the step in it. Every part draws its rows of what the whole batch would draw.
        """
        inputs = dict(batch)
        labels = inputs.pop("labels")  # (B,)
        place = (options.seed, *step)
        for start in range(0, len(labels), options.batch_size):
            rows = slice(start, min(start + options.batch_size, len(labels)))
            seeds = options.randomness == NATIVE and start == 0
            yield Part(
                inputs={name: tensor[rows] for name, tensor in inputs.items()},
                labels=labels[rows],
                share=self.share(rows),
                draws=self.draws(SharedRandom(*place), rows),
                seed=native_seed(*place, self.rows.start) if seeds else None,
                is_last=rows.stop == len(labels),
            )


def native_seed(*place: int) -> int:
    """Return the seed below 2**32 of a place: the run's seed, the epoch, and perhaps step and row.

    In native mode every step seeds the framework's generator anew, so a run can go on at any step
    without the generator's state.
    """
    return int(np.random.SeedSequence(place).generate_state(1)[0])


def take_shard(examples: int, processes: Processes) -> Shard:
    """Return this process's rows of a batch: blocks in the processes' order, as even as can be."""
    start, stop = (
        examples * rank // processes.world for rank in (processes.rank, processes.rank + 1)
    )
    if start == stop:
        return Shard(slice(0, 1), examples, counts=False)
    return Shard(slice(start, stop), examples)


@dataclass(frozen=True)
class Shards:
    """This process's rows of every batch of a loader, on its device, with the shard that says which.

    The loader pads whole batches, so that a process's dropout masks are rows of the whole batch's. The
    frameworks' own samplers repeat examples until every process has equally many, which changes the
    last batch, and split a batch in different ways (torch's takes every n-th row of it).
    """

    loader: Any  # a DataLoader; all processes have the same
    processes: Processes
    device: str

    def __len__(self) -> int:
        """Return how many batches there are."""
        return len(self.loader)

    def __iter__(self) -> Iterator[tuple[Shard, dict[str, Any]]]:
        """Yield shard and rows of each batch: token ids (B, L) and the like by name, labels (B,)."""
        for batch in self.loader:
            shard = take_shard(len(batch["labels"]), self.processes)
            yield shard, {name: rows[shard.rows].to(self.device) for name, rows in batch.items()}


def restore_order(gathered: Sequence[Sequence[list[Item]]]) -> list[Item]:
    """Return the examples' items in the order of the data, out of each process's list of each batch."""
    return [item for batch in zip(*gathered, strict=True) for shard in batch for item in shard]


def draw_rows(draws: Draws, rows: slice, examples: int) -> Draws:
    """Return the stream for `rows` of a batch of `examples`, out of the whole batch's stream."""
    return draws if rows == slice(0, examples) else _Rows(draws, rows, examples)


class _Rows:
    def __init__(self, draws: Draws, rows: slice, examples: int) -> None:
        self._draws, self._rows, self._examples = draws, rows, examples

    def uniform(self, shape: Shape) -> Float64:
        """Return these rows of float64 of the batch's shape from [0, 1)."""
        return self._draws.uniform(self._widen(shape))[self._rows]

    def normal(self, shape: Shape) -> Float64:
        """Return these rows of float64 of the batch's shape from the standard normal distribution."""
        return self._draws.normal(self._widen(shape))[self._rows]

    def integers(self, low: int, high: int, shape: Shape) -> Int64:
        """Return these rows of int64 of the batch's shape from [low, high)."""
        return self._draws.integers(low, high, self._widen(shape))[self._rows]

    def permutation(self, n: int) -> Int64:
        """Raise UnsharedDrawError: the order of a whole batch does not give the orders of its parts."""
        raise UnsharedDrawError(f"a permutation of {n} cannot be drawn for a part of a batch")

    def _widen(self, shape: Shape) -> Shape:
        rows = self._rows.stop - self._rows.start
        if not shape or shape[0] != rows:
            raise UnsharedDrawError(
                f"a draw of shape {shape} has no axis for the {rows} examples of a part of a batch"
            )
        return (self._examples, *shape[1:])
