"""Listens to the PyTorch functions and kernels that a model calls. `backends.paddle.calls` is the twin.

Functions: each call for a recorder, and each request for float32. Norms, softmaxes and rotary tables
often compute in float32 for an input of any dtype. Its rounding hides small differences; with float64
in its place, the same code shows them.

Kernels: each is compared with itself on wider numbers, int32 indices with int64, float32 with float64,
since one may be wrong in one type alone: `gather` with an expanded int32 index gives other rows than
with the same index in int64 (torch 2.13.0 on CPUs). Paddle's twin leaves this out: what Paddle's
kernels compute is what the port's users get.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reprod_align.backends.torch.private import DispatchMode, miss_operators, schema, sees_operators
from reprod_align.base.tree import leaves, replace
from reprod_align.model.recorder import OperationRecorder

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def intercept_calls(recorder: OperationRecorder) -> Iterator[None]:
    """Let `recorder.record` make every call of a PyTorch function in the block: the outermost ones."""
    with _Mode(recorder):
        yield


class _Mode(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, recorder: OperationRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = str(getattr(function, "__name__", function))
        if name == "__get__":  # an attribute: x.T, x.shape
            name = str(getattr(getattr(function, "__self__", None), "__name__", name))
        return self._recorder.record(name, function, args, kwargs or {})


@contextmanager
def float32_requests(note: Callable[[], None], answered: bool) -> Iterator[None]:
    """Call `note` at each request for float32 in the block; `answered`: give float64 in its place.

    Seen are dtypes handed to PyTorch's functions and tensor methods, and `Tensor.float()`.
    """
    with _FunctionListener(note, answered):
        yield


class _FunctionListener(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, note: Callable[[], None], answered: bool) -> None:
        super().__init__()
        self._note, self._answered = note, answered

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        narrow = function is torch.Tensor.float
        if not narrow and not any(value is torch.float32 for value in (*args, *given.values())):
            return function(*args, **given)
        self._note()
        if not self._answered:
            return function(*args, **given)
        function = torch.Tensor.double if narrow else function
        return function(*map(_wide, args), **{name: _wide(value) for name, value in given.items()})


def _wide(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


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
