"""Files damaged in their structure: instructions of pickles, entries of archives, values of JSON, fields.

Where a file has a checksum or a length, it is made right again, so that the damage is read.
"""

import io
import json
import pickletools
import random
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reprod_align.base.files import write_tensors
from reprod_align.traces import _KEY, _SUM, _digest
from reprod_align.weights import read_tensors
from tests.fuzz.mutate import damage

NUMBERS: tuple[Any, ...] = (-1, 0, 1, 2, 3, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63,
           2**64, -(2**63), 10**30, 1.5, -0.0, float("nan"), float("inf"), 1e308, True)  # fmt: skip
NAMES = ("", "a", "w", "a\x1b[31m", "\n", "\u202e", "é" * 300, "../x", "\ud800", "a" * 5000, "__metadata__",
         "UnpackBigParamInfor@@", "StructuredToParameterName@@", "0", "format", "dtype", "shape")  # fmt: skip
DTYPES = (
    "f8",
    "F64",
    "BF16",
    "f4",
    "<U1",
    "O8",
    "V8",
    "S0",
    "M8",
    "b1",
    "F8_E4M3",
    "C64",
    "I64",
    "c16",
    ">i2",
)
OTHERS: tuple[Any, ...] = ([], {}, None, [[]], [0, 0], {"a": 1}, [None] * 70)


