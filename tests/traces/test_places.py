"""Places and integers become one number each."""

from reprod_align.traces.sketch import (
    KINDS,
    add_hashes,
    digest_integers,
    find_kinds,
    hash_numbers,
    hash_places,
)

import numpy as np
import pytest


def test_every_kind_is_found_where_it_is() -> None:
    values = np.array([1.0, np.nan, np.inf, -np.inf, 2e9, -2e9, 1e8])
    found = [np.flatnonzero(there).tolist() for there in find_kinds(values, 1e9)]
    assert found == [[1], [2], [3], [4], [5]] and len(KINDS) == 5


def test_places_are_those_of_the_whole_tensor() -> None:
    whole = hash_places(np.array([3, 70]), 0)
    assert whole == (hash_places(np.array([3]), 0) + hash_places(np.array([6]), 64)) % 2**53
    assert 0 < whole < 2**53 and float(whole) == whole
    assert hash_places(np.array([], np.int64), 5) == 0


def test_hashes_are_added_without_loss() -> None:
    hashes = hash_numbers(np.arange(100_000, dtype=np.uint64))
    assert add_hashes(hashes, 17) == (sum(int(one) for one in hashes) + 17) % 2**53
    assert hashes[0] == 0xE220A8397B1DCDAF  # splitmix64 of 0


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8, np.bool_])
def test_a_digest_tells_integers_and_their_order_apart(dtype: type) -> None:
    values = np.array([[1, 0, 0], [1, 1, 0]]).astype(dtype)
    assert digest_integers(values) == digest_integers(values.astype(np.int64))
    assert digest_integers(values) != digest_integers(values[::-1])
    assert digest_integers(values) != digest_integers(np.zeros_like(values))
