"""Results as strict JSON: dataclasses, numpy's values, paths; NaN and infinities as text."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from reprod_align.base.atomic import write_text

import numpy as np


def to_plain(value: Any) -> Any:
    """Return `value` as dicts with text keys, lists, texts, numbers, booleans and None.

    A dataclass becomes a dict of its fields, an array nested lists; NaN, infinities, complex
    numbers, bytes and paths become text. Raises TypeError for other objects.
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (float, np.floating)):  # a long double stays numpy's
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, (complex, bytes, os.PathLike)):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def as_json(value: Any, indent: int = 2, ensure_ascii: bool = True) -> str:
    """Return `value`, made plain, as JSON text."""
    plain = to_plain(value)
    return json.dumps(plain, indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as JSON to `path`, whole or not at all; ReprodError if that fails."""
    write_text(path, f"{as_json(value, indent=1)}\n")
