"""An optimizer is proven by its steps, with a few parameters in place of the model's."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reprod_align.porting.calls.values import is_close

import numpy as np

_SLOPES: Final = (1e-4, 1.0, 1e-2)
"""how steep each step is; whether an epsilon stands under the root shows in small gradients alone"""
_SHAPES: Final = ((3, 2), (2,))
"""of the parameters of one group: a matrix and a vector"""
Arrays = Sequence[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class MadeOptimizer:
    """How a script made an optimizer of PyTorch's, with the arguments that `stand_in` gives."""

    kind: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    @cached_property
    def after(self) -> Arrays:
        """What its steps make of the parameters, in the order of the groups. Raises what they raise.

        L-BFGS asks for a function, SparseAdam for other gradients.
        """
        import torch

        given, named = copy.deepcopy((self.arguments, self.keywords))
        optimizer = self.kind(*given, **named)
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        with torch.enable_grad():
            return take_steps(optimizer, parameters, torch.tensor)


def stand_in(
    arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return an optimizer's arguments with a few parameters in place of those of each group.

    A generator is left as it is: reading it would use it up.
    """
    if arguments:
        return (_replace(arguments[0]), *arguments[1:]), keywords
    return arguments, {**keywords, "params": _replace(keywords.get("params"))}


def _replace(given: Any) -> Any:
    if isinstance(given, list | tuple) and given and isinstance(given[0], dict):
        return [{**one, "params": draw_parameters(seed)} for seed, one in enumerate(given)]
    return draw_parameters()


def draw_parameters(seed: int = 0) -> list[Any]:
    """Return a few parameters of PyTorch's, in float64."""
    import torch

    drawn = np.random.default_rng(seed)
    return [torch.nn.Parameter(torch.tensor(drawn.standard_normal(one))) for one in _SHAPES]


def follows(optimizer: Any, made: MadeOptimizer, nearly: bool) -> bool:
    """Tell whether an optimizer of Paddle's takes the same steps as PyTorch's; nearly: to float32."""
    from reprod_align.backends.paddle.private import list_held

    import paddle

    held = [one["params"] if isinstance(one, dict) else [one] for one in list_held(optimizer)]
    with paddle.enable_grad():
        after = take_steps(optimizer, [one for group in held for one in group], paddle.to_tensor)
    return len(after) == len(made.after) and all(
        is_close(ours, theirs, nearly) for ours, theirs in zip(after, made.after, strict=True)
    )


def take_steps(optimizer: Any, parameters: Sequence[Any], to_tensor: Callable[..., Any]) -> Arrays:
    """Return the parameters after a few steps whose gradients are the same for both frameworks."""
    drawn = np.random.default_rng(1)
    for scale in _SLOPES:
        for one in parameters:
            slopes = scale * drawn.standard_normal(list(one.shape))
            (one * to_tensor(slopes)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [one.detach().numpy().copy() for one in parameters]
