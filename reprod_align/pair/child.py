"""The other end of a `RemoteSide`: python -m reprod_align.pair.child FILE.py torch|paddle FD [BYTES]."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from reprod_align.base import Framework
from reprod_align.base.console import quieten, without_warnings
from reprod_align.errors import ReprodError
from reprod_align.model.local import LocalSide
from reprod_align.model.store import limit_memory
from reprod_align.page import list_versions
from reprod_align.pair.file import PairFile, catch_error, open_file
from reprod_align.pair.remote import FUNCTIONS, METHODS, Hello
from reprod_align.pair.wire import Wire


class Served:
    """A side and its working state, which starts with one message and stops with another."""

    def __init__(self, file: PairFile, side: LocalSide) -> None:
        """Serve one side of the pair in the file."""
        self._file, self._side = file, side
        self._working: list[ExitStack] = []

    def list_functions(self) -> frozenset[str]:
        """Return which of a side's functions the file defines."""
        return frozenset(name for name in FUNCTIONS if getattr(self._side, name) is not None)

    def hello(self) -> Hello:
        """Return what is said first."""
        name, file, given = self._side.name, self._file, self.list_functions()
        said = file.inputs(), file.settings(), file.remarks(), list_versions(), file.reference()
        return Hello(name, given, *said)

    def answer(self, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Return the answer to one question, plain data."""
        if name == "start_working":
            stack = ExitStack()
            stack.enter_context(self._side.working(*arguments))
            return self._working.append(stack)
        if name == "stop_working":
            return self._working.pop().close()
        found = getattr(self._side, name)
        answer = found(*arguments, **options) if name in METHODS else found
        return dict(answer) if isinstance(answer, Mapping) else answer


def main(path: Path, framework: Framework, wire: Wire) -> None:
    """Load the file and answer questions until the other end is closed."""
    with ExitStack() as stack:

        def load() -> Served:
            file = stack.enter_context(open_file(path, PairFile, any_reference=True))
            return Served(file, file.side(framework))

        serve(load, path, wire)


def serve(load: Callable[[], Served], path: Path, wire: Wire) -> None:
    """Answer questions about what `load` makes until the other end is closed; errors are answers."""
    served = catch_error(path, load)
    if isinstance(served, ReprodError):
        wire.send(served)
        return
    wire.send(catch_error(path, served.hello))
    while True:
        try:
            question = wire.receive()
        except EOFError:
            return
        wire.send(catch_error(path, partial(served.answer, *question)))


if __name__ == "__main__":
    quieten()
    file, framework, handle, *memory = sys.argv[1:]
    with without_warnings(), limit_memory(int(memory[0]) if memory else None):
        pipe: "Connection[Any, Any]" = Connection(int(handle))
        main(Path(file), cast(Framework, framework), Wire(pipe))
