"""Gives the port the reference's float32 tables, where each framework rounded the same numbers its own way.

A table of positions or frequencies that a model makes as it is built, by float32's `sin` or `pow`, is a
constant like a weight: two libraries round it a unit apart, and float64 keeps that.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from reprod_align.base import REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.local import Allowance, judge
from reprod_align.base.text import count, shorten
from reprod_align.errors import ReprodError
from reprod_align.model.side import Side

import numpy as np

_UNITS = 2.0**-21
"""of a row's largest number: four units in the last place of float32; sines were seen two units apart"""
_NAMED = 3  # tables in one remark


@contextmanager
def lent_tables(reference: Side, port: Side) -> Iterator[list[str]]:
    """Let the port hold the reference's tables in the block, and yield their names in the port."""
    ours, theirs = reference.read_tables(), port.read_tables()
    found = _pair_tables(ours, theirs)
    if found:  # a buffer of both is loaded as weights are, if it has as many rows
        buffers = reference.describe().tensors, port.describe().tensors
        found = {name: other for name, other in found.items()
                 if name not in buffers[1] or other not in buffers[0]
                 or ours[other].shape != theirs[name].shape}  # fmt: skip
        port.set_tables(
            {name: lay_over(ours[other], theirs[name]) for name, other in found.items()}
        )
    try:
        yield list(found)
    finally:
        if found:
            with suppress(ReprodError):  # a process that is gone holds none
                port.set_tables({name: theirs[name] for name in found})


def describe_tables(names: list[str]) -> str:
    """Return the remark on tables that were lent."""
    verb = "holds" if len(names) == 1 else "hold"
    return (f"{count(len(names), 'table')} that float32 rounds in each framework's own way "
            f"{verb} {REFERENCE}'s numbers: {shorten(names, _NAMED)}")  # fmt: skip


def may_fit(due: Array, held: Array) -> bool:
    """Tell whether two tables are of one size, or of more and fewer rows, such as positions."""
    if due.size == held.size:
        return True
    return due.ndim == held.ndim > 1 and due.shape[-1] == held.shape[-1]


def fit(due: Array, held: Array) -> Array:
    """Return as much of the reference's table as the port's has, in its shape."""
    return due.reshape(held.shape) if due.size == held.size else cut(due, held)


def cut(table: Array, other: Array) -> Array:
    """Return what a table has of the rows of another."""
    return table[tuple(map(slice, np.minimum(table.shape, other.shape)))]


def lay_over(due: Array, held: Array) -> Array:
    """Return the port's table with the reference's rows in it, as far as there are any."""
    rows, made = fit(due, held), held.copy()
    made[tuple(map(slice, rows.shape))] = rows
    return made


def shape_as_rows(due: Array, held: Array) -> Array | None:
    """Return values of one run in the shape of a table whose first rows they may be; None if they can't be.

    What a model computes for each position, (1, 7, 16), a port may keep for all of them, (40, 1, 16). Where
    it is the same for each example of a batch, one stands for all.
    """
    if due.ndim and due.shape[0] > 1 and (due == due[:1]).all():
        due = due[:1]
    rows, whole = due.squeeze(), held.squeeze()
    if rows.ndim != whole.ndim or not rows.ndim or rows.size < 2:
        return None
    if rows.shape[1:] != whole.shape[1:] or len(rows) > len(whole):
        return None
    sizes = iter(rows.shape)
    return rows.reshape([next(sizes) if size > 1 else 1 for size in held.shape])


def _pair_tables(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> dict[str, str]:
    """Return the port's tables that are one of the reference's but for float32 rounding, with its name.

    One of them may have more rows.
    """
    found = {}
    for name, table in theirs.items():
        alike = {
            other: cut(one, table)
            for other, one in ours.items()
            if may_fit(one, table) and one.ndim == table.ndim and one.shape[1:] == table.shape[1:]
        }
        rows = {other: cut(table, one) for other, one in alike.items()}
        if any(np.array_equal(one, rows[other], equal_nan=True) for other, one in alike.items()):
            continue
        near = {other: one for other, one in alike.items() if _is_rounded(one, rows[other])}
        first = next(iter(near), None)
        if first is not None and all(np.array_equal(one, near[first]) for one in near.values()):
            found[name] = first
    return found


def _is_rounded(one: Array, other: Array) -> bool:
    """Tell whether two tables are the same but for float32 rounding, each number by its own row's size."""
    return judge(one.astype(np.float64), other.astype(np.float64), Allowance(_UNITS)).ok
