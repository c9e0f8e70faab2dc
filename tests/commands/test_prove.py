"""`reprod-align prove`: exit codes, JSON, the table; what cannot be judged."""

import json
from pathlib import Path

from reprod_align.commands import mcp, prove
from reprod_align.errors import ReprodError
from tests.commands.asked import run
from tests.contract.made import PORT, write_contract

import pytest


def test_a_refused_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_contract(tmp_path, {"port.py": f"import torch\n{PORT}"})
    made = tmp_path / "proof.json"
    assert run(prove, path, "--certificate", made) == 1
    assert capsys.readouterr().out.startswith(
        "small: REFUSED\n  refused: imports-torch: port.py, line 1"
    )
    assert json.loads(made.read_text())["verdict"] == "refused"
    assert run(prove, path, path, "--json") == 1
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)] == ["refused"] * 2
    assert run(prove, path, "--markdown") == 1
    assert "| `imports-torch` | port.py, line 1: imports torch |" in capsys.readouterr().out


def test_what_cannot_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReprodError, match="is missing"):
        run(prove, tmp_path / "none.toml")
    path = write_contract(tmp_path, {"port.py": PORT})
    with pytest.raises(ReprodError, match="--certificate"):
        run(prove, path, "--certificate", tmp_path / "x.txt")
    monkeypatch.setattr(mcp, "find_spec", lambda name: None)
    with pytest.raises(ReprodError, match=r"reprod-align\[mcp\]"):
        run(mcp, "--root", tmp_path)
