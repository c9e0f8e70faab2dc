"""Whole proofs, each side in a process of its own: what an honest port passes, and what ends it."""

from pathlib import Path

from reprod_align.contract import prove as proving
from reprod_align.contract.prove import prove
from reprod_align.contract.terms import read_terms
from tests.contract.cheats import CHEATS, HONEST
from tests.contract.drawn_later import LATER
from tests.contract.made import PORT, write_contract

import pytest

PATIENCE = {"an infinite loop": 20.0}


def run(folder: Path, name: str) -> list[str]:
    """Return the codes under which a cheat is refused."""
    cheat = CHEATS[name]
    path = write_contract(folder, cheat.files, seconds=PATIENCE.get(name, 300.0))
    cheat.act(folder)
    proof = prove(read_terms(path))
    assert not proof.passed
    return [one.code for one in proof.refusals]


def test_an_honest_port(tmp_path: Path) -> None:
    proof = prove(read_terms(write_contract(tmp_path, {"port.py": PORT})))
    assert proof.passed, proof.summary()
    assert not proof.remarks and "paddlepaddle" in proof.versions
    assert [one for one in tmp_path.iterdir() if one.name not in ("port", "reference.py")] == [
        tmp_path / "contract.toml"
    ]


def test_a_process_that_ends_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proving, "screen_files", lambda *_: ([], []))
    assert run(tmp_path, "os._exit") == ["ends-the-process"]


@pytest.mark.longer
@pytest.mark.parametrize("name", CHEATS)
def test_each_cheat(name: str, tmp_path: Path) -> None:
    assert CHEATS[name].code in run(tmp_path, name)


@pytest.mark.longer
@pytest.mark.parametrize("name", [name for name, one in CHEATS.items() if one.unscreened])
def test_each_cheat_whose_source_is_not_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proving, "screen_files", lambda *_: ([], []))
    assert CHEATS[name].unscreened in run(tmp_path, name)


@pytest.mark.longer
@pytest.mark.parametrize("name", LATER)
def test_each_cheat_that_was_drawn_later(name: str, tmp_path: Path) -> None:
    proof = prove(read_terms(write_contract(tmp_path, LATER[name].files)))
    assert not proof.passed
    if LATER[name].code != "differs":
        assert {one.code for one in proof.refusals} & {*LATER[name].code.split("|")}


@pytest.mark.longer
@pytest.mark.parametrize("name", HONEST)
def test_each_honest_port(name: str, tmp_path: Path) -> None:
    proof = prove(read_terms(write_contract(tmp_path, HONEST[name])))
    assert proof.passed, proof.summary()
