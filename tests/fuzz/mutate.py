"""Files damaged at random: flips, cuts, repeats and pieces of other files. One seed, one file."""

from collections.abc import Sequence

import numpy as np

EXTREMES = (b"\xff", b"\0", b"\x7f", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 8, b"9" * 400, b"9" * 5000,
            b"-1", b"nan", b"1e999", b'"', b"\n", 
            b"[" * 3000, b"{}", b"\x80", b"..", b"\xed\xa0\x80")  # fmt: skip


def damage(sound: Sequence[bytes], seed: int) -> bytes:
    """Return one of the sound files with one to four damages."""
    random = np.random.default_rng(seed)
    data = bytearray(sound[int(random.integers(len(sound)))])
    for _ in range(int(random.integers(1, 5))):
        _damage_once(data, sound, random)
    return bytes(data)


def _damage_once(data: bytearray, sound: Sequence[bytes], random: np.random.Generator) -> None:
    at = int(random.integers(len(data) + 1))
    end = min(len(data), at + int(random.geometric(0.05)))
    piece = bytes(data[at:end])
    match int(random.integers(8)):
        case 0 | 1 if at < len(data):
            data[at] ^= 1 << int(random.integers(8))
        case 2 if at < len(data):
            data[at] = int(random.integers(256))
        case 3:
            del data[at:end]
        case 4:
            data[at:at] = piece * int(random.integers(1, 50))
        case 5:
            del data[at:]
        case 6:
            extreme = EXTREMES[int(random.integers(len(EXTREMES)))]
            data[at : at + len(extreme) * int(random.integers(2))] = extreme
        case _:
            other = sound[int(random.integers(len(sound)))]
            start = int(random.integers(len(other) + 1))
            data[at:end] = other[start : start + int(random.geometric(0.02))]
