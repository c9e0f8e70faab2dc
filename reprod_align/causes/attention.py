"""Which attention each side computes from query, key and value, tried as recipes."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Final

from reprod_align.causes.functions import softmax
from reprod_align.causes.mismatch import (
    Bools,
    Floats,
    Mismatch,
    Source,
    as_floats,
    cite,
    head_sizes,
    same,
)
from reprod_align.model.trace import Array

import numpy as np

_LARGEST = 20_000  # elements of a projection
_MOST_SOURCES = 5
_HIDDEN = -1e30


@dataclass(frozen=True)
class Recipe:
    """One way to attend; the fields are tried one at a time."""

    heads: int
    query: int
    key: int
    value: int
    scale: str = "1/sqrt(head size)"
    mask: str = "no mask"
    axis: str = "keys"
    split: str = "head by head"
    merge: str = "transposed back"
    rotary: str = "none"
    groups: str = "repeated"


_WORDS: Final = {
    "heads": "the number of heads is {}",
    "query": "the query is {}",
    "key": "the key is {}",
    "value": "the value is {}",
    "scale": "the scores are scaled by {}",
    "mask": "the scores have {}",
    "axis": "the softmax is over the {}",
    "split": "the heads are split {}",
    "merge": "the heads are merged {}",
    "rotary": "the rotary embedding is {}",
    "groups": "the key and value heads are {} for the groups",
}
_ENTRIES: Final = {"axis": "softmax-axis", "split": "transpose", "merge": "transpose"}
_SCALES: Final[Mapping[str, Callable[[int, int], float]]] = {
    "1/sqrt(head size)": lambda size, width: 1 / math.sqrt(size),
    "1 (no scale)": lambda size, width: 1.0,
    "1/head size": lambda size, width: 1 / size,
    "1/sqrt(width)": lambda size, width: 1 / math.sqrt(width),
    "sqrt(head size)": lambda size, width: math.sqrt(size),
}
_BASES: Final = ("1e6", "5e5", "1e3", "1e5", "5e4", "2e4", "1e2", "1e7")
_ROTARIES: Final = (
    "none", "of halves", "of pairs", "of halves, turned backwards", "of halves without the minus",
    "of halves of the query alone", "of halves of query, key and value", "of pairs, turned backwards",
    "of pairs, by tables of halves", "of halves, base 1e4",
    *(f"of {layout}, base {base}" for base in _BASES for layout in ("halves", "pairs")),
    *(f"of {layout}, positions from {first}" for first in (1, 2) for layout in ("halves", "pairs")),
)  # fmt: skip
_USUAL_ROTARIES: Final = (
    "none",
    "of halves",
    "of pairs",
    "of halves, base 5e5",
    "of halves, base 1e6",
)


def explain_attention(mismatch: Mismatch) -> str:
    """Explain the two sides as attention over three of the inputs, or parts of one.

    The tensors: (B, L, D) after the heads are merged, or (B, H, L, L) probabilities.
    """
    expected = mismatch.expected
    if mismatch.kind or expected.ndim not in (3, 4) or not mismatch.is_telling:
        return ""
    parts = _projections(mismatch)
    if len(parts) < 2:
        return ""
    masks, known = _masks(mismatch), _known_probabilities(mismatch)
    values = [part.values for part in parts]
    for given, exact in product((known, None) if known is not None else (None,), (False, True)):
        attend = _Attention(values, masks, given, expected.ndim == 4, exact)
        if words := _compare(attend, mismatch, [part.name for part in parts]):
            return words
    return ""


def _compare(attend: "_Attention", mismatch: Mismatch, names: Sequence[str]) -> str:
    """Find PyTorch's recipe, and the field of it that gives Paddle's values if it is changed."""
    expected, actual = mismatch.expected, mismatch.actual
    ours = next((r for r in _usual_recipes(attend, expected) if same(expected, attend(r))), None)
    if ours is None:
        return ""
    for one, other in (("key", "value"), ("query", "key"), ("query", "value")):
        swapped = replace(ours, **{one: getattr(ours, other), other: getattr(ours, one)})
        if getattr(ours, one) != getattr(ours, other) and same(actual, attend(swapped)):
            return f"the {one} and the {other} are exchanged in Paddle"
    for field, theirs in _changed_recipes(attend, ours):
        if same(actual, attend(theirs)):
            values = [getattr(recipe, field) for recipe in (theirs, ours)]
            values = ["left out" if value == "none" else value for value in values]
            if field in ("query", "key", "value"):
                values = [names[at] for at in values]
            words = _WORDS[field].format(f"{values[0]} in Paddle and {values[1]} in PyTorch")
            return cite(words, _ENTRIES[field]) if field in _ENTRIES else words
    return ""


def _projections(mismatch: Mismatch) -> list[Source]:
    """Return what can be query, key or value: (B, L, D), and thirds of (B, L, 3 D)."""
    found = [
        Source(name, as_floats(array))
        for name, array in reversed(mismatch.floats)
        if array.ndim == 3 and array.size <= 3 * _LARGEST and len(array) == len(mismatch.expected)
    ]
    widths = {part.values.shape[-1] for part in found}
    wide = max(widths, default=0)
    if wide and wide / 3 in widths:
        for part in [part for part in found if part.values.shape[-1] == wide]:
            thirds = np.split(part.values, 3, axis=-1)
            for which, third in zip(("first", "second", "last"), thirds, strict=True):
                found.append(Source(f"{which} third of {part.name}", third))
    return found[-_MOST_SOURCES:]


def _masks(mismatch: Mismatch) -> dict[str, Floats]:
    """Return additive masks (.., L, L) by name."""
    masks = {"no mask": np.zeros((1, 1, 1, 1))}
    batch, length = len(mismatch.expected), mismatch.expected.shape[-2]
    later = np.where(np.tri(length, dtype=bool), 0.0, _HIDDEN)[None, None]
    for _, array in mismatch.inputs:
        if array.shape == (batch, length):
            padding = np.where(array == 0, _HIDDEN, 0.0)[:, None, None]
            masks |= {"padding masked": padding, "padding and later tokens masked": padding + later}
            masks |= _other_paddings(array == 0)
        elif _is_additive(array, length):
            given = as_floats(array) if array.ndim == 4 else as_floats(array)[None, None]
            masks["the given mask added"] = given
    return masks | {"later tokens masked": later, **_shifted_masks(length)}


def _other_paddings(hidden: Bools) -> dict[str, Floats]:
    """Return masks (B, 1, 1, L) by which the padding is shown, or hidden too little."""
    places = hidden[:, None, None]
    found = {"everything but the padding masked": np.where(places, 0.0, _HIDDEN)}
    for value in (-1e9, -1e4, -1.0, 1.0, 1e9):
        found[f"the padding masked by {value:g}"] = np.where(places, value, 0.0)
        found[f"everything but the padding masked by {value:g}"] = np.where(places, 0.0, value)
    return found


def _is_additive(array: Array, length: int) -> bool:
    fits = array.dtype.kind == "f" and array.ndim in (2, 4) and array.shape[-1] == length
    return fits and bool(array.max() <= 0)


def _known_probabilities(mismatch: Mismatch) -> Floats | None:
    """Return probabilities (B, H, L, L) that a child handed on, dropped or not."""
    batch, length = mismatch.expected.shape[:2]
    if mismatch.expected.ndim == 4:
        return None
    for _, array in mismatch.floats:
        if array.ndim == 4 and len(array) == batch and array.shape[2] == length:
            if array.min() >= 0 and array.shape[1] > 1:
                return as_floats(array)
    return None


def _shifted_masks(length: int) -> dict[str, Floats]:
    return {
        f"{words} masked": np.where(np.tri(length, k=by, dtype=bool), 0.0, _HIDDEN)[None, None]
        for words, by in (("all but one of the later tokens", 1), ("later tokens and itself", -1))
    }


@dataclass(frozen=True)
class _Attention:
    """Computes recipes."""

    parts: Sequence[Floats]
    """projections (B, L, D)"""
    masks: Mapping[str, Floats]
    known: Floats | None
    """the probabilities, if a child made them"""
    returns_probabilities: bool
    exact: bool = False
    """whether rotary tables are those of float64, and not rounded to float32"""

    def __call__(self, recipe: Recipe) -> Floats:
        """Return what the recipe makes; nothing if its parts do not fit together."""
        if self.known is not None:
            value = _repeat(recipe.groups, self._split(recipe, recipe.value), self.known.shape[1])
            fits = value.shape[1:3] == (self.known.shape[1], self.known.shape[3])
            return self._merge(recipe, self.known @ value) if fits else np.zeros(0)
        query, key, value = (
            self._split(recipe, at) for at in (recipe.query, recipe.key, recipe.value)
        )
        if len({it.shape[-2:] for it in (query, key, value)}) > 1:
            return np.zeros(0)
        query, key, value = _rotate(recipe.rotary, query, key, value, self.exact)
        key, value = (_repeat(recipe.groups, it, query.shape[1]) for it in (key, value))
        mask = self.masks[recipe.mask]
        heads = {it.shape[1] for it in (query, key, value)} | {mask.shape[1], 1}
        if len(heads) > 2 or mask.shape[-1] not in (1, key.shape[-2]):
            return np.zeros(0)
        width = self.parts[recipe.query].shape[-1]
        scale = _SCALES[recipe.scale](query.shape[-1], width)
        scores = query @ key.swapaxes(-1, -2) * scale + mask
        probabilities = softmax(scores, {"keys": -1, "queries": -2, "heads": 1}[recipe.axis])
        if self.returns_probabilities:
            return probabilities
        return self._merge(recipe, probabilities @ value)

    def _split(self, recipe: Recipe, at: int) -> Floats:
        """Return (B, H, L, K)."""
        x = self.parts[at]
        batch, length, width = x.shape
        size = self.parts[recipe.query].shape[-1] // recipe.heads
        if width % size:
            return np.zeros((batch, 1, length, 1))
        if recipe.split == "head by head":
            return x.reshape(batch, length, -1, size).transpose(0, 2, 1, 3)
        if recipe.split == "without the transpose":
            return x.reshape(batch, -1, length, size)
        return x.reshape(batch, length, size, -1).transpose(0, 3, 1, 2)

    def _merge(self, recipe: Recipe, x: Floats) -> Floats:
        batch, heads, length, size = x.shape
        if recipe.merge == "transposed back":
            x = x.transpose(0, 2, 1, 3)
        return x.reshape(batch, length, heads * size)


def _repeat(how: str, x: Floats, heads: int) -> Floats:
    """Return (B, heads, L, K) of fewer key or value heads, each used by a group of queries."""
    if x.shape[1] == heads or heads % x.shape[1]:
        return x
    times = heads // x.shape[1]
    return x.repeat(times, axis=1) if how == "repeated" else np.tile(x, (1, times, 1, 1))


def _rotate(
    how: str, query: Floats, key: Floats, value: Floats, exact: bool
) -> tuple[Floats, Floats, Floats]:
    if how == "none" or query.shape[-1] % 2:
        return query, key, value
    cosine, sine = _tables(how, query.shape[-2], query.shape[-1], exact)
    query = query * cosine + _other_half(how, query) * sine
    if "query alone" not in how:
        key = key * cosine + _other_half(how, key) * sine
    if "value" in how:
        value = value * cosine + _other_half(how, value) * sine
    return query, key, value


def _tables(how: str, length: int, size: int, exact: bool) -> tuple[Floats, Floats]:
    """Return cosine and sine (L, K); as models keep them, rounded to float32, unless they are exact."""
    base = float(how.partition("base ")[2] or 1e4)
    first = int(how.partition("positions from ")[2] or 0)
    angles = np.outer(np.arange(first, length + first), base ** -(np.arange(0, size, 2) / size))
    alike = "pairs" in how and "tables of halves" not in how
    angles = np.repeat(angles, 2, axis=1) if alike else np.tile(angles, (1, 2))
    cosine, sine = (
        as_floats(table if exact else table.astype(np.float32))
        for table in (np.cos(angles), np.sin(angles))
    )
    return cosine, -sine if "backwards" in how else sine


def _other_half(how: str, x: Floats) -> Floats:
    if "pairs" in how:
        return np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    one, other = np.split(x, 2, axis=-1)
    return np.concatenate([other if "without the minus" in how else -other, one], axis=-1)


def _usual_recipes(attend: _Attention, like: Floats) -> Iterator[Recipe]:
    """Yield the recipes that a reference may follow, query, key and value in calling order."""
    count = len(attend.parts)
    if attend.known is not None:
        heads = attend.known.shape[1]
        fitting = [at for at in range(count) if attend.parts[at].shape[-1] % heads == 0]
        yield from (Recipe(heads, at, at, at) for at in reversed(fitting))
        return
    orders = [(count - 3, count - 2, count - 1)] if count > 2 else []
    if like.ndim == 4:
        orders = [(at, at + 1, at + 1) for at in range(count - 1)]
    masks = [name for name in attend.masks if " by " not in name]
    rotaries = _USUAL_ROTARIES[1:3] if attend.exact else _USUAL_ROTARIES
    without = () if attend.exact else ("none",)
    for (query, key, value), mask in product(orders, masks):
        width = attend.parts[query].shape[-1]
        numbers = [1, *(width // size for size in head_sizes(width))]
        for heads in [like.shape[1]] if like.ndim == 4 else numbers:
            for rotary in rotaries if _may_rotate(width // heads, width) else without:
                yield Recipe(heads, query, key, value, mask=mask, rotary=rotary)


def _may_rotate(size: int, width: int) -> bool:
    """Tell whether heads of this size are usual where there is a rotary embedding."""
    return size % 2 == 0 and (4 if width < 256 else 32) <= size <= 256


def _changed_recipes(attend: _Attention, ours: Recipe) -> Iterator[tuple[str, Recipe]]:
    """Yield recipes that differ from `ours` in one field."""
    width = attend.parts[ours.query].shape[-1]
    sources = range(len(attend.parts))
    choices: dict[str, Sequence[object]] = {
        "scale": list(_SCALES),
        "axis": ("queries", "heads"),
        "mask": list(attend.masks),
        "merge": ("without the transpose",),
        "split": ("without the transpose", "with the head size first"),
        "rotary": _ROTARIES,
        "groups": ("tiled",),
        "heads": [1, *(width // size for size in head_sizes(width))],
        "query": sources, "key": sources, "value": sources,
    }  # fmt: skip
    for field in fields(Recipe):
        for choice in choices[field.name]:
            if choice != getattr(ours, field.name):
                yield field.name, replace(ours, **{field.name: choice})  # type: ignore[arg-type]
