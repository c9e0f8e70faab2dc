"""The modules as a tree in call order, in the short form that the page unfolds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from reprod_align.errors import one_line
from reprod_align.page.content import Layer


@dataclass
class _Node:
    """A module, or a part of names that is no module that was called (a list of layers)."""

    name: str
    layer: Layer | None = None
    inside: dict[str, "_Node"] = field(default_factory=dict)


def flatten_tree(layers: Sequence[Layer], limit: float) -> list[list[Any]]:
    """Return a row for each module, parents before children, both in call order.

    A row: depth, last part of the name, PyTorch's name, Paddle's name if it is another one, class,
    calls, introduced, inherited, total, backward, state. A figure is None where it is not known;
    state: 2 a finding is about it, 1 its difference or one inside it is above `limit`, 0 it agrees.
    """
    rows = list(_walk(_grow(layers), 0, "", limit))
    for row, above in reversed(list(zip(rows, _find_parents(rows), strict=True))):
        if row[-1] and above is not None and not above[-1]:  # what differs inside shows outside
            above[-1] = 1
    return rows


def _find_parents(rows: Sequence[list[Any]]) -> list[list[Any] | None]:
    """Return the row above each in the tree; None for the first."""
    parents: list[list[Any] | None] = []
    open_rows: list[list[Any]] = []
    for row in rows:
        del open_rows[row[0] :]
        parents.append(open_rows[-1] if open_rows else None)
        open_rows.append(row)
    return parents


def _grow(layers: Sequence[Layer]) -> _Node:
    root = _Node("")
    for layer in layers:
        node = root
        for part in layer.torch_name.split(".") if layer.torch_name else ():
            node = node.inside.setdefault(part, _Node(part))
        node.layer = layer
    return root


def _walk(node: _Node, depth: int, path: str, limit: float) -> Iterator[list[Any]]:
    yield [depth, one_line(node.name), one_line(path), *_describe(node.layer, path, limit)]
    for part, inner in node.inside.items():
        yield from _walk(inner, depth + 1, f"{path}.{part}" if path else part, limit)


def _describe(layer: Layer | None, path: str, limit: float) -> list[Any]:
    if layer is None:
        return ["", "", 0, None, None, None, None, 0]
    other = one_line(layer.paddle_name) if layer.paddle_name != path else ""
    forward = None if layer.forward is None else layer.forward.relative
    backward = None if layer.backward is None else layer.backward.relative
    figures = [layer.introduced, layer.inherited, forward, backward]
    differs = any(one is not None and not one <= limit for one in figures)
    state = 2 if layer.failed else int(differs)
    return [other, one_line(layer.kind), layer.calls, *map(_shorten, figures), state]


def _shorten(figure: float | None) -> float | str | None:
    """Return a figure as JSON has it, with as many digits as are read."""
    if figure is None:
        return None
    return float(f"{figure:.2e}") if math.isfinite(figure) else str(figure)
