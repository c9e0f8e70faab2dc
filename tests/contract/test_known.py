"""A contract that documents a fault of the port: passed only where precisely that is found."""

from pathlib import Path

from reprod_align.contract.terms import ContractError, read_terms
from reprod_align.records.gate import digest
from tests.contract.made import PORT, prove_here, write_contract

import pytest

FAULTY = PORT.replace("paddle.tanh", "paddle.sin")
OTHER = FAULTY.replace("self.norm(", "self.norm(0.5 * ")
OUTPUTS = ["outputs", "losses"]


def write(
    folder: Path, port: str, mended: str = PORT, stages: list[str] = OUTPUTS, report: str = "R.md"
) -> Path:
    """Write a contract without tokens that documents a fault."""
    path = write_contract(folder, {"port.py": port}, **{"[tokens]\ncount = 3\n": ""})
    (folder / "mended.py").write_text(mended)
    (folder / "R.md").write_text("tanh became sin")
    expected = f'\n[expected]\nstages = {stages!r}\nreport = "{report}"\nmended = "mended.py"\n'
    path.write_text(f'{path.read_text()}{expected}digest = "{digest(folder / "mended.py")}"\n')
    return path


def test_the_documented_fault_and_no_other(tmp_path: Path) -> None:
    proof = prove_here(write(tmp_path, FAULTY))
    assert (proof.verdict, proof.passed) == ("documented", True), proof.summary()
    assert proof.known is not None and proof.known.verdict == "proven"
    failed = {one.name.split()[0].strip(",") for one in proof.stages if not one.passed}
    assert failed == {*OUTPUTS}
    assert "R.md" in proof.summary() and "R.md" in proof.to_markdown()


@pytest.mark.parametrize(
    ("port", "mended", "stages", "told"),
    [
        (PORT, PORT, OUTPUTS, "take [expected] out"),
        (FAULTY, PORT, ["losses"], "outputs, batch 1 fails beside it"),
        (FAULTY, PORT, [*OUTPUTS, "tokens"], "no stage 'tokens'"),
        (FAULTY, OTHER, OUTPUTS, "with the fault mended the port is different"),
    ],
)
def test_anything_else_is_different(
    port: str, mended: str, stages: list[str], told: str, tmp_path: Path
) -> None:
    proof = prove_here(write(tmp_path, port, mended, stages))
    assert (proof.verdict, proof.passed) == ("different", False)
    assert told in proof.summary()


def test_the_mend_is_pinned_and_judged_as_the_port_is(tmp_path: Path) -> None:
    path = write(tmp_path, FAULTY)
    (tmp_path / "mended.py").write_text(PORT + "\n")
    assert [one.code for one in prove_here(path).refusals] == ["reference-changed"]
    (tmp_path / "other").mkdir()
    proof = prove_here(write(tmp_path / "other", FAULTY, f"import torch\n{PORT}"))
    assert [one.code for one in proof.refusals] == ["imports-torch"]


def test_what_is_wrong_with_the_table(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ContractError, match=r"expected\.stages"):
        read_terms(write(tmp_path, FAULTY, stages=[]))
    with pytest.raises(ContractError, match=r"expected\.report"):
        read_terms(write(tmp_path / "a", FAULTY, report="none.md"))
