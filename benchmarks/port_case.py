"""A source of `benchmarks.ports`."""

from collections.abc import Callable
from dataclasses import dataclass

from reprod_align.model.side import Inputs


@dataclass(frozen=True)
class PortCase:
    """A source, the call that makes its model, and inputs."""

    module: str
    call: str
    make_inputs: Callable[[], Inputs]
