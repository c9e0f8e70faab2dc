"""A step's batch in parts: every row once, its share of the loss, its rows of the random numbers."""

from types import SimpleNamespace

from pipeline.training.shards import Part, Shard
from reprod_align.randomness import SharedRandom

import numpy as np
import pytest

BATCH = {"input_ids": np.arange(14).reshape(7, 2), "labels": np.arange(7)}


def split(shard: Shard, size: int, randomness: str = "shared") -> list[Part]:
    options = SimpleNamespace(batch_size=size, seed=3, randomness=randomness)
    rows = {name: values[shard.rows] for name, values in BATCH.items()}
    return list(shard.split(rows, options, (1, 2)))


@pytest.mark.parametrize("rows", [slice(0, 7), slice(2, 6)])
@pytest.mark.parametrize("size", [1, 3, 7, 20])
def test_parts_are_the_rows(rows: slice, size: int) -> None:
    shard = Shard(rows, 7)
    parts = split(shard, size)
    np.testing.assert_array_equal(
        np.concatenate([part.inputs["input_ids"] for part in parts]), BATCH["input_ids"][rows]
    )
    assert [label for part in parts for label in part.labels] == list(range(7))[rows]
    assert all(set(part.inputs) == {"input_ids"} and len(part.labels) <= size for part in parts)
    assert sum(part.share for part in parts) == pytest.approx((rows.stop - rows.start) / 7)
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]


def test_every_part_draws_its_rows_of_the_whole_batch() -> None:
    """Also where another process has the rows before; native parts draw after one seed."""
    whole = SharedRandom(3, 1, 2).uniform((7, 4))
    drawn = [part.draws.uniform((len(part.labels), 4)) for part in split(Shard(slice(2, 7), 7), 2)]
    np.testing.assert_array_equal(np.concatenate(drawn), whole[2:])
    assert {part.seed for part in split(Shard(slice(0, 7), 7), 2)} == {None}
    seeds = [part.seed for part in split(Shard(slice(0, 7), 7), 2, "native")]
    assert seeds[0] is not None and set(seeds[1:]) == {None}
    (other,) = split(Shard(slice(3, 7), 7), 4, "native")
    assert other.seed != seeds[0]


def test_a_dummy_row_counts_for_nothing() -> None:
    (part,) = split(Shard(slice(0, 1), 7, counts=False), 4)
    assert part.share == 0.0 and part.is_last
