"""Recorded values on Paddle: their counterparts, and whether a result is the recorded one."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

_LARGEST: Final = 1 << 22  # numbers of a layer that is stood in for
_INTEGERS: Final = {"int32", "int64"}  # Paddle's indices are of either width


class NoCounterpart(Exception):
    """A value cannot be made on Paddle by itself."""


def to_paddle(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Return Paddle's counterpart of a recorded value. Raises NoCounterpart for objects.

    known: counterparts that there are, by the id of the tensor: one that is given twice is one.
    """
    import paddle
    import torch

    known = {} if known is None else known
    if isinstance(value, torch.Tensor):
        if id(value) in known:
            return known[id(value)]
        if value.layout is not torch.strided:
            raise NoCounterpart("a sparse tensor")
        if value.dtype == torch.bfloat16:
            return paddle.to_tensor(value.float().numpy()).astype("bfloat16")
        made = paddle.to_tensor(value.detach().resolve_conj().resolve_neg().numpy())
        if value.numel() == 0:
            made = made.reshape(list(value.shape))
        if isinstance(value, torch.nn.Parameter):
            made = paddle.base.framework.EagerParamBase.from_tensor(made)
        made.stop_gradient = not value.requires_grad
        return known.setdefault(id(value), made)
    if isinstance(value, torch.dtype):
        return getattr(paddle, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return str(value).partition(":")[0]
    if value is None or isinstance(
        value, bool | int | float | complex | str | slice | np.ndarray | np.generic
    ):
        return value
    if isinstance(value, type(Ellipsis)):
        return value
    if type(value) in (list, tuple, set):
        return type(value)(to_paddle(one, known) for one in value)
    if type(value) is dict:
        return {key: to_paddle(one, known) for key, one in value.items()}
    if isinstance(value, type) and value in (int, float, bool):
        return value
    if isinstance(value, Built):
        return value.make_stand_in()
    raise NoCounterpart(type(value).__name__)


@dataclass(frozen=True)
class Built:
    """A layer as it was."""

    sizes: tuple[int, ...]
    """how many numbers each of its parameters has"""
    buffers: tuple[int, ...] = ()
    """how many each of its buffers of floats has: running statistics, which are parameters in Paddle"""
    runs: list[Any] = field(default_factory=list, compare=False)
    """calls of it in the run, as layers.py notes them"""

    def make_stand_in(self) -> Any:
        """Return a layer of Paddle's that has as many: what a container is given."""
        import paddle

        if sum(self.sizes) > _LARGEST:
            raise NoCounterpart("a large layer")
        made = paddle.nn.Layer()
        for at, size in enumerate(self.sizes):
            made.add_parameter(f"p{at}", made.create_parameter([size]))
        return made

    def is_like(self, made: Any) -> bool:
        """Tell whether a layer of Paddle's has as many numbers in its parameters."""
        import paddle

        if not isinstance(made, paddle.nn.Layer):
            return False
        ours = sorted(int(one.size) for one in made.parameters())
        return ours in (sorted(self.sizes), sorted(self.sizes + self.buffers))


def agrees(made: Any, recorded: Any, random: bool = False, nearly: bool = False) -> bool:
    """Tell whether a result has the recorded shapes, dtypes and values; random: but for the values.

    nearly: also where integers are of another width, or float64 agrees as far as float32 holds it.
    """
    import paddle
    import torch

    if isinstance(recorded, torch.Tensor):
        if not isinstance(made, paddle.Tensor) or list(made.shape) != list(recorded.shape):
            return False
        names = _name_dtype(made.dtype), _name_dtype(recorded.dtype)
        if names[0] != names[1] and not (nearly and set(names) == _INTEGERS):
            return False
        if random or recorded.numel() == 0:
            return True
        plain = recorded.detach().resolve_conj().resolve_neg()
        return is_close(
            (made.astype("float32") if plain.dtype == torch.bfloat16 else made).detach().numpy(),
            (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy(),
            nearly,
        )
    if isinstance(recorded, Built):
        return recorded.is_like(made)
    if isinstance(recorded, torch.dtype):
        return _name_dtype(made) == _name_dtype(recorded)
    if isinstance(recorded, list | tuple):
        return (
            isinstance(made, list | tuple)
            and len(made) == len(recorded)
            and all(
                agrees(one, other, random, nearly)
                for one, other in zip(made, recorded, strict=True)
            )
        )
    if recorded is None:
        return made is None
    if hasattr(recorded, "__enter__") and hasattr(
        recorded, "__exit__"
    ):  # what it does is seen inside
        return hasattr(made, "__enter__")
    if isinstance(recorded, bool | int | float | complex | str):
        return type(made) in (type(recorded), np.bool_) and bool(made == recorded or made != made)
    return False


def _name_dtype(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def is_close(made: np.ndarray[Any, Any], recorded: np.ndarray[Any, Any], nearly: bool) -> bool:
    """Tell whether two arrays agree as far as their dtype holds them; nearly: as far as float32 does."""
    if recorded.dtype.kind in "biu":
        return bool(np.array_equal(made, recorded))
    double = recorded.dtype in (np.float64, np.complex128)
    tolerance = (2e-6 if nearly else 1e-10) if double else 2e-5
    with np.errstate(all="ignore"):
        scale = float(np.nanmax(np.where(np.isfinite(recorded), np.abs(recorded), 0), initial=0.0))
        return bool(
            np.allclose(
                made, recorded, rtol=tolerance, atol=tolerance * max(scale, 1e-30), equal_nan=True
            )
        )
