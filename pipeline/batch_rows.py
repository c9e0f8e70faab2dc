"""Some rows of a batch that draw what they would draw as a part of the whole batch.

With it, a batch that passes through the model in parts, for gradient accumulation, gets the dropout
masks that it gets in one piece.
"""

from reprod_align.randomness import Draws, Float64, Int64, Shape, UnsharedDrawError


def rows_of(draws: Draws, rows: slice, examples: int) -> Draws:
    """Return the stream for `rows` of a batch of `examples`, out of the whole batch's stream."""
    return draws if rows == slice(0, examples) else _Rows(draws, rows, examples)


class _Rows:
    def __init__(self, draws: Draws, rows: slice, examples: int) -> None:
        self._draws, self._rows, self._examples = draws, rows, examples

    def uniform(self, shape: Shape) -> Float64:
        """Return these rows of float64 of the batch's shape from [0, 1)."""
        return self._draws.uniform(self._whole(shape))[self._rows]

    def normal(self, shape: Shape) -> Float64:
        """Return these rows of float64 of the batch's shape from the standard normal distribution."""
        return self._draws.normal(self._whole(shape))[self._rows]

    def integers(self, low: int, high: int, shape: Shape) -> Int64:
        """Return these rows of int64 of the batch's shape from [low, high)."""
        return self._draws.integers(low, high, self._whole(shape))[self._rows]

    def permutation(self, n: int) -> Int64:
        """Raise UnsharedDrawError: an order of the whole batch is no order of its parts."""
        raise UnsharedDrawError(f"a permutation of {n} cannot be drawn for a part of a batch")

    def _whole(self, shape: Shape) -> Shape:
        rows = self._rows.stop - self._rows.start
        if not shape or shape[0] != rows:
            raise UnsharedDrawError(
                f"a draw of shape {shape} has no axis for the {rows} examples of a part of a batch"
            )
        return (self._examples, *shape[1:])
