"""Files damaged in their structure, read in a process with little memory: read right, or one line.

A process of its own reads them, so that one that ends it, hangs or takes memory is told with its seed.
"""

import mmap
import os
import resource
import signal
import struct
import traceback
import warnings
from collections import Counter
from pathlib import Path

from reprod_align.errors import ReprodError
from tests.fuzz.readers import KINDS, Kind
from tests.fuzz.structured import DAMAGES, damage_structure
from tests.fuzz.test_readers import nothing_run

import numpy as np
import pytest

FEW, MANY = 150, 5000
COUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.longer)]
SECONDS = 5.0  # of processor time for one file
PER_BYTE, FREE = (
    44,
    2**20 + 2**24,
)  # what a file may take: 40 n + 1 MiB for objects, 4 n + 16 MiB for tensors
SPARE = 2**24  # what allocators keep
MORE = 2**30  # bytes of addresses that the process may take beyond what it has


def read_peak() -> int:
    """Return the most memory that this process had since the last call; it is forgotten then."""
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return peak


def read_one(kind: Kind, path: Path) -> str:
    """Return "read" or "refused", else what went wrong."""
    read_peak()
    before = read_peak()
    try:
        with nothing_run():
            kind.read(path)
        outcome = "read"
    except ReprodError as error:
        outcome = "refused" if str(error).isprintable() else f"more than a line: {error!r}"
    except BaseException:
        outcome = traceback.format_exc()[-1500:]
    grown = read_peak() - before
    if grown > PER_BYTE * path.stat().st_size + FREE + SPARE:
        return f"{outcome}, and {grown:,} bytes for a file of {path.stat().st_size:,}"
    return outcome


def read_all(kind_name: str, folder: Path, seeds: range, shared: mmap.mmap) -> None:
    """Read the files of these seeds; in `shared` stand the last seed and what went wrong with it."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    kind, path = KINDS[kind_name], folder / KINDS[kind_name].name
    sound = kind.make(folder)
    for data in sound:
        path.write_bytes(data)
        kind.read(path)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (taken + MORE, taken + MORE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        shared[:8] = struct.pack("<q", seed)
        path.write_bytes(damage_structure(kind_name, sound, seed, folder))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        outcome = read_one(kind, path)
        signal.setitimer(signal.ITIMER_PROF, 0)
        outcomes[outcome] += 1
        if outcome not in ("read", "refused"):
            break
    said = "" if outcomes.keys() <= {"read", "refused"} else outcome
    told = said or f"{outcomes['read']} {outcomes['refused']}"
    raw = told.encode(errors="replace")[:3000]
    shared[8:16], shared[16 : 16 + len(raw)] = struct.pack("<ii", bool(said), len(raw)), raw


def run_apart(kind: str, folder: Path, seeds: range) -> tuple[int, int]:
    """Return how many files were read and refused. Fails with the seed of one that did neither."""
    shared = mmap.mmap(-1, 4096)
    child = os.fork()
    if not child:
        try:
            read_all(kind, folder, seeds, shared)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(9)
    _, status = os.waitpid(child, 0)
    seed, wrong, length = *struct.unpack("<q", shared[:8]), *struct.unpack("<ii", shared[8:16])
    told = shared[16 : 16 + length].decode(errors="replace")
    assert status == 0, f"{kind}, seed {seed}: the process ended with {status}"
    assert not wrong, f"{kind}, seed {seed}: {told}"
    read, refused = map(int, told.split())
    return read, refused


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_file_damaged_in_its_structure(tmp_path: Path, kind: str, count: int) -> None:
    read, refused = run_apart(kind, tmp_path, range(count))
    assert read + refused == count and refused > count // 20, (read, refused)
