"""How much memory this process takes, and how much it may take."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_UNKNOWN = 2**32  # bytes to work with where the system does not tell
_GROUPS = Path("/sys/fs/cgroup")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
# bytes: the largest threshold that it takes, and its own after freeing such a block
_LARGEST = 2**25
_MOST = 2**31 - 1


@contextmanager
def reuse_freed() -> Iterator[None]:
    """Let glibc keep freed memory for the next array in the block; afterwards it is given back.

    Fresh memory comes page by page, which costs as much as a copy. Other allocators stay as they are.
    """
    _set_malloc(_LARGEST, _MOST)
    try:
        yield
    finally:
        _set_malloc(_LARGEST, 2 * _LARGEST)
        give_back_freed()


def give_back_freed() -> None:
    """Give the system the memory that is free inside this process; glibc alone keeps some."""
    trim = getattr(_find_c(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _set_malloc(mapped: int, kept: int) -> None:
    """Set from which size on a block is mapped alone, and how much free memory is kept."""
    mallopt = getattr(_find_c(), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, mapped)
        mallopt(_TRIM_THRESHOLD, kept)


def _find_c() -> ctypes.CDLL | None:
    """Return the functions that this process has loaded; Windows has no such list."""
    return None if os.name == "nt" else ctypes.CDLL(None)


def read_own() -> int:
    """Return the bytes of memory that this process alone holds; 0 where the system does not tell."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def read_free() -> int:
    """Return the bytes that a process can still take: of the machine, and of its group's limit."""
    return min([_read_free_of_machine(), *_read_free_of_groups()])


def _read_free_of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _UNKNOWN
    found = (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    return next(found, _UNKNOWN)


def _read_free_of_groups() -> Iterator[int]:
    """Yield what each control group around this process has left; version 2, then version 1."""
    for folder in (_GROUPS, *_find_own_groups()):
        for limit, usage in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            most, taken = _read_number(folder / limit), _read_number(folder / usage)
            if most is not None and taken is not None:
                yield max(0, most - taken + _read_cached(folder))


def _find_own_groups() -> Iterator[Path]:
    """Yield the folders of this process' control groups, the innermost first."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "memory"):
            own = _GROUPS / kinds / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(_GROUPS))


def _read_number(path: Path) -> int | None:
    """Return the number in a file; None without such a file, or for "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _read_cached(folder: Path) -> int:
    """Return the bytes of cached files in a group's usage, which the system frees for others."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
