"""Messages are data: whatever arrives, nothing is run, and what passed is what was sent."""

import json
import os
import struct
import threading
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from pathlib import Path

from reprod_align.errors import ReprodError, WeightsError
from reprod_align.model.source import Operation, SourceLine
from reprod_align.model.watch import NO_PINS
from reprod_align.pair.wire import Wire, pack, unpack
from reprod_align.randomness import KeyedDraws

import numpy as np
import pytest


def passed(message: object) -> object:
    header, arrays = pack(message)
    json.loads(header)  # it is JSON, whatever was sent
    return unpack(header, [np.frombuffer(one.tobytes(), np.uint8).copy() for one in arrays])


@pytest.mark.parametrize(
    "message",
    [
        None, True, 3, -(2**70), 2**61, 1.5, float("inf"), "é\ud800", b"\0\xff", 1 + 2j, [], (), {}, set(),
        {1: (2, [3, {"x": None}]), (1, "a"): {4, (5, 6)}, "1": 0}, frozenset({1, (2,)}),
        range(1, 9, 2), slice(None, 3), Counter("aab"), OrderedDict(b=1, a=2),
    ],
)  # fmt: skip
def test_plain_data_pass(message: object) -> None:
    found = passed(message)
    assert found == message and type(found) is type(message)
    assert passed(float("nan")) != passed(float("nan"))


def test_one_object_in_two_places_stays_one_and_a_ring_a_ring() -> None:
    shared, ring = [1], []
    ring.append(ring)
    found = passed({"a": shared, "b": (shared, ring)})
    assert found["a"] is found["b"][0] and found["b"][1][0] is found["b"][1]


def test_a_chain_of_operations_longer_than_the_stack() -> None:
    last = None
    for number in range(5000):
        last = Operation("add", SourceLine("a.py", number), ("", 0), (), (), makers=(last,))
    found, length = passed(last), 0
    while found is not None:
        (found,), length = found.makers, length + 1
    assert length == 5000


def test_functions_stay_at_home() -> None:
    draws = KeyedDraws(3, {"a": "b"}, place=lambda: [("a", 1)])
    found = passed(draws)
    assert (found.seed, found.names, found.place()) == (3, {"a": "b"}, [("", 0)])
    assert type(passed(NO_PINS)) is type(NO_PINS)


