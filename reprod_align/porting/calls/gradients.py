"""The gradients of recorded calls: PyTorch's, and whether a candidate gives the same on Paddle."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reprod_align.porting.calls.record import Call
from reprod_align.porting.calls.torch_names import find_torch
from reprod_align.porting.calls.values import is_close

import numpy as np

_LITTER: Final = 50  # arrays of a shape
_LARGEST: Final = 1 << 20  # numbers of all of them

Gradients = Mapping[int, "np.ndarray[Any, Any] | None"]
"""id of a recorded tensor that takes a gradient -> it, None where none arrives"""


def find_function(public: str) -> Any:
    """Return the function of a public name, of "Tensor.view" the method; None if there is none."""
    return find_torch(f"torch.{public}" if public.startswith("Tensor.") else public)


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
    """Return nested values with copies of the tensors, which hand their gradients on and may be changed."""
    if isinstance(value, kind):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(_clone(one, kind) for one in value)
    if type(value) is dict:
        return {name: _clone(one, kind) for name, one in value.items()}
    return value


def note_gradients(call: Call, function: Callable[..., Any]) -> None:
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
        rows = max(1, min(_LITTER, _LARGEST // max(1, one.size)))
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
