"""Recorded values on Paddle: counterparts, gradients, and whether a result is the recorded one."""

import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reprod_align.porting.calls.names import find_object

import numpy as np

_LARGEST: Final = 1 << 22  # numbers of a layer that is stood in for
_STATISTICS: Final = ("_mean", "_variance")
"""parameters of Paddle's batch norm that are buffers in PyTorch, or that its layer does not have"""
_TYPE: Final = re.compile(r"torch\.[A-Z]\w*Tensor")
"""what `x.type()` returns"""
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
        if value.layout is torch.sparse_coo:
            held = value.detach().coalesce()
            return paddle.sparse.sparse_coo_tensor(
                held.indices().numpy(), held.values().numpy(), list(value.shape)
            )
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
    if isinstance(value, str) and _TYPE.fullmatch(value):
        value = find_object(value).dtype
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
    if type(value) in (dict, OrderedDict):
        return type(value)((key, to_paddle(one, known)) for key, one in value.items())
    if isinstance(value, type) and value in (int, float, bool):
        return value
    if isinstance(value, Built):
        return value.make_stand_in()
    raise NoCounterpart(type(value).__name__)


@dataclass
class RecordedCall:
    """One evaluation of an expression: what it was given and what came of it, tensors copied."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any
    receiver: Any = None
    """the tensor or module whose method it is, as it was before"""
    after: Any = None
    """afterwards, what a method or function changes: the receiver, or the first argument"""
    default_dtype: Any = None
    random: bool = False
    """whether random numbers were drawn"""
    widened: bool = True
    """whether float64 was given where float32 was asked for, if float64 was the default"""
    gradients: Any = None
    """PyTorch's, by the id of the tensor, once they are noted"""
    spread: bool = False
    """whether the tensor whose item is set lay in memory with gaps, or with its axes exchanged"""


def read_settings(layer: Any) -> dict[str, float]:
    """Return a norm's `eps` and `momentum`, which detectors change after they have made it."""
    found = {name: getattr(layer, name, None) for name in ("eps", "momentum")}
    return {name: one for name, one in found.items() if isinstance(one, float)}


@dataclass(frozen=True)
class Built:
    """A layer as it was."""

    sizes: tuple[int, ...]
    """how many numbers each of its parameters has"""
    buffers: tuple[int, ...] = ()
    """how many each of its buffers of floats has: running statistics, which are parameters in Paddle"""
    settings: dict[str, float] = field(default_factory=dict, compare=False)
    """a norm's `eps` and `momentum` as it was made"""
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
        learned = sorted(int(one.size) for name, one in made.named_parameters()
                         if not name.endswith(_STATISTICS))  # fmt: skip
        return ours == sorted(self.sizes + self.buffers) or learned == sorted(self.sizes)


def agrees(made: Any, recorded: Any, random: bool = False, nearly: bool = False) -> bool:
    """Tell whether a result has the recorded shapes, dtypes and values; random: but for the values.

    nearly: also where integers are of another width, or float64 agrees as far as float32 holds it.
    """
    import paddle
    import torch

    if isinstance(recorded, torch.Tensor):
        if not isinstance(made, paddle.Tensor) or list(made.shape) != list(recorded.shape):
            return False
        if recorded.is_sparse or made.is_sparse():
            both = recorded.is_sparse and made.is_sparse()
            return both and agrees(made.to_dense(), recorded.to_dense(), random, nearly)
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
    if isinstance(recorded, str) and _TYPE.fullmatch(recorded):
        recorded = find_object(recorded).dtype
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
    if isinstance(recorded, torch.distributions.Distribution):
        return type(made).__name__ == type(recorded).__name__ and all(
            agrees(getattr(made, one), getattr(recorded, one), nearly=nearly)
            for one in ("mean", "variance")
        )
    if isinstance(recorded, torch.finfo | torch.iinfo):
        return all(
            getattr(made, one, None) == getattr(recorded, one) for one in ("min", "max", "bits")
        )
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


_LITTER: Final = 50  # arrays of a shape
_LITTERED: Final = 1 << 20  # numbers of all of them

Gradients = Mapping[int, "np.ndarray[Any, Any] | None"]
"""id of a recorded tensor that takes a gradient -> it, None where none arrives"""


def find_function(public: str) -> Any:
    """Return the function of a public name, of "Tensor.view" the method; None if there is none."""
    return find_object(f"torch.{public}" if public.startswith("Tensor.") else public)