@pytest.mark.parametrize(
    "words",
    [
        "reprod_align.base.files:os.unlink", "reprod_align.base.files:os", "os:system",
        "reprod_align.base.files:write_text", "reprod_align.base.console:sys",
        "reprod_align.base.files:Path", "reprod_align.commands:main", "reprod_align.__main__:main",
        "reprod_align.pair.remote:RemoteSide", "reprod_align.records:Recorder",
        "reprod_align.no_such:Name", "builtins:eval", "reprod_align.errors:Exception", "", ":",
        "reprod_align.base.blocks:MappedFile", "reprod_align/base:Path",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["instance", "error"])
def test_nothing_but_classes_that_hold_data_is_reached(words: str, kind: str) -> None:
    node = [kind, words, *(["text"] if kind == "error" else []), [1]]
    with pytest.raises(ReprodError, match="expected plain data"):
        unpack(json.dumps([[0], node, ["dict"]]).encode(), [])


@pytest.mark.parametrize(
    "table",
    [
        [[7]], [[0], ["eval", "1"]], [[0], ["array", "O", [1], 0]], [[0], ["array", "<f8", [2], 0]],
        [[0], ["array", "<f8", [-1], 0]], [[0], ["array", "<f8", [0], 0]], [[0], ["array", "<f8", [], 5]],
        [[0], ["tuple", [0]]], [[0], ["dict", 1]], [[0], ["dict", [1], 2], ["list"]], [[0], []], 7, {},
        [[0], ["instance", "reprod_align.model.trace:Trace", [1]], ["list"]], [[0, 1], ["list"], ["list"]],
    ],
)  # fmt: skip
def test_what_is_not_well_formed_is_one_line(table: object) -> None:
    with pytest.raises(ReprodError) as caught:
        unpack(json.dumps(table).encode(), [np.zeros(8, np.uint8)])
    assert "\n" not in str(caught.value)


def test_a_damaged_message_never_escapes() -> None:
    state = {"a": np.arange(3), "b": [KeyedDraws(1, {}), WeightsError("x")], "c": (1, {2})}
    header, arrays = pack(state)
    random, bits = np.random.default_rng(0), [one.view(np.uint8) for one in arrays]
    for _ in range(500):
        damaged = bytearray(header)
        for place in random.integers(len(header), size=2):
            damaged[place] = random.integers(256)
        try:
            unpack(bytes(damaged), bits)
        except ReprodError as error:
            assert "\n" not in str(error)


def test_own_classes_that_hold_more_than_data_are_not_sent() -> None:
    for value, said in (
        (np.array([None]), "array of object"),
        (Wire(Pipe()[0]), "a Wire cannot be sent"),
    ):
        with pytest.raises(ReprodError, match=said):
            pack(value)


def test_sizes_that_lie_are_refused(tmp_path: Path) -> None:
    ours, theirs = Pipe()
    for size, rest in ((-1, [b""]), (9, [b"12345678"]), (2**17, [b"", b"123"])):
        for part in (b"[null]", np.array([size], "<i8").tobytes(), *rest):
            ours.send_bytes(part)
        with pytest.raises(ReprodError, match="another size"):
            Wire(theirs).receive()
    assert os.listdir(tmp_path) == []


def nested(kind: str, depth: int, twice: bool = True) -> list[object]:
    """Return nodes that hold one another: the first holds a number, the last all others."""
    nodes: list[object] = [[kind, 1, 1]]
    for number in range(depth - 1):
        nodes.append([kind, *[[number]] * (2 if twice else 1)])
    return nodes


def unpack_table(root: object, *nodes: object) -> object:
    return unpack(json.dumps([root, *nodes]).encode(), [np.zeros(8, np.uint8)])


PLACE = "reprod_align.model.source:SourceLine"


def unpack_on_a_small_stack(root: object, *nodes: object) -> object:
    """Unpack in a thread whose stack has a megabyte: Linux gives the main one eight."""
    kept = threading.stack_size(2**20)
    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(unpack_table, root, *nodes).result()
    finally:
        threading.stack_size(kept)


@pytest.mark.parametrize("kind", ["tuple", "frozenset"])
@pytest.mark.parametrize("depth", [60, 50_000])
@pytest.mark.parametrize("twice", [True, False])
def test_tuples_in_tuples_as_a_key(kind: str, depth: int, twice: bool) -> None:
    """Hashed, 60 of them take forever if each holds the last twice, and 50,000 overflow C's stack."""
    nodes = nested(kind, depth, twice)
    number = len(nodes)
    if depth == 60 and (not twice or kind == "frozenset"):  # a set holds what is twice in it once
        nodes = nested(kind, depth, False)
        found = unpack_table([number], *nodes, ["dict", [number - 1], 1])
        assert list(found.values()) == [1]
        return
    for users in (
        [["dict", [number - 1], 1]],
        [["set", [number - 1]]],
        [["list", *([one] for one in range(number))]],  # the innermost is made first
        [["tuple", [number - 1]]],
    ):
        with pytest.raises(ReprodError, match=r"^a side sent a message that (nests|repeats|asks)"):
            unpack_on_a_small_stack([number], *nodes, *users)


def test_a_key_whose_hash_looks_through_objects() -> None:
    """A dataclass hashes its fields, and theirs."""
    nodes: list[object] = []
    for number in range(80):
        inner = [[2 * number - 2], [2 * number - 2]] if number else ["a.py", 1]
        nodes += [
            ["instance", PLACE, [2 * number + 1]],
            ["dict", "file", inner[0], "line", inner[1]],
        ]
    for count in (50, 80):
        used = nodes[: 2 * count]
        key = ["dict", [2 * count - 2], 1]
        with pytest.raises(ReprodError, match="a side sent a message that (nests|repeats|asks)"):
            unpack_table([2 * count], *used, key)
        assert unpack_table([2 * count], *used, ["list", [0]])[0].file == "a.py"
    assert len(unpack_table([2], *nodes[:2], ["dict", [0], 1])) == 1


def test_keys_that_share_a_hash_or_are_long() -> None:
    many = [["tuple", *(-1 - (number >> bit & 1) for bit in range(12))] for number in range(4096)]
    for kind, more in (("set", []), ("frozenset", []), ("dict", [None])):
        tokens = [part for number in range(4096) for part in ([number], *more)]
        with pytest.raises(ReprodError, match="more than 64 keys with the same hash"):
            unpack_table([4096], *many, [kind, *tokens])
        few = [part for number in range(64) for part in ([number], *more)]
        assert len(unpack_table([4096], *many, [kind, *few])) == 64
    wide = [["int", hex(2**400_000)], *(["tuple", [0], number] for number in range(2000))]
    with pytest.raises(ReprodError, match="asks for more hashing than its size explains"):
        unpack_table([2001], *wide, ["set", *([number] for number in range(1, 2001))])
    with pytest.raises(ReprodError, match="a dict with the same key twice"):
        unpack_table([0], ["dict", "a", 1, "a", 2])


@pytest.mark.parametrize("kind", ["array", "scalar"])
@pytest.mark.parametrize(
    ("dtype", "shape", "said"),
    [
        ("<U1", [2], "letters that do not exist"), (">U2", [], "letters that do not exist"),
        ("|b1", [8], "neither true nor false"), ("<U0", [2**40], "expected numbers or text"),
        ("|S0", [8], "expected numbers or text"), ("<f3", [8], "not well formed"),
        ("<f8", [2**62, 2**62, 0], "not well formed"), ("<f8", [1] * 70, "not well formed"),
        ("<f8", [True], "without a proper shape"), ("<f8", [1.0], "without a proper shape"),
    ],
)  # fmt: skip
def test_an_array_that_cannot_be(kind: str, dtype: str, shape: list[int], said: str) -> None:
    bits = np.full(8, 255, np.uint8)
    with pytest.raises(ReprodError, match=f"^a side sent .*{said}"):
        unpack(json.dumps([[0], [kind, dtype, shape, 0]]).encode(), [bits])


SIZES = np.array([8, 2**17], "<i8").tobytes()


@pytest.mark.parametrize(
    "pieces",
    [
        (b"[null]", b"1234567", b""), (b"[null]", SIZES[:-1], b""), (b"[null]", SIZES, b"1234567"),
        (b"[null]", SIZES, b"123456789"), (b"[null]", SIZES, b"12345678", b"1" * (2**17 + 1)),
        (b"[null]", SIZES, b"12345678", b"1" * (2**17 - 1)), (b"[null]", b"", b"1"), (b"", b"", b""),
        (b"\xff\xfe", b"", b""), (b"[" * 10**5, b"", b""), (b"9" * 10**4, b"", b""), (b"[]", b"", b""),
        (b"[null]", np.array([2**63 - 1], "<i8").tobytes(), b"", b"1"), (b"{}", b"", b""),
    ],
)  # fmt: skip
def test_pieces_that_are_no_message(pieces: tuple[bytes, ...]) -> None:
    with ThreadPoolExecutor(1) as pool:
        ours, theirs = Pipe()
        pool.submit(lambda: [theirs.send_bytes(piece) for piece in pieces])
        with pytest.raises(ReprodError, match="^a side sent") as caught:
            Wire(ours).receive()
        assert "\n" not in str(caught.value)
        ours.close()


@pytest.mark.parametrize("length", [2**40, 2**62, 2**63 - 1])
def test_a_piece_that_is_longer_than_memory(length: int) -> None:
    """What is announced is refused before memory is taken for it."""
    ours, theirs = Pipe()
    os.write(theirs.fileno(), struct.pack("!iQ", -1, length))
    with pytest.raises(ReprodError, match="a side announced a message that is larger than memory"):
        Wire(ours).receive()


def test_what_a_side_says_is_one_line() -> None:
    state = ["error", "reprod_align.errors:WeightsError", "a\nb\x1b[31m\u202e", [1]]
    found = unpack_table([0], state, ["dict"])
    assert isinstance(found, WeightsError) and str(found) == r"a\nb\x1b[31m\u202e"
