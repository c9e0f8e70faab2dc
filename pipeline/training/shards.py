"""Some rows of a batch that draw what they would draw as a part of the whole batch.

With it, a batch that passes through the model in parts, for gradient accumulation or in several
processes, gets the dropout masks that it gets in one piece.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipeline.training.ranks import ALONE, Ranks
from reprod_align.randomness import Draws, Float64, Int64, Shape, UnsharedDrawError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shard:
    """One process's rows of a batch of `examples`.

    There may be fewer examples than processes: who gets none takes a row that does not count, since
    in a backward pass of data parallel training everyone must take part.
    """

    rows: slice
    examples: int
    counts: bool = True

    def share(self, rows: slice) -> float:
        """Return by what the mean loss of some of its rows counts in the mean loss of the batch."""
        return (rows.stop - rows.start) / self.examples if self.counts else 0.0

    def draws(self, whole: Draws, rows: slice) -> Draws:
        """Return the stream for some of its rows, counted from its first, out of the batch's stream."""
        first = self.rows.start
        return rows_of(whole, slice(first + rows.start, first + rows.stop), self.examples)


def shard_of(examples: int, ranks: Ranks) -> Shard:
    """Return this process's rows of a batch: blocks in the order of the ranks, as even as can be."""
    start, stop = (examples * rank // ranks.world for rank in (ranks.rank, ranks.rank + 1))
    if start == stop:
        return Shard(slice(0, 1), examples, counts=False)
    return Shard(slice(start, stop), examples)


class Shards:
    """This process's rows of every batch of `batch_size` of the indices in `order`: a batch sampler.

    The frameworks' own samplers repeat examples until every process has equally many, which changes
    the last batch, and split a batch in different ways (torch's takes every n-th row of it).
    """

    def __init__(self, order: Sequence[int], batch_size: int, ranks: Ranks = ALONE) -> None:
        """Keep the order; all processes need the same."""
        self._order, self._batch_size, self._ranks = order, batch_size, ranks

    def __len__(self) -> int:
        """Return how many batches there are."""
        return -(-len(self._order) // self._batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the indices of this process's examples of each batch."""
        for shard, batch in zip(self.shards(), self.batches(), strict=True):
            yield list(batch[shard.rows])

    def batches(self) -> Iterator[Sequence[int]]:
        """Yield the indices of all examples of each batch."""
        for start in range(0, len(self._order), self._batch_size):
            yield self._order[start : start + self._batch_size]

    def shards(self) -> Iterator[Shard]:
        """Yield which rows of each batch are this process's."""
        for batch in self.batches():
            yield shard_of(len(batch), self._ranks)


def in_order(gathered: Sequence[Sequence[list[Item]]]) -> list[Item]:
    """Return the examples' items in the order of the data, out of each process's list of each batch."""
    return [item for batch in zip(*gathered, strict=True) for shard in batch for item in shard]


def rows_of(draws: Draws, rows: slice, examples: int) -> Draws:
    """Return the stream for `rows` of a batch of `examples`, out of the whole batch's stream."""
    return draws if rows == slice(0, examples) else _Rows(draws, rows, examples)


class _Rows:
    def __init__(self, draws: Draws, rows: slice, examples: int) -> None:
        self._draws, self._rows, self._examples = draws, rows, examples

    def uniform(self, shape: Shape) -> Float64:
        """Return these rows of float64 of the batch's shape from [0, 1)."""
        return self._draws.uniform(self._whole(shape))[self._rows]

    def normal(self, shape: Shape) -> Float64:
        """Return these rows of float64 of the batch's shape from the standard normal distribution."""
        return self._draws.normal(self._whole(shape))[self._rows]

    def integers(self, low: int, high: int, shape: Shape) -> Int64:
        """Return these rows of int64 of the batch's shape from [low, high)."""
        return self._draws.integers(low, high, self._whole(shape))[self._rows]

    def permutation(self, n: int) -> Int64:
        """Raise UnsharedDrawError: an order of the whole batch is no order of its parts."""
        raise UnsharedDrawError(f"a permutation of {n} cannot be drawn for a part of a batch")

    def _whole(self, shape: Shape) -> Shape:
        rows = self._rows.stop - self._rows.start
        if not shape or shape[0] != rows:
            raise UnsharedDrawError(
                f"a draw of shape {shape} has no axis for the {rows} examples of a part of a batch"
            )
        return (self._examples, *shape[1:])
