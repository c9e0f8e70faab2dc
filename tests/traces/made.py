"""Traces made of plain arrays."""

from dataclasses import replace
from typing import Any

from reprod_align.traces import RecordedTrace, TraceTensor

import numpy as np


def tensor(values: np.ndarray, **changes: Any) -> TraceTensor:
    plain = TraceTensor(
        module="layer", call=0, order=0, leaf="", phase="output", dtype=str(values.dtype),
        shape=values.shape, whole=True, transposed=False, passed_on=False, values=values,
    )  # fmt: skip
    return replace(plain, **changes)


def trace(*values: np.ndarray, **changes: Any) -> RecordedTrace:
    tensors = [tensor(v, order=n, module=f"layer.{n}", **changes) for n, v in enumerate(values)]
    return RecordedTrace("PyTorch", "whole", tuple(tensors))
