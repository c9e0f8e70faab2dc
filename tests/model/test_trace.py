"""What a trace says of itself."""

from reprod_align.model.trace import Call, Leaf, Trace

import numpy as np
import pytest

LARGE = np.arange(3 * 4096 + 5, dtype=np.float64)


def trace(output: np.ndarray, gradient: np.ndarray, buffer: np.ndarray) -> Trace:
    call: Call = Call("", 0, None, {}, {"": Leaf(output, True)})
    return Trace([call], gradients={"weight": gradient}, buffers={"mean": buffer})


def test_equal_runs_have_equal_digests() -> None:
    once, again = (trace(LARGE.copy(), LARGE.T, np.float32(3) * np.ones(())) for _ in range(2))
    assert once.digest() == again.digest() and Trace().digest() == Trace().digest()


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("at", [0, 4096, -1])
def test_one_bit_anywhere_makes_another_digest(which: int, at: int) -> None:
    arrays = [LARGE, LARGE, LARGE]
    arrays[which] = LARGE.copy()
    arrays[which][at] = np.nextafter(LARGE[at], np.inf)
    assert trace(*arrays).digest() != trace(LARGE, LARGE, LARGE).digest()


def test_a_gradient_that_never_came_is_not_one_of_zeros() -> None:
    with_zeros = trace(LARGE, np.zeros(3), LARGE)
    without = trace(LARGE, np.zeros(3), LARGE)
    without.gradients.clear()
    assert with_zeros.digest() != without.digest()


def test_the_outputs_alone_tell_runs_apart_too() -> None:
    once = trace(LARGE, LARGE, LARGE)
    others = trace(LARGE, LARGE + 1, LARGE), trace(LARGE + 1, LARGE, LARGE)
    told = [once.digest(whole=False) != other.digest(whole=False) for other in others]
    assert told == [False, True]
