"""Refuses, in the port's own process, what its code asks the system for. Nothing here is a sandbox.

An audit hook (PEP 578) hears what Python is asked to do: files, processes, libraries, connections. Where
code of the port is on the stack and what it asks for is not allowed, the refusal is written to a pipe at
once, which nothing can take back, and the call raises. Code in C that asks the system itself is not heard.
"""

import os
import sys
import sysconfig
from collections.abc import Collection, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import FrameType
from typing import Any, Final

HIDDEN: Final = frozenset({"torch", "torchvision", "torchaudio", "torchgen", "functorch"})
"""packages that a port's process cannot find"""
ARMED: Final = b"armed"
"""the first line in the pipe"""
_ASKED: Final[Mapping[str, str]] = {
    "subprocess.Popen": "starts-processes", "os.system": "starts-processes",
    "os.exec": "starts-processes", "os.posix_spawn": "starts-processes", "os.spawn": "starts-processes",
    "os.fork": "starts-processes", "os.forkpty": "starts-processes", "pty.spawn": "starts-processes",
    "_thread.start_new_thread": "starts-processes",
    "os.kill": "ends-the-process", "os.killpg": "ends-the-process", "signal.pthread_kill": "ends-the-process",
    "os.remove": "writes-files", "os.rename": "writes-files", "os.link": "writes-files",
    "os.symlink": "writes-files", "os.mkdir": "writes-files", "os.rmdir": "writes-files",
    "os.truncate": "writes-files", "os.chmod": "writes-files", "os.chown": "writes-files",
    "shutil.rmtree": "writes-files", "os.putenv": "reads-the-environment",
    "sys.settrace": "inspects-the-judge", "sys.setprofile": "inspects-the-judge",
    "sys.addaudithook": "inspects-the-judge",
    "gc.get_objects": "inspects-the-judge", "gc.get_referrers": "inspects-the-judge",
    "gc.get_referents": "inspects-the-judge",
}  # fmt: skip
"""what is refused wherever code of the port is on the stack"""
_ASKED_DIRECTLY: Final[Mapping[str, str]] = {
    "exec": "runs-text", "compile": "runs-text", "code.__new__": "runs-text", "marshal.loads": "runs-text",
    "pickle.find_class": "reads-files", "sys._getframe": "inspects-the-judge",
    "object.__setattr__": "patches-framework",
}  # fmt: skip
"""what is refused where the port's code itself asks; libraries do it for their own ends"""
_THROUGH_LIBRARY: Final = "exec"
"""asked directly also where only the standard library lies between: typing.get_type_hints"""
_MAKERS: Final = ("dataclasses.py", f"collections{os.sep}__init__.py")
"""of the standard library: what makes classes out of text of its own"""
_GROUPS: Final = (("ctypes.", "uses-ctypes"), ("socket.", "uses-the-network"))
_LIBRARY: Final = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FOLDERS: Final = ("os.listdir", "os.scandir")
_MOST: Final = 50  # refusals that are told


class Refused(RuntimeError):
    """Raised in the port's code by what it asked for."""