def damage_value(value: Any, rng: random.Random) -> Any:
    """Return plain data with one damage, somewhere in it."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.85:
        pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
        at = rng.randrange(len(pairs))
        key, held = pairs[at]
        match rng.randrange(8):
            case 0:
                del pairs[at]
            case 1:
                pairs[at] = (key, pairs[rng.randrange(len(pairs))][1])  # what another has
            case 2:
                pairs.append((rng.choice(NAMES) if isinstance(value, dict) else 0, held))
            case 3 if isinstance(value, dict):
                pairs[at] = (rng.choice(NAMES), held)
            case 3:
                pairs[at:at] = [pairs[at]] * rng.choice((1, 70, 2000))
            case _:
                pairs[at] = (key, damage_value(held, rng))
        return dict(pairs) if isinstance(value, dict) else [one for _, one in pairs]
    if isinstance(value, (int, float)) and rng.random() < 0.7:
        near = (value + 1, value - 1, value * 2, -value, value // 2 if value == value else 0)
        return rng.choice((*NUMBERS, *near) if abs(value) < 2**64 else NUMBERS)
    if isinstance(value, str) and rng.random() < 0.7:
        return rng.choice((*NAMES, *DTYPES))
    return rng.choice((*NUMBERS, *NAMES, *OTHERS, *DTYPES))


def to_json(value: Any, rng: random.Random) -> bytes:
    """Return JSON; now and then with a name twice, or with a number or a nesting without end."""
    text = json.dumps(value)
    match rng.randrange(20):
        case 0 if '": ' in text:
            at = text.index('"')
            text = text[:at] + text[at : text.index(":", at) + 1] + " 0, " + text[at:]
        case 1:
            digits = [at for at, letter in enumerate(text) if letter.isdigit()]
            at = rng.choice(digits) if digits else 0
            text = text[:at] + "9" * rng.choice((30, 400, 5000)) + text[at:]
        case 2:
            text = "[" * 2000 + text + "]" * 2000
    return text.encode("utf-8", "surrogatepass")


def damage_json(data: bytes, rng: random.Random) -> bytes:
    """Return a file of JSON, or of a line of JSON each, with one to three damages."""
    whole = data.split(b"\n") if data.count(b"\n") else [data]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(whole))
        try:
            value = json.loads(whole[at])
        except (ValueError, RecursionError):
            continue
        whole[at] = to_json(damage_value(value, rng), rng)
    return b"\n".join(whole)


# ------------------------------------------------------------------ pickles


def split_pickle(data: bytes) -> list[bytes]:
    """Return the instructions of a pickle, and what follows it as the last piece."""
    starts = [at for _, _, at in pickletools.genops(data)]
    ends = [*starts[1:], starts[-1] + 1]
    return [*(data[a:b] for a, b in zip(starts, ends, strict=True)), data[starts[-1] + 1 :]]


PIECES = (b"]", b"}", b")", b"(", b"N", b"t", b"e", b"u", b"s", b"a", b"\x94", b"\x85", b"\x86",
          b"\x87", b"R", b"b", b"\x8f", b"\x90", b"\x91", b"\x81", b"\x92", b"Q", b"0", b"1", b"2",
          b"\x93", b"cos\nsystem\n", b".", b"cbuiltins\neval\n", b"ccollections\nOrderedDict\n",
          b"ctorch\nSize\n", b"ctorch\ndevice\n", b"\x8a\x00", b"\x8b\xff\xff\xff\x7f",
          b"J\xff\xff\xff\xff", b"\x8d" + b"\xff" * 8, b"C\x00", b"K\x00")  # fmt: skip


def damage_pickle(data: bytes, rng: random.Random) -> bytes:
    """Return a pickle with some of its instructions changed, moved, repeated or replaced."""
    pieces = split_pickle(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(pieces))
        piece = pieces[at]
        match rng.randrange(9):
            case 0:
                del pieces[at]
            case 1:
                pieces[at:at] = [rng.choice(pieces)]
            case 2:
                pieces[at:at] = [rng.choice(PIECES)]
            case 3:
                pieces[at] = rng.choice(PIECES)
            case 4:  # many uses of what was made before
                use = b"h" + bytes([rng.randrange(min(250, len(pieces)))])
                pieces[at:at] = [
                    use * rng.choice((1, 3)) + rng.choice((b"", b"\x86", b"a", b"R"))
                ] * rng.choice((1, 50, 3000))
            case 5 if piece[:1] in b"KMJG":
                pieces[at] = _number(rng)
            case 5 if piece[:1] in (b"X", b"\x8c"):
                text = rng.choice((*NAMES, *DTYPES)).encode("utf-8", "replace")
                pieces[at] = b"X" + struct.pack("<I", len(text)) + text
            case 6:
                other = rng.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 7:
                pieces[at] = damage([piece or b"a"], rng.randrange(2**31))
            case _:
                end = min(len(pieces), at + rng.randint(1, 12))
                pieces[at:at] = pieces[at:end] * rng.choice((1, 2, 200))
    return b"".join(pieces)


def _number(rng: random.Random) -> bytes:
    number = rng.choice(NUMBERS)
    if isinstance(number, bool) or number == 0:
        return b"\x88"
    if isinstance(number, float):
        return b"G" + struct.pack(">d", number)
    raw = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def damage_record(data: bytes, rng: random.Random) -> bytes:
    """Return a .npy file with a damaged pickle, or header."""
    length = 10 + int.from_bytes(data[8:10], "little")
    if rng.random() < 0.1:
        header = data[10:length].decode("latin1")
        header = header.replace(
            rng.choice(("|O", "()", "False", "'")),
            rng.choice((*NAMES, "(" * 900, "|O", "9" * 6000)),
        )
        raw = header.encode("utf-8", "replace")[:65535]
        return data[:8] + struct.pack("<H", len(raw)) + raw + data[length:]
    return data[:length] + damage_pickle(data[length:], rng)


def damage_legacy(data: bytes, rng: random.Random) -> bytes:
    """Return an old file of torch.save in which one of its five pickles is damaged."""
    pickles, rest = [], data
    for _ in range(5):
        *pieces, rest = split_pickle(rest)
        pickles.append(b"".join(pieces))
    at = rng.choice((0, 1, 2, 3, 3, 3, 3, 4))
    pickles[at] = damage_pickle(pickles[at], rng)
    return b"".join(pickles) + (
        rest if rng.random() < 0.9 else damage([rest or b"a"], rng.randrange(2**31))
    )


# ------------------------------------------------------------------ archives and tensors


def damage_zip(data: bytes, rng: random.Random) -> bytes:
    """Return a zip archive of torch.save with a damaged pickle, or with entries that lie."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    kind = rng.randrange(6)
    if kind < 4:
        entries = [
            (name, damage_pickle(held, rng) if name.endswith("data.pkl") else held)
            for name, held in entries
        ]
    elif kind == 4:
        at = rng.randrange(len(entries))
        name, held = entries[at]
        entries[at:at + 1] = rng.choice((
            [], [(name, held), (name, held[:-1])], [(name, held[:-1])], [(name, held * 2)],
            [(f"{name}x", held)], [("archive/constants.pkl", b""), (name, held)], [(name, b"big")],
            [(name, b"")],
        ))  # fmt: skip
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, held in entries:
            kinds = (zipfile.ZIP_STORED,) * 30 + (zipfile.ZIP_DEFLATED,)
            archive.writestr(name, held, rng.choice(kinds))
    found = bytearray(made.getvalue())
    if kind == 5:  # numbers of the directory: sizes, offsets, lengths of names
        start = found.rindex(b"PK\x05\x06")
        first = int.from_bytes(found[start + 16 : start + 20], "little")
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(first, len(found) - 4)
            found[at : at + 4] = struct.pack(
                "<I", rng.choice((0, 1, 0xFFFFFFFF, 2**31, len(found), rng.randrange(2**16)))
            )
    return bytes(found)


