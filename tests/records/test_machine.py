"""Each guard of the pickle machine by itself: its whole message, what it still lets through, its price."""

import pickle

from reprod_align.errors import RecordError
from reprod_align.records.safe_pickle import Machine, restricted_loads

import numpy as np
import pytest

START = b"\x80\x04"
NAME = b"cnumpy\nndarray\n"
ARRAY = b"cnumpy._core.multiarray\n_reconstruct\n" + NAME + b"K\x00\x85C\x01b\x87R"
DTYPE = b"cnumpy\ndtype\nX\x02\x00\x00\x00f8\x89\x88\x87R"
TEXT = b"X\x01\x00\x00\x00a"

REFUSED: dict[str, tuple[bytes, str]] = {
    "protocol 1": (b"\x80\x01N.", "does not hold a pickle of protocol 2 to 5"),
    "no protocol": (b"N.", "does not hold a pickle of protocol 2 to 5"),
    "nothing": (b"", "is truncated: its pickle ends in the middle of a value"),
    "protocol 6": (b"\x80\x06N.", "does not hold a pickle of protocol 2 to 5"),
    "protocol 255": (b"\x80\xffN.", "does not hold a pickle of protocol 2 to 5"),
    "a frame beyond the file": (
        START + b"\x95\x03" + bytes(7) + b"N.",
        "is truncated: its pickle announces more bytes than there are"),
    "a text beyond the file": (
        START + b"X\x09\x00\x00\x00a.", "is truncated: its pickle ends in the middle of a value"),
    "a group that was never opened": (
        START + b"t.", "is damaged: its pickle closes a group that it never opened"),
    "a tuple of nothing": (
        START + b"\x85.", "is damaged: its pickle takes a value that is not there"),
    "a pair of one": (START + b"N\x86.", "is damaged: its pickle takes a value that is not there"),
    "a list of nothing": (START + b"a.", "is damaged: pop from empty list"),
    "what was never kept": (START + b"h\x00.", "is damaged: list index out of range"),
    "a number beyond its bytes": (
        START + b"J\x00.", "is truncated: its pickle ends in the middle of a value"),
    "a call of a number": (
        START + b"K\x01)R.", "is damaged: its pickle calls something other than a function"),
    "a call with a number": (
        START + NAME + b"K\x01R.", "is damaged: its pickle calls something other than a function"),
    "a module that is no text": (
        START + b"K\x01" + TEXT + b"\x93.",
        "is damaged: its pickle names a function by something other than text"),
    "a name that is no text": (
        START + TEXT + b"K\x01\x93.",
        "is damaged: its pickle names a function by something other than text"),
    "a list that is none": (
        START + b"}Na.", "is damaged: its pickle appends to something other than a list"),
    "a dict that is none": (
        START + b"]NNs.", "is damaged: its pickle fills something other than a dict"),
    "a key without a value": (
        START + b"}(Nu.", "is damaged: its pickle fills something other than a dict"),
    "values out of order": (
        START + b"Nq\x01.", "is damaged: its pickle numbers its values out of order"),
    "an array that was never filled": (
        START + ARRAY + b".", "is damaged: a value in it is only half built"),
    "a dtype that nothing uses": (
        START + DTYPE + b".", "is damaged: a value in it is only half built"),
    "the state of a number": (
        START + b"K\x01Nb.", "sets the state of a int, which a record never needs"),
    "a state of another version": (
        START + ARRAY + b"(K\x02K\x01\x85" + DTYPE + b"\x89C\x08" + bytes(8) + b"tb.",
        "is damaged: the state of an array in it is not well formed"),
    "a state of four": (
        START + ARRAY + b"(K\x01K\x01\x85" + DTYPE + b"\x89tb.",
        "is damaged: the state of an array in it is not well formed"),
    "a state that is a list": (
        START + ARRAY + b"]b.", "is damaged: the state of an array in it is not well formed"),
    "an unended value": (START + b"NN.", "is damaged: its pickle ends in the middle of a value"),
    "bytes behind the end": (START + b"N.N", "has 1 bytes after its end"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_the_whole_message(name: str) -> None:
    body, said = REFUSED[name]
    with pytest.raises(RecordError) as caught:
        restricted_loads(body, where="x")
    assert str(caught.value) == f"x {said}"


def test_a_name_that_is_not_ascii_is_shown_escaped() -> None:
    with pytest.raises(RecordError, match=r"asks to run o\\xe9s\.system: refused, nothing was run"):
        restricted_loads(START + "coés\nsystem\n.".encode("latin1"), where="x")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_that_is_known(protocol: int) -> None:
    value = {"a": [1, (2.5, None)], 2**63: b"x", "é": True}
    assert restricted_loads(pickle.dumps(value, protocol), where="x") == value


def test_a_key_of_64_bits_is_taken() -> None:
    for key in (2**64 - 1, -(2**64) + 1):
        assert restricted_loads(pickle.dumps({key: 1}), where="x") == {key: 1}
    with pytest.raises(RecordError, match="an integer key of 65 bits"):
        restricted_loads(pickle.dumps({2**64: 1}), where="x")


def test_a_memo_place_is_taken_again() -> None:
    """PUT replaces what stands at its place, and what stands behind stays."""
    body = START + b"(K\x01q\x00K\x02q\x01K\x03q\x02K\x04q\x01h\x00h\x01h\x02t."
    assert restricted_loads(body, where="x") == (1, 2, 3, 4, 1, 4, 3)


@pytest.mark.parametrize("protocol", [2, 5])
def test_an_array_that_two_names_share(protocol: int) -> None:
    array = np.arange(6.0).reshape(2, 3)
    for laid in (array, np.asfortranarray(array)):
        both = restricted_loads(pickle.dumps({"a": laid, "b": laid}, protocol), where="x")
        assert isinstance(both, dict)
        for held in both.values():
            np.testing.assert_array_equal(held, array)


def test_an_array_whose_axes_lie_in_another_order() -> None:
    """numpy pickles it with the order "K": the bytes as they lie, and the axes."""
    array = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    body = pickle.dumps(array, 5)
    np.testing.assert_array_equal(np.asarray(restricted_loads(body, where="x")), array)
    with pytest.raises(RecordError) as caught:
        restricted_loads(body.replace(b"\x8c\x01K", b"\x8c\x01Q"), where="x")
    assert str(caught.value) == "x is damaged: an array in it has an unknown memory order"


def paid(body: bytes) -> int:
    """Return what the machine counted for a pickle: about the bytes that it takes."""
    machine = Machine(memoryview(START + body))
    machine.run()
    return machine.builder.paid


PRICES: dict[str, tuple[bytes, bytes, int]] = {
    "a value on the stack": (b"(NNt.", b"(NNNt.", 24),
    "an element of a list": (b"](NNe.", b"](NNNe.", 16),
    "a letter, which may take four bytes": (b"X\x01\0\0\0a.", b"X\x02\0\0\0aa.", 4),
    "a view of the file in a tuple": (b"(C\x01aC\x01bt.", b"(C\x01aC\x01bC\x01ct.", 216),
    "a list in a dict": (b"}(K\x01]K\x02]u.", b"}(K\x01]K\x02]K\x03]u.", 212),
}


@pytest.mark.parametrize("name", PRICES)
def test_the_price_of_what_can_be_many(name: str) -> None:
    """About the bytes that one more of it takes, so that no instruction makes much of a few bytes."""
    few, more, price = PRICES[name]
    assert paid(more) - paid(few) == price


def test_a_tuple_takes_the_whole_stack() -> None:
    assert restricted_loads(START + b"K\x01K\x02\x86.", where="x") == (1, 2)


def test_the_longest_name() -> None:
    for letters, said in ((250, "asks to run "), (251, "names a function with 501 letters")):
        body = START + b"c" + b"m" * 250 + b"\n" + b"f" * letters + b"\n."
        with pytest.raises(RecordError, match=f"x {said}"):
            restricted_loads(body, where="x")


def test_dicts_inside_dicts_have_a_depth() -> None:
    for depth in (60, 70):
        body = START + b"}(K\x01NK\x02" * depth + b"N" + b"u" * depth + b"."
        if depth == 60:
            assert isinstance(restricted_loads(body, where="x"), dict)
        else:
            with pytest.raises(RecordError, match="more than 64 deep"):
                restricted_loads(body, where="x")
