"""PyTorch's own kernels, held against themselves: int32 indices against int64, float32 against float64.

A kernel may be wrong in one type and right in the other: `gather` with an expanded int32 index gives
other rows than with the same index in int64 (torch 2.13.0 on CPUs). What Paddle's kernels compute is
what the port's users get: `backends.paddle.kernels` takes float32's rounding out of interpolation alone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reprod_align.backends.torch.private import (
    DispatchMode,
    miss_operators,
    schema,
    sees_operators,
)
from reprod_align.base.tree import leaves, replace

import torch

_LIMIT = 1e-2
"""of the largest number that goes in or comes out: float32's rounding in one kernel stays far below"""


@contextmanager
def mended_kernels(note: Callable[[str], None]) -> Iterator[None]:
    """Give the wider type's result in the block where a kernel contradicts itself; `note` says where."""
    if not sees_operators():
        miss_operators()
    with _MendedKernel(note):
        yield


class _MendedKernel(DispatchMode):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note

    # not held: random numbers, memory without values, changes in place, several results
    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        result = func(*args, **given)
        left_out = torch.Tag.nondeterministic_seeded in func.tags or schema(func).is_mutable
        if left_out or "empty" in schema(func).name or not isinstance(result, torch.Tensor):
            return result
        tensors = [*leaves((args, given), _is_tensor).values()]
        floats = [one for one in tensors if one.is_floating_point()]
        if not (floats and result.is_floating_point()):
            return result
        for narrow, wide in (torch.int32, torch.int64), (torch.float32, torch.float64):
            if any(one.dtype is narrow for one in tensors):
                other = _run_wide(func, args, given, narrow, wide)
                if other is not None and not _agree(result, other, floats):
                    self._note(f"{func.overloadpacket} gives other numbers in {_name(narrow)} than "
                               f"in {_name(wide)}")  # fmt: skip
                    return other.to(result.dtype)
        return result


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _run_wide(
    func: Any, args: Any, given: Any, narrow: torch.dtype, wide: torch.dtype
) -> torch.Tensor | None:
    """Return what a kernel makes of wider arguments; None if it takes none."""

    def widen(path: str, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(wide) if tensor.dtype is narrow else tensor

    wider, named = replace((args, given), _is_tensor, widen)
    try:
        other = func(*wider, **named)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    return other if isinstance(other, torch.Tensor) else None


def _agree(result: torch.Tensor, other: torch.Tensor, floats: list[torch.Tensor]) -> bool:
    """Tell whether two results differ by rounding alone; what float32 cannot hold counts as equal."""
    if result.shape != other.shape:
        return False
    first, second = result.detach().double(), other.detach().double()
    held = second.isfinite() & (second.abs() < torch.finfo(result.dtype).max)
    sizes = [one.detach().double()[one.detach().isfinite()].abs() for one in floats]
    sizes.append(second[held].abs())
    scale = max((float(one.max()) for one in sizes if one.numel()), default=0.0)
    return bool(((first - second)[held].abs() <= _LIMIT * scale).all())
