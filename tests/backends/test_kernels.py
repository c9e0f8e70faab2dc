"""PyTorch's kernels, held against themselves in wider types."""

from reprod_align.backends.torch.kernels import mended_kernels

import torch

ROWS = [3, 1, 0, 2]


def contradicts() -> bool:
    x, rows = torch.arange(8.0).reshape(4, 2), torch.tensor(ROWS, dtype=torch.int32)[:, None]
    rows = rows.expand(4, 2)
    return not torch.equal(torch.gather(x, 0, rows.long()), torch.gather(x, 0, rows))


def test_rounding_and_overflow_are_no_contradiction() -> None:
    noted: list[str] = []
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    with mended_kernels(noted.append):
        torch.exp(100 * x).sum()
        (x @ x).softmax(-1).log().mean()
        (torch.tensor([2**31 - 1], dtype=torch.int32) + 1) * 1.5
        torch.rand(4)
        for _ in range(20):
            torch.empty_like(x).fill_(torch.finfo(torch.float32).max)  # memory that comes back
    assert noted == []


def test_the_wider_result_takes_the_place_of_one_that_is_wrong() -> None:
    noted: list[str] = []
    x, rows = torch.arange(8.0).reshape(4, 2), torch.tensor(ROWS, dtype=torch.int32)[:, None]
    with mended_kernels(noted.append):
        taken = torch.gather(x, 0, rows.expand(4, 2))
    assert (
        torch.equal(taken, torch.gather(x, 0, rows.long().expand(4, 2)))
        and len(noted) == contradicts()
    )
