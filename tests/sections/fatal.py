"""A port of the small decoder that ends its worker once, where the environment names a file for it."""

import os
import signal
from pathlib import Path
from typing import Any

from tests.sections.small import PaddleBlock, PaddleNet

FLAG, COMMAND = "END_A_WORKER_ONCE", "PROCESS_OF_THE_COMMAND"


class FatalBlock(PaddleBlock):
    def forward(self, hidden: Any, mask: Any) -> Any:
        flag = os.environ.get(FLAG)
        if flag and os.environ[COMMAND] != str(os.getpid()) and not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(hidden, mask)


class FatalNet(PaddleNet):
    """Its second layer is wrong where `code` is its fault, and ends a worker either way."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(fault)
        self.layers[1] = FatalBlock(fault)


def make_wrong() -> FatalNet:
    return FatalNet("code")
