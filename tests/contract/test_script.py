"""A submission's script runs as if it were called, without the other framework; a process gets little."""

import json
import sys
from pathlib import Path

from reprod_align.contract import script
from reprod_align.contract.process import can_unshare, clear_environment, describe_isolation

import pytest


def test_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    (tmp_path / "steps_pd.py").write_text(
        "import sys\nfrom importlib.util import find_spec\nfrom pathlib import Path\nimport beside\n"
        "found = [beside.NAME, __name__, sys.argv[1:], find_spec('torch') is None]\n"
        "Path(__file__).with_suffix('.txt').write_text(repr(found))\n"
    )
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    words = ["script", json.dumps({"side": "paddle"}), str(tmp_path / "steps_pd.py"), "forward"]
    monkeypatch.setattr(sys, "argv", words)
    closed: list[Path] = []
    monkeypatch.setattr(script, "refuse_records", closed.append)  # it could not be taken back here
    script.main()
    assert closed == [Path.cwd()]
    assert (tmp_path / "steps_pd.txt").read_text() == "['beside', '__main__', ['forward'], True]"
    sys.modules.pop("beside")


def test_the_environment_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFERENCE", "secret")
    monkeypatch.setenv("PYTHONPATH", "secret")
    made = clear_environment(tmp_path)
    assert "secret" not in made.values() and made["HOME"] == str(tmp_path)
    assert any("network" in one for one in describe_isolation())
    assert can_unshare() in (True, False)
