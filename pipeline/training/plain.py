"""How Step 5's plain scripts start: what they are asked for beyond their options, pt_train_many.py does."""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from pipeline.run import Run, start
from pipeline.run.command_line import make_parser
from pipeline.tasks import SST2

_COUNTS = (
    "WORLD_SIZE",
    "PADDLE_TRAINERS_NUM",
)  # how many processes torchrun or Paddle's launcher started


def start_plain(main: Callable[[Run], None], about: str | None, *, writes: str) -> None:
    """Run a script's `main` as `pipeline.run.start` does, or in its place the one beside it, NAME_many.py.

    That one runs if the command line has options that `make_parser` does not know, for another task than
    SST-2, and if a launcher started several processes.
    """
    options, more = make_parser(about).parse_known_args()
    several = any(os.environ.get(name, "1") != "1" for name in _COUNTS)
    if more or several or options.task != SST2.name:
        script = Path(sys.argv[0])
        sys.argv[0] = str(script.with_name(f"{script.stem}_many.py"))
        runpy.run_path(sys.argv[0], run_name="__main__")  # it exits
    start(main, about, writes=writes)