def walk(value: Any, kind: Any) -> Iterator[Any]:
    """Yield the tensors in nested lists and dicts."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from walk(one, kind)
    elif isinstance(value, dict):
        yield from walk(list(value.values()), kind)


def _clone(value: Any, kind: Any) -> Any:
    """Return nested values with copies of the tensors, which hand their gradients on and may be changed.

    Sparse ones, which Paddle cannot copy, stay what they are.
    """
    if isinstance(value, kind):
        is_sparse = value.is_sparse() if callable(value.is_sparse) else value.is_sparse
        return value if is_sparse else value.clone()
    if type(value) in (list, tuple):
        return type(value)(_clone(one, kind) for one in value)
    if type(value) is dict:
        return {name: _clone(one, kind) for name, one in value.items()}
    return value


def note_gradients(call: RecordedCall, function: Callable[..., Any]) -> None:
    """Note PyTorch's gradients of a call, where it can be repeated from what was recorded."""
    import torch

    if call.random or call.gradients is not None:
        return
    call.gradients = {}
    receiver = [] if call.receiver is None else [call.receiver]
    given = [*receiver, *call.arguments], call.keywords
    leaves = [one for one in walk(given, torch.Tensor) if one.requires_grad]
    if not leaves:
        return
    try:
        with torch.enable_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (positions, keywords) = _clone(given, torch.Tensor)
            made = function(*positions, **keywords)
            made = positions[0] if call.after is not None else made
            if _repeats(made, call.result if call.after is None else call.after):
                call.gradients = differentiate(made, leaves)
    except Exception:  # no backward pass, or no function of what was recorded
        return


def _repeats(made: Any, recorded: Any) -> bool:
    """Tell whether a repeated call gave what was recorded: a Linear's weight may lie the other way by now."""
    import torch

    pairs = list(walk(made, torch.Tensor)), list(walk(recorded, torch.Tensor))
    return len(pairs[0]) == len(pairs[1]) and all(
        one.shape == other.shape and torch.allclose(one, other, equal_nan=True)
        for one, other in zip(*pairs, strict=True)
    )


def differentiate(made: Any, leaves: Sequence[Any]) -> Gradients:
    """Return PyTorch's gradients of the leaves, from a fixed gradient of each float in what was made."""
    import torch

    every = [one for one in walk(made, torch.Tensor) if one.is_floating_point() or one.is_complex()]
    drawn = [torch.from_numpy(one) for one in _draw(every)]
    wanted = [at for at, one in enumerate(every) if one.requires_grad]
    if not every:  # nothing that would take a gradient either
        return {}
    found: Iterable[Any] = [None] * len(leaves)
    if wanted:
        found = torch.autograd.grad(
            [every[at] for at in wanted],
            leaves,
            [drawn[at].to(every[at].dtype) for at in wanted],
            retain_graph=True,
            allow_unused=True,
        )
    return {
        id(leaf): None if one is None else one.detach().resolve_conj().numpy().copy()
        for leaf, one in zip(leaves, found, strict=True)
    }


def _draw(tensors: Sequence[Any]) -> Iterator[np.ndarray[Any, Any]]:
    source = np.random.default_rng(0)
    for one in tensors:
        drawn = source.uniform(0.5, 1.5, list(one.shape))
        yield drawn * (1 + 0.5j) if "complex" in str(one.dtype) else drawn


def gives_gradients(
    run: Callable[[dict[str, Any]], Any],
    recorded: Mapping[str, Any],
    values: Mapping[str, Any],
    gradients: Gradients,
    nearly: bool,
) -> bool:
    """Tell whether Paddle's gradients are PyTorch's.

    run: gives the result, or what is changed. recorded: PyTorch's value of each variable; values: Paddle's.
    """
    import paddle
    import torch

    space = _clone(dict(values), paddle.Tensor)
    made = run(space)
    leaves = [
        (ours, gradients[id(theirs)])
        for name, one in recorded.items()
        for theirs, ours in zip(
            walk(one, torch.Tensor), walk(values[name], paddle.Tensor), strict=True
        )
        if id(theirs) in gradients
    ]
    _litter([ours for ours, _ in leaves])
    found = differentiate_paddle(made, [ours for ours, _ in leaves])
    return all(
        is_same(one, expected, nearly) for one, (_, expected) in zip(found, leaves, strict=True)
    )


def _litter(leaves: Sequence[Any]) -> None:
    """Fill the memory that is free with NaN: what a kernel leaves unwritten is no zero by chance."""
    import paddle

    for one in leaves:
        rows = max(1, min(_LITTER, _LITTERED // max(1, one.size)))
        del [paddle.full(one.shape, float("nan"), one.dtype) for _ in range(rows)][:]


def differentiate_paddle(made: Any, leaves: Sequence[Any]) -> list[Any]:
    """Return Paddle's gradients of the leaves as arrays, from the same gradients as `differentiate`."""
    import paddle

    every = [
        one for one in walk(made, paddle.Tensor) if one.is_floating_point() or one.is_complex()
    ]
    drawn = list(_draw(every))
    wanted = [at for at, one in enumerate(every) if not one.stop_gradient]
    if not wanted:
        return [None] * len(leaves)
    found = paddle.grad(
        [every[at] for at in wanted],
        list(leaves),
        [paddle.to_tensor(drawn[at]).astype(every[at].dtype) for at in wanted],
        allow_unused=True,
    )
    return [None if one is None else one.numpy() for one in found]


def is_same(made: Any, expected: Any, nearly: bool) -> bool:
    """Tell whether a gradient is the expected one; none at all is one of zeros."""
    if made is None or expected is None:
        return not any(one is not None and one.any() for one in (made, expected))
    return made.shape == expected.shape and is_close(made, expected, nearly)
