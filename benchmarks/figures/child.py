"""Calls one function in a process of its own, and prints its time and the memory that it added.

    python -m benchmarks.figures.child benchmarks.figures.compare:compare_ours FOLDER [SIZE]

The function returns what is to be timed, so that imports and inputs do not count.
"""

import sys
import threading
import time
from importlib import import_module
from pathlib import Path

_PAUSE = 0.005  # seconds between two looks at the memory


def read_anonymous() -> float:
    """Return this process' anonymous memory in MB: what it holds beside mapped files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


def read_traffic() -> float:
    """Return what this process and its ended children read and wrote, in GB."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines[:2]) / 1e9  # rchar, wchar


def main(words: list[str]) -> None:
    """Call the function; print seconds, those of work, MB, the number returned, GB of I/O."""
    module, _, function = words[0].partition(":")
    work = getattr(import_module(module), function)(Path(words[1]), *map(int, words[2:]))
    before = peak = read_anonymous()
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(_PAUSE):
            peak = max(peak, read_anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        moved, start, worked = read_traffic(), time.perf_counter(), time.process_time()
        result = work()
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
    finally:
        ended.set()
        watcher.join()
    count = result if isinstance(result, int) else 0
    added = max(peak, read_anonymous()) - before
    print(f"{seconds} {worked} {added} {count} {read_traffic() - moved}")


if __name__ == "__main__":
    main(sys.argv[1:])
