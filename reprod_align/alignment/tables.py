"""Gives the port the reference's float32 tables, where each framework rounded the same numbers its own way.

A table of positions or frequencies that a model makes as it is built, by float32's `sin` or `pow`, is a
constant like a weight: two libraries round it a unit apart, and float64 keeps that.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from reprod_align.base import REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.text import count, shorten
from reprod_align.errors import ReprodError
from reprod_align.model.side import Side

import numpy as np

_UNITS = 2.0**-21
"""of the largest number: four units in the last place of float32; sines were seen two units apart"""
_NAMED = 3  # tables in one remark


@contextmanager
def lent_tables(reference: Side, port: Side) -> Iterator[list[str]]:
    """Let the port hold the reference's tables in the block, and yield their names in the port."""
    found = _pair_tables(reference.read_tables(), port.read_tables())
    own = {name: value for name, (value, _) in found.items()}
    if found:
        port.set_tables({name: theirs for name, (_, theirs) in found.items()})
    try:
        yield list(found)
    finally:
        if found:
            with suppress(ReprodError):  # a process that is gone holds none
                port.set_tables(own)


def describe_tables(names: list[str]) -> str:
    """Return the remark on tables that were lent."""
    verb = "holds" if len(names) == 1 else "hold"
    return (f"{count(len(names), 'table')} that float32 rounds in each framework's own way "
            f"{verb} {REFERENCE}'s numbers: {shorten(names, _NAMED)}")  # fmt: skip


def _pair_tables(
    ours: Mapping[str, Array], theirs: Mapping[str, Array]
) -> dict[str, tuple[Array, Array]]:
    """Return the port's tables that one of the reference's is but for float32 rounding, with that one."""
    found = {}
    for name, table in theirs.items():
        alike = [one for one in ours.values() if one.shape == table.shape]
        if any(np.array_equal(one, table, equal_nan=True) for one in alike):
            continue
        near = [one for one in alike if _is_rounded(one, table)]
        if near and all(np.array_equal(one, near[0]) for one in near):
            found[name] = table, near[0]
    return found


def _is_rounded(one: Array, other: Array) -> bool:
    """Tell whether two tables are the same but for float32 rounding."""
    wide, given = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(wide - given) <= _UNITS * np.abs(wide).max()).all())