def damage_safetensors(data: bytes, rng: random.Random) -> bytes:
    """Return a file with a damaged header of the right length."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    for _ in range(rng.randint(1, 3)):
        header = damage_value(header, rng)
    raw = to_json(header, rng)
    return len(raw).to_bytes(8, "little") + raw + data[8 + length :]


def damage_trace(data: bytes, rng: random.Random, folder: Any) -> bytes:
    """Return a trace with a damaged description, its checksum made right again."""
    path = folder / "t"
    path.write_bytes(data)
    arrays, metadata = read_tensors(path)
    content = json.loads(metadata[_KEY])
    for _ in range(rng.randint(1, 3)):
        content = damage_value(content, rng)
    text = to_json(content, rng).decode("utf-8", "replace")
    if rng.random() < 0.3:
        name = rng.choice(sorted(arrays))
        array = arrays[name]
        changed = (
            array[:0],
            array.reshape(-1),
            array.astype("f4"),
            array[..., None],
            array * float("nan"),
        )
        arrays = arrays | {name: rng.choice(changed)}
    write_tensors(path, arrays, {_KEY: text, _SUM: _digest(text, arrays)})
    made = path.read_bytes()
    return made if rng.random() < 0.8 else damage_safetensors(made, rng)


# ------------------------------------------------------------------ fields of protobuf, in records of a log


def damage_fields(data: bytes, rng: random.Random) -> bytes:
    """Return a log of events with some lengths, tags and numbers replaced; checksums are not read."""
    found = bytearray(data)
    extremes = (
        b"\xff" * 9 + b"\x01",
        b"\x80" * 11,
        b"\x00",
        b"\xff\xff\xff\xff\x0f",
        b"\x7f",
        b"\x0a",
        b"\x12",
    )
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(found))
        new = rng.choice(extremes)
        found[at : at + (len(new) if rng.random() < 0.5 else 1)] = new
    return bytes(found)


DAMAGES: Mapping[str, Callable[..., bytes]] = {
    "record": damage_record,
    "trace": damage_trace,
    "torch, zip": damage_zip,
    "torch, legacy": damage_legacy,
    "paddle": damage_pickle,
    "safetensors": damage_safetensors,
    "index": damage_json,
    "checkpoint of Step 5": damage_safetensors,
    "log as a record": damage_record,
    "a.jsonl": damage_json,
    "events.out.tfevents.1": damage_fields,
    "vdlrecords.1.log": damage_fields,
    "message of a side": damage_json,
    "weight map": damage_json,
}


def damage_structure(kind: str, sound: Sequence[bytes], seed: int, folder: Any) -> bytes:
    """Return one of the sound files of a kind, damaged in its structure."""
    rng = random.Random(seed)
    data = rng.choice(sound)
    more = (folder,) if kind == "trace" else ()
    return DAMAGES[kind](data, rng, *more)
