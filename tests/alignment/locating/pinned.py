"""A small pair's run on the reference's numbers, for tests of single modules of `locating`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reprod_align.alignment.comparing import Pass, compare_pass
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.pinning import run_pinned
from reprod_align.alignment.runner import Runner
from tests.alignment.small import PaddleNet, TorchNet, X, at_work


@contextmanager
def pinned(
    torch_model: Any = None, paddle_model: Any = None, inputs: Any = (X,)
) -> Iterator[tuple[Runner, Pass, PinnedRun, PinnedRun]]:
    """Yield the pass in eval mode, and the runs with the port's own constants and with all given."""
    models = torch_model or TorchNet(), paddle_model or PaddleNet()
    with at_work(*models, inputs=inputs) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        yield runner, done, *run_pinned(runner, done)
