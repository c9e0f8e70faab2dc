"""Records the calls of a Paddle model into a file. `backends.torch.trace` is the twin."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from reprod_align.backends.paddle import side as paddle_side
from reprod_align.backends.paddle import sketch as paddle_sketch
from reprod_align.traces.recorder import record_model

from paddle import nn


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

    Raises ReprodError if nothing was recorded, or the file cannot be written.
    """
    with record_model(paddle_side, paddle_sketch, model, path, mode, forward, backward):
        yield
