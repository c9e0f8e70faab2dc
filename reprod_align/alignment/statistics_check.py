"""What a faithful port's running statistics are after one step of batch norm.

Paddle keeps the biased running variance where PyTorch keeps the unbiased one, and its kernel takes
the momentum as a float32: 0.9 becomes 0.899999976, in float64 too.
"""

from reprod_align.model.side import ModelInfo
from reprod_align.model.trace import Array, Trace

import numpy as np


def paddle_statistic(name: str, before: Array, reference: Trace, info: ModelInfo) -> Array | None:
    """Return what Paddle's layer holds after the step in which PyTorch's started from `before`.

    name: of PyTorch's buffer; `before` is (C,). None for any other buffer, or where the step can't
    be told (a cumulative average, inputs that were not kept).
    """
    owner, _, role = name.rpartition(".")
    momentum = info.modules[owner].values.get("momentum")
    calls = [call for call in reference.calls if call.path == owner]
    if role not in ("running_mean", "running_var") or not momentum or not calls:
        return None
    keep = float(np.float32(1 - momentum))
    statistic = before
    for call in calls:
        if not call.inputs:
            return None
        values = next(iter(call.inputs.values())).array
        axes = tuple(axis for axis in range(values.ndim) if axis != 1)
        batch = values.mean(axes) if role == "running_mean" else values.var(axes)
        statistic = keep * statistic + (1 - keep) * batch
    return statistic
