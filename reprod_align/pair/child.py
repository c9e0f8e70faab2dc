"""The other end of a `RemoteSide`: python -m reprod_align.pair.child FILE.py torch|paddle FD."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from reprod_align.base.quiet import quieten, without_warnings
from reprod_align.errors import ReprodError
from reprod_align.pair.file import Framework, PairFile, opened, placed
from reprod_align.pair.remote import Hello
from reprod_align.pair.wire import Wire

_FUNCTIONS = ("loss", "optimizer", "scheduler")
_METHODS = ("describe", "values", "load", "optimizer_settings", "run", "train", "rates")


class _Served:
    """A side and its working state, which starts with one message and stops with another."""

    def __init__(self, file: PairFile, framework: Framework) -> None:
        self._file, self._side = file, file.side(framework)
        self._working: list[ExitStack] = []

    def hello(self) -> Hello:
        given = frozenset(name for name in _FUNCTIONS if getattr(self._side, name) is not None)
        file = self._file
        return Hello(self._side.name, given, file.inputs(), file.settings(), file.remarks())

    def answer(self, method: str, arguments: tuple[Any, ...]) -> Any:
        if method in _METHODS:
            return getattr(self._side, method)(*arguments)
        answers: dict[str, Callable[[], Any]] = {
            "remarks": lambda: self._side.remarks,
            "asked_float32": lambda: self._side.asked_float32,
            "start_working": lambda: self._start(*arguments),
            "stop_working": lambda: self._working.pop().close(),
        }
        return answers[method]()

    def _start(self, dtype: str | None, throughout: bool) -> None:
        stack = ExitStack()
        stack.enter_context(self._side.working(dtype, throughout))
        self._working.append(stack)


def main(path: Path, framework: Framework, wire: Wire) -> None:
    """Load the file and do what is asked, until the other end is closed."""
    with ExitStack() as stack:

        def made() -> _Served:
            return _Served(stack.enter_context(opened(path, PairFile)), framework)

        served = _tried(path, made)
        if isinstance(served, ReprodError):
            wire.send(served)
            return
        wire.send(_tried(path, served.hello))
        while True:
            try:
                method, arguments = wire.receive()
            except EOFError:
                return
            wire.send(_tried(path, partial(served.answer, method, arguments)))


def _tried(path: Path, function: Callable[[], Any]) -> Any:
    """Return what the function does, or the error that it raised, with the line of the file."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        return placed(error, path)


if __name__ == "__main__":
    quieten()
    with without_warnings():
        file, framework, handle = sys.argv[1:]
        pipe: "Connection[Any, Any]" = Connection(int(handle))
        main(Path(file), cast(Framework, framework), Wire(pipe))
