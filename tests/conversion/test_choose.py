"""State dicts inside what training scripts save."""

from reprod_align.conversion import choose_state
from reprod_align.errors import WeightsError
from reprod_align.weights.stored import MemoryBytes, Stored
from reprod_align.weights.torch_file import Opaque

import pytest

WANTED = ["fc.weight", "fc.bias"]


def tensor(length: int = 1) -> Stored:
    return Stored("uint8", (length,), MemoryBytes(b"\0" * length))


def state(prefix: str = "") -> dict[str, object]:
    return {f"{prefix}{name}": tensor() for name in WANTED}


CASES: dict[str, tuple[dict[str, object], str, str]] = {
    "plain": (state(), "", ""),
    "wrapped": ({"model": state(), "epoch": 3, "optimizer": {"state": {0: {"step": tensor()}}}}, "", "model"),
    "DDP": (state("module."), "", "module"),
    "compiled DDP": ({"state_dict": state("_orig_mod.module.")}, "", "state_dict._orig_mod.module"),
    "Lightning": ({"state_dict": state("net."), "callbacks": {"x": 1}}, "", "state_dict.net"),
    "an EMA beside it": ({"model": state(), "model_ema": state()}, "", "model"),
    "the EMA, by name": ({"model": state(), "model_ema": state("module.")}, "model_ema", "model_ema.module"),
    "an EMA in one dict": (state("model.") | state("ema_model."), "", "model"),
    "that EMA, by name": (state("model.") | state("ema_model."), "ema_model", "ema_model"),
    "only an EMA": ({"ema": state()}, "", "ema"),
    "a name that ends alike": (state() | {"other.fc.weight": tensor()}, "", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_state_dict_is_found(case: str):
    content, select, label = CASES[case]
    found = choose_state(content, WANTED, select)
    assert found.label == label
    assert set(WANTED) <= set(found.tensors)
    assert select or found.beside == ()


def test_what_stands_beside_the_prefix_is_reported():
    found = choose_state(state("bert.") | {"cls.weight": tensor()}, WANTED)
    assert (found.label, found.beside) == ("bert", ("cls.weight",))


def test_two_that_fit_are_refused():
    with pytest.raises(WeightsError, match="'generator', 'critic': choose one with --select"):
        choose_state({"generator": state(), "critic": state()}, WANTED)


def test_none_that_fits_is_refused():
    with pytest.raises(WeightsError, match=r"'net' \(a\.b\), the model fc\.weight, fc\.bias"):
        choose_state({"net": {"a.b": tensor()}}, WANTED)
    with pytest.raises(WeightsError, match="no tensor of ema has the name"):
        choose_state({"model": state()}, WANTED, "ema")


def test_a_tensor_of_another_kind_is_refused():
    with pytest.raises(
        WeightsError, match="fc.bias is a torch._utils._rebuild_qtensor, not a dense"
    ):
        choose_state(state() | {"fc.bias": Opaque("torch._utils._rebuild_qtensor")}, WANTED)


def test_booleans_that_are_neither_0_nor_1_are_refused_by_name() -> None:
    held = {
        "mask": Stored("bool", (3,), MemoryBytes(b"\x00\x01\x07")),
        "other": Stored("bool", (1,), MemoryBytes(b"\x02")),
    }
    with pytest.raises(
        WeightsError, match="mask: a boolean is stored as the byte 7: expected 0 or 1"
    ):
        choose_state(held, ["mask"])
    del held["mask"]
    choose_state(held | {"mask": Stored("bool", (2,), MemoryBytes(b"\x00\x01"))}, ["mask"])
