"""Work on large arrays: parts in order, the whole's own sum, the same on any number of cores."""

import threading

from reprod_align.base import blocks
from reprod_align.base.blocks import add_up, borrow, cut, map_spans

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("most", [1, 2, 7, 8, 9, 128, 1000])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 9, 17, 1000, 4099])
def test_the_parts_are_the_whole(size: int, most: int) -> None:
    spans = list(cut((5, 5 + size), most))
    assert [at for start, stop in spans for at in range(start, stop)] == [*range(5, 5 + size)]
    assert all(stop - start <= most for start, stop in spans)


@pytest.mark.parametrize("size", [1, 129, 1000, 4099, 100_003])
@pytest.mark.parametrize("most", [128, 200, 1000, 10**6])
def test_the_sum_of_the_parts_is_numpys_of_the_whole(size: int, most: int) -> None:
    numbers = RANDOM.standard_normal(size) * 10.0 ** RANDOM.integers(-9, 9, size)
    parts = [(stop - start, numbers[start:stop].sum()) for start, stop in cut((0, size), most)]
    assert add_up(parts) == numbers.sum()


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_come_in_order_on_any_number_of_cores(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "SPAN", 10)
    monkeypatch.setattr(blocks, "count_cores", lambda: cores)
    assert map_spans(lambda span: span, 95) == list(cut((0, 95), 10))


def test_an_error_in_a_thread_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SPAN", 10)
    monkeypatch.setattr(blocks, "count_cores", lambda: 2)

    def fail(span: blocks.Span) -> None:
        assert threading.current_thread() is not threading.main_thread()
        raise ValueError(span)

    with pytest.raises(ValueError, match="0, "):
        map_spans(fail, 95)


def test_what_is_borrowed_twice_at_once_is_two_arrays() -> None:
    with borrow(8, np.dtype(np.float64)) as one, borrow(3, np.dtype(">f4")) as other:
        one[:], other[:] = 1.0, 2.0
        assert not np.shares_memory(one, other)
        assert one.tolist() == [1.0] * 8 and other.tolist() == [2.0] * 3
