"""Random numbers that one side alone draws: a dropout or noise that is missing, or one too many."""

from collections.abc import Mapping

from reprod_align.base.text import shorten
from reprod_align.match.draws import Draws, shapes_drawn

_MOST = 3  # shapes in one sentence


def explain_draws(path: str, ours: Draws, theirs: Draws, places: Mapping[str, str]) -> str:
    """Say which side draws what the other does not in a module; "" if both draw the same.

    path: Paddle's name of the module. ours, theirs: what PyTorch and Paddle drew. places: where
    draws are told apart, Paddle's name -> PyTorch's.
    """
    place = places.get(path)
    if place is None:
        return ""
    first, second = (shapes_drawn(side, place, places.values()) for side in (ours, theirs))
    if sorted(map(sorted, first)) == sorted(map(sorted, second)):
        return ""
    torch, paddle = (shorten([str(shape) for shape in side], _MOST) for side in (first, second))
    if torch and paddle:
        return f"PyTorch draws random numbers of shape {torch} here, Paddle {paddle}"
    side, shapes = ("PyTorch", torch) if torch else ("Paddle", paddle)
    return f"only {side} draws random numbers here (dropout, noise), of shape {shapes}"
