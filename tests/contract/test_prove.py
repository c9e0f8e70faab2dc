"""Each way to cheat a contract is refused by its name, and honest ports pass."""

from collections import Counter
from pathlib import Path

from reprod_align.contract import prove as proving
from reprod_align.contract.proof import REFUSALS
from tests.contract.cheats import CHEATS, HONEST, Cheat
from tests.contract.held_back import HELD_BACK
from tests.contract.made import prove_here, write_contract

import pytest

ALL = CHEATS | HELD_BACK


def found(cheat: Cheat, folder: Path) -> list[str]:
    path = write_contract(folder, cheat.files)
    cheat.act(folder)
    proof = prove_here(path)
    assert not proof.passed
    return [one.code for one in proof.refusals]


@pytest.mark.parametrize("name", [name for name in ALL if not ALL[name].needs_process])
def test_each_cheat_is_refused_by_name(name: str, tmp_path: Path) -> None:
    assert ALL[name].code in found(ALL[name], tmp_path)


JUDGED = ("swallows", "cached", "patches", "not-d", "loses", "trains", "not-f", "no-t", "ignores")


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, one in CHEATS.items()
        if one.unscreened.startswith(JUDGED) and not one.needs_process
    ],
)
def test_what_a_port_does_is_judged_without_its_source(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proving, "screen_files", lambda *_: ([], []))
    assert CHEATS[name].unscreened in found(CHEATS[name], tmp_path)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_port_passes(name: str, tmp_path: Path) -> None:
    proof = prove_here(write_contract(tmp_path, HONEST[name]))
    assert proof.passed, proof.summary()
    assert {one.name for one in proof.stages} >= {
        "weights",
        "first tokens, greedy",
        "losses of 3 steps",
    }


def test_there_are_enough_names() -> None:
    assert len(CHEATS) >= 25 and len(HONEST) >= 10
    assert Counter(one.code in REFUSALS for one in CHEATS.values()) == {True: len(CHEATS)}
