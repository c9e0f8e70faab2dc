"""Records the calls of a Paddle model into a file. `backends.torch.trace` is the twin."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from reprod_align.backends.paddle import side as paddle_side
from reprod_align.backends.paddle import sketch as paddle_sketch
from reprod_align.traces import Rank
from reprod_align.traces.recorder import record_model

from paddle import distributed, nn


@contextmanager
def record_trace(
    model: nn.Layer,
    path: str | os.PathLike[str],
    mode: str = "whole",
    *,
    forward: bool = True,
    backward: bool = True,
) -> Iterator[None]:
    """Record every module call in the block, and write it to `path` when the block ends well.

    mode: "whole" keeps every tensor, "sketch" 8 KB of each, whatever its size.
    forward: inputs and outputs. backward: the gradients of outputs and of parameters; run the
    backward pass inside the block. Results are the same, to the last bit, as without recording.

        with record_trace(model, "run.trace", mode="sketch"):
            model(inputs).sum().backward()

    In a parallel run each rank records its own part, into a file of its own; the file says which rank it
    is, and `reprod-align diff` takes the folder. Wrappers such as DataParallel are left out of the names.
    Raises ReprodError if nothing was recorded, or the file cannot be written.
    """
    model, rank = _read_rank(model)
    with record_model(paddle_side, paddle_sketch, model, path, mode, forward, backward, rank):
        yield


def _read_rank(model: nn.Layer) -> tuple[nn.Layer, Rank | None]:
    """Return the model without what wraps it in a parallel run, and which rank this process is."""
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return model, None
    from reprod_align.backends.paddle import (
        parallel,  # the engine's modules, which one process has no use for
    )

    return parallel.unwrap(model), Rank(*parallel.read_rank())
