"""Random numbers that one side alone draws: a dropout or noise that is missing, or one too many."""

from collections.abc import Mapping

from reprod_align.base.naming import is_within
from reprod_align.base.text import shorten
from reprod_align.match.values import Draws

_MOST = 3  # shapes in one sentence


def draw_cause(path: str, ours: Draws, theirs: Draws, places: Mapping[str, str]) -> str:
    """Say which side draws what the other does not in a module; "" if both draw the same.

    path: Paddle's name of the module. ours, theirs: what PyTorch and Paddle drew. places: where
    draws are told apart, Paddle's name -> PyTorch's.
    """
    place = places.get(path)
    if place is None:
        return ""
    finer = [inner for inner in places.values() if inner != place and is_within(inner, place)]
    first, second = (_shapes(side, place, finer) for side in (ours, theirs))
    if sorted(map(sorted, first)) == sorted(map(sorted, second)):
        return ""
    if first and second:
        return (
            f"PyTorch draws random numbers of shape {_words(first)} here, Paddle {_words(second)}"
        )
    drawing, other, shapes = (
        ("PyTorch", "Paddle", first) if first else ("Paddle", "PyTorch", second)
    )
    return f"{drawing} draws random numbers here (dropout, noise), of shape {_words(shapes)}; {other} none"


def _shapes(drawn: Draws, place: str, finer: list[str]) -> list[tuple[int, ...]]:
    """Return the shapes drawn in a module, outside the finer places in it."""
    return [
        shape
        for ((path, _), _), shape in drawn.items()
        if is_within(path, place) and not any(is_within(path, inner) for inner in finer)
    ]


def _words(shapes: list[tuple[int, ...]]) -> str:
    return shorten([str(shape) for shape in shapes], _MOST)
