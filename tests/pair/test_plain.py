"""Messages are data: whatever arrives, nothing is run, and what passed is what was sent."""

import json
import os
from collections import Counter, OrderedDict
from multiprocessing import Pipe
from pathlib import Path

from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.errors import ReprodError, WeightsError
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import Operation
from reprod_align.model.watch import NO_PINS
from reprod_align.pair.plain import pack, unpack
from reprod_align.pair.wire import Wire

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
        "reprod_align.base.atomic:os.unlink", "reprod_align.base.atomic:os", "os:system",
        "reprod_align.base.atomic:write_text", "reprod_align.base.ending:sys",
        "reprod_align.base.atomic:Path", "reprod_align.commands:main", "reprod_align.__main__:main",
        "reprod_align.pair.remote:RemoteSide", "reprod_align.records.record:Recorder",
        "reprod_align.no_such:Name", "builtins:eval", "reprod_align.errors:Exception", "", ":",
        "reprod_align.base.large.mapped:MappedFile", "reprod_align/base:Path",
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
