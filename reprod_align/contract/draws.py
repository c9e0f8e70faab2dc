"""The batches of a proof: drawn by the contract's rules from a seed that nobody knew before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reprod_align.errors import ReprodError
from reprod_align.model.trace import Array

import numpy as np

KINDS: Final = ("int64", "float64", "mask")
_KEYS: Final = {"shape", "kind", "low", "high", "end"}


@dataclass(frozen=True)
class Draw:
    """How one input is drawn."""

    shape: tuple[int | str, ...]
    """a length, or the name of one that all inputs share: "4-12" is drawn anew for each batch"""
    kind: str
    """int64: from low up to, not including, high; float64: normal numbers times high; mask: ones,
    then zeros"""
    low: int = 0
    high: int = 1
    end: int | None = None
    """what the last of each row is: an end token"""


def read_draw(name: str, made: Any, fault: Callable[[str], ReprodError]) -> Draw:
    """Return the rule of one input. Raises what `fault` makes of a sentence."""

    def refuse(what: str) -> ReprodError:
        return fault(f"inputs.{name}: {what}")

    if not isinstance(made, dict) or not _KEYS >= made.keys():
        raise refuse(f"expected a table of {', '.join(sorted(_KEYS))}")
    shape, kind = made.get("shape"), made.get("kind", "float64")
    if not isinstance(shape, list) or not shape or not all(map(_is_length, shape)):
        raise refuse('shape: expected lengths such as [2, "4-12"]')
    if kind not in KINDS:
        raise refuse(f"kind: expected one of {', '.join(KINDS)}")
    low, high, end = made.get("low", 0), made.get("high", 1), made.get("end")
    if not all(type(one) is int for one in (low, high, 0 if end is None else end)) or low >= high:
        raise refuse("low and high: expected whole numbers, low below high")
    return Draw(tuple(shape), kind, low, high, end)


def draw_batch(
    rules: Mapping[str, Draw], seed: int, number: int, twin: int = 0
) -> dict[str, Array]:
    """Return batch `number` of a seed: {input: array}. Equal ranges have equal lengths in a batch.

    twin: another batch of the same shapes.
    """
    source = np.random.default_rng([seed, number])
    lengths: dict[str, int] = {}
    for rule in rules.values():
        for length in rule.shape:
            if isinstance(length, str) and length not in lengths:
                low, _, high = length.partition("-")
                lengths[length] = int(source.integers(int(low), int(high) + 1))
    source = np.random.default_rng([seed, number, twin])
    return {name: _draw(rule, lengths, source) for name, rule in rules.items()}


def _draw(rule: Draw, lengths: Mapping[str, int], source: np.random.Generator) -> Array:
    shape = tuple(lengths[n] if isinstance(n, str) else n for n in rule.shape)
    if rule.kind == "float64":
        return source.standard_normal(shape) * rule.high
    if rule.kind == "mask":
        kept = source.integers(max(1, shape[-1] // 2), shape[-1] + 1, (*shape[:-1], 1))
        return (np.arange(shape[-1]) < kept).astype(np.int64)
    made = source.integers(rule.low, rule.high, shape)
    if rule.end is not None:
        made[..., -1] = rule.end
    return made


def _is_length(value: object) -> bool:
    if type(value) is int:
        return 0 < value < 2**24
    if not isinstance(value, str):
        return False
    low, dash, high = value.partition("-")
    return bool(dash) and low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high) < 2**24
