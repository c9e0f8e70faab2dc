"""What both Informer twins share and no framework is needed for: their arguments, checked.

Names, order and defaults are those of the original constructor, without `device`.
source  https://github.com/zhouhaoyi/Informer2020/blob/main/models/model.py
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from reprod_align.errors import ReprodError

ATTENTIONS = ("prob", "full")
EMBEDS = ("timeF", "fixed", "learned")
ACTIVATIONS = ("gelu", "relu")
MAX_LENGTH = 5000  # rows of the position table

# A mark says when a value was measured. As time features (timeF), one number a column:
TIME_FEATURES = {"h": 4, "t": 5, "s": 6, "m": 1, "a": 1, "w": 2, "d": 3, "b": 3}
# Otherwise month, day, weekday, hour and, for "t", the quarter of an hour; rows of each table:
MONTHS, DAYS, WEEKDAYS, HOURS, QUARTERS = 13, 32, 7, 24, 4


class InformerError(ReprodError, ValueError):
    """An Informer that cannot be built, or input that it cannot take; the message is one line."""


@dataclass(frozen=True)
class InformerArguments:
    """The constructor arguments of Informer.

    Raises InformerError for a value of the wrong type or out of range.
    """

    enc_in: int
    dec_in: int
    c_out: int
    seq_len: int
    """length of the encoder's input; as `label_len`, for the caller: the model does not use it"""
    label_len: int
    out_len: int
    """how many of the decoder's last positions are returned"""
    factor: int = 5
    d_model: int = 512
    n_heads: int = 8
    e_layers: Any = 3
    d_layers: int = 2
    d_ff: int | None = 512
    """None or 0 for 4 * d_model"""
    dropout: float = 0.0
    attn: str = "prob"
    embed: str = "fixed"
    freq: str = "h"
    activation: str = "gelu"
    output_attention: bool = False
    distil: bool = True
    mix: bool = True

    def __post_init__(self) -> None:
        """Check every field."""
        for name in ("enc_in", "dec_in", "c_out", "seq_len", "out_len", "factor", "n_heads"):
            _require_count(name, getattr(self, name), least=1)
        for name in ("label_len", "d_layers"):
            _require_count(name, getattr(self, name), least=0)
        _require_count("d_ff", self.d_ff or 0, least=0)
        _require_count("d_model", self.d_model, least=self.n_heads)
        if self.d_model % 2:
            raise InformerError(f"d_model must be even (sine and cosine), got {self.d_model}")
        if not _is_number(self.dropout) or not 0.0 <= self.dropout <= 1.0:
            raise InformerError(f"dropout must be a number from 0 to 1, got {self.dropout!r}")
        _require_one_of("attn", self.attn, ATTENTIONS)
        _require_one_of("embed", self.embed, EMBEDS)
        _require_one_of("freq", self.freq, tuple(TIME_FEATURES))
        _require_one_of("activation", self.activation, ACTIVATIONS)
        self._check_layers()

    def _check_layers(self) -> None:
        _require_count("e_layers", self.e_layers, least=1)

    @property
    def width(self) -> int:
        """The width of the feed-forward networks."""
        return self.d_ff or 4 * self.d_model

    @property
    def mark_columns(self) -> int:
        """How many columns the marks must have."""
        if self.embed == "timeF":
            return TIME_FEATURES[self.freq]
        return 5 if self.freq == "t" else 4

    def check_inputs(self, x_enc: Any, x_mark_enc: Any, x_dec: Any, x_mark_dec: Any) -> None:
        """Raise InformerError unless the four tensors have shapes that go together."""
        _check_series("x_enc", x_enc, self.enc_in)
        _check_series("x_dec", x_dec, self.dec_in)
        self._check_marks("x_mark_enc", x_mark_enc, x_enc)
        self._check_marks("x_mark_dec", x_mark_dec, x_dec)

    def _check_marks(self, name: str, marks: Any, series: Any) -> None:
        shape, wanted = list(marks.shape), [*series.shape[:2], self.mark_columns]
        further = self.embed != "timeF" and shape[:2] == wanted[:2] and shape[2:] > wanted[2:]
        if shape != wanted and not further:  # the tables leave further columns aside
            raise InformerError(
                f"{name} must be {wanted} with embed={self.embed!r}, freq={self.freq!r}, got {shape}"
            )


@dataclass(frozen=True)
class InformerStackArguments(InformerArguments):
    """The constructor arguments of InformerStack: `e_layers` lists the layers of each encoder."""

    e_layers: Sequence[int] = (3, 2, 1)

    def _check_layers(self) -> None:
        if not isinstance(self.e_layers, (list, tuple)) or not self.e_layers:
            raise InformerError(
                f"e_layers must be a list of layers, one number an encoder, got {self.e_layers!r}"
            )
        for layers in self.e_layers:
            _require_count("each of e_layers", layers, least=1)


def sparse_count(factor: int, length: int) -> int:
    """Return how many of `length` queries or keys ProbSparse attention takes: factor * ceil(ln length).

    Raises InformerError if that is none: of a single position there is nothing to choose.
    """
    if length < 2:
        raise InformerError(f"attn='prob' needs 2 positions or more, got {length}: use attn='full'")
    return min(factor * math.ceil(math.log(length)), length)


def _check_series(name: str, series: Any, width: int) -> None:
    shape = list(series.shape)
    if len(shape) != 3 or shape[2] != width:
        raise InformerError(f"{name} must be (batch, length, {width}), got {shape}")
    if not 0 < shape[1] <= MAX_LENGTH:
        raise InformerError(f"{name} must be 1 to {MAX_LENGTH} positions long, got {shape[1]}")


def _require_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InformerError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _require_one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InformerError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