class Guard:
    """Hears what code below a folder asks for, and tells it through a pipe."""

    def __init__(self, folder: Path, pipe: int, packages: Collection[str]) -> None:
        """folder: of the port's files; pipe: where refusals go; packages: what it may import."""
        self._folder = f"{folder.resolve()}{os.sep}"
        self._pipe, self._told = pipe, 0
        self._packages = frozenset(packages)
        self._readable = (self._folder, *_list_readable())
        self._hidden = tuple(
            f"{root}{os.sep}{name}" for root in _list_readable() for name in HIDDEN
        )
        self._busy = False

    def arm(self) -> None:
        """Begin to listen; it cannot be ended. The pipe is told: from now on it is the port that acts."""
        sys.addaudithook(self._hear)
        os.write(self._pipe, ARMED + b"\n")

    def tell(self, code: str, text: str) -> None:
        """Write a refusal to the pipe."""
        self._told += 1
        if self._told <= _MOST:
            line = f"{code}\t{text}".encode("unicode_escape", "replace")[:1000]
            os.write(self._pipe, line + b"\n")

    def _hear(self, event: str, arguments: Sequence[Any]) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            found = self._judge(event, arguments)
        finally:
            self._busy = False
        if found:
            raise Refused(f"{found[0]}: {found[1]}")

    def _judge(self, event: str, arguments: Sequence[Any]) -> tuple[str, str] | None:
        code = self._find_code(event, arguments)
        if not code:
            return None
        place = self._find_port(event, event in _ASKED_DIRECTLY or event == "import")
        if not place:
            return None
        said = f"{place}: {event} {str(arguments[:1])[1:-2][:200]}"
        self.tell(code, said)
        return code, said

    def _find_code(self, event: str, arguments: Sequence[Any]) -> str:
        """Return why an event is refused of the port, "" if it is allowed."""
        if event == "open":
            return self._find_file_code(*arguments[:3])
        if event in _FOLDERS:
            return self._find_path_code(arguments[0])
        if event == "import":
            return self._find_import_code(str(arguments[0]))
        for start, code in _GROUPS:
            if event.startswith(start):
                return code
        return _ASKED.get(event) or _ASKED_DIRECTLY.get(event, "")

    def _find_file_code(self, path: Any, mode: Any, flags: Any) -> str:
        if isinstance(path, int):
            return ""
        if isinstance(flags, int) and flags & _WRITES and os.fspath(path) != os.devnull:
            return "writes-files"
        return self._find_path_code(path)

    def _find_path_code(self, path: Any) -> str:
        try:
            real = os.path.realpath(os.fsdecode("." if path is None else path))
        except (TypeError, ValueError):
            return "reads-files"
        if real.startswith("/proc/"):
            return "reads-proc"
        if real.startswith(self._hidden):
            return "imports-torch"
        known = real.startswith(self._readable) or f"{real}{os.sep}" in self._readable
        return "" if known or real in ("/dev/null", "/dev/urandom") else "reads-files"

    def _find_import_code(self, name: str) -> str:
        root = name.partition(".")[0]
        if root in HIDDEN:
            return "imports-torch"
        return "imports-the-judge" if root == "reprod_align" else ""

    def _find_port(self, event: str, directly: bool) -> str:
        """Return the port's line on the stack, "" if there is none.

        directly: only where it asks itself, or by an import statement, which Python carries out.
        """
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self._folder):
                return f"{name.removeprefix(self._folder)}, line {frame.f_lineno}"
            if directly and not _lies_between(event, name):
                return ""
            frame = frame.f_back
        return ""


def _lies_between(event: str, file: str) -> bool:
    """Tell whether code of a file only carries out what the code below it on the stack asks for."""
    if event == "import":
        return file.startswith("<frozen importlib")
    return event == _THROUGH_LIBRARY and file.startswith(_LIBRARY) and not file.endswith(_MAKERS) \
        and "-packages" not in file  # fmt: skip


class _Finder:
    """Finds what Python's own finder does, but for hidden packages."""

    def __init__(self, hidden: Collection[str]) -> None:
        self._hidden = frozenset(hidden)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return a module's spec, None for a hidden package: it counts as not installed."""
        if name.partition(".")[0] in self._hidden:
            return None
        return PathFinder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:
        """Return what Python's own finder has: distributions, caches."""
        return getattr(PathFinder, name)


def hide_packages(hidden: Collection[str] = HIDDEN) -> None:
    """Let packages count as not installed in this process: PyTorch."""
    finder = _Finder(hidden)
    sys.meta_path[:] = [finder if one is PathFinder else one for one in sys.meta_path]


def _list_readable() -> tuple[str, ...]:
    """Return the folders in which Python and its packages lie."""
    found = {os.path.realpath(path) for name in ("stdlib", "platstdlib", "purelib", "platlib")
             for path in [sysconfig.get_path(name)]}  # fmt: skip
    found |= {os.path.realpath(path) for path in sys.path if path.endswith(("-packages", ".zip"))}
    found |= {os.path.realpath(Path(__file__).parents[1])}
    return tuple(sorted(f"{path}{os.sep}" for path in found))
