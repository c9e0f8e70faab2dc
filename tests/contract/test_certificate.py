"""A certificate is repeated from its seed; a changed one, and a changed contract, are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprod_align.base.files import as_json
from reprod_align.commands import prove as command
from reprod_align.contract.proof import hold_against, read_certificate
from reprod_align.contract.prove import prove
from reprod_align.contract.terms import read_terms
from reprod_align.errors import ReprodError
from tests.commands.asked import run
from tests.contract.made import PORT, SideHere, prove_here, write_contract

import pytest

FORGED: dict[str, Callable[[Any], object]] = {
    "the verdict": lambda made: made.update(verdict="refused"),
    "a stage": lambda made: made["stages"][1].update(passed=False),
    "a stage left out": lambda made: made["stages"].pop(),
    "tokens": lambda made: made["tokens"][0].reverse() or made["tokens"][0].append(0),
    "a loss": lambda made: made["losses"].__setitem__(0, 0.5),
    "the port": lambda made: made["port"].update({"port.py": "0" * 64}),
    "the contract": lambda made: made.update(contract="0" * 64),
    "the seed": lambda made: made.update(seed=made["seed"] + 1),
}


def test_a_certificate_and_what_is_forged_in_it(tmp_path: Path) -> None:
    path = write_contract(tmp_path, {"port.py": PORT})
    proof = prove_here(path)
    made = json.loads(as_json(proof.describe()))
    assert hold_against(made, prove_here(path, made["seed"])) == []
    assert prove_here(path).seed != made["seed"]
    for name, forge in FORGED.items():
        forged = json.loads(json.dumps(made))
        forge(forged)
        against = prove_here(path, forged["seed"]) if name == "the seed" else proof
        assert {one.code for one in hold_against(forged, against)} == {"certificate-differs"}, name
    table = proof.to_markdown()
    assert table.count("✅") == len(proof.stages) and "❌" not in table


def test_a_contract_that_was_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_contract(tmp_path, {"port.py": PORT})
    agreed = read_terms(path).digest
    path.write_text(path.read_text().replace("batches = 2", "batches = 1"))
    assert run(command, path, "--digest", agreed, "--json") == 1
    assert [one["code"] for one in json.loads(capsys.readouterr().out)["refusals"]] == [
        "contract-changed"
    ]
    with pytest.raises(ReprodError, match="belong to one contract"):
        run(command, path, path, "--digest", agreed)
    with pytest.raises(SystemExit):
        run(command, path, "--digest", "abc")


def test_what_is_no_certificate(tmp_path: Path) -> None:
    for text in ("[]", "{}", '{"format": 1, "seed": -1}', '{"format": 1, "seed": true}'):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(ReprodError):
            read_certificate(tmp_path / "c.json")


def test_a_port_that_changes_its_file_meanwhile(tmp_path: Path) -> None:
    """Its digest at the end is another one than at the beginning."""
    path = write_contract(tmp_path, {"port.py": PORT})
    terms = read_terms(path)

    def tell(text: str) -> None:
        if "answers" in text:
            terms.port.write_text(f"{PORT}\n")

    proof = prove(terms, tell=tell, start=SideHere)  # type: ignore[arg-type]
    assert [one.code for one in proof.refusals] == ["changed-while-running"]
