"""`reprod-align port`: its options, output and exit codes."""

import json
import re
from pathlib import Path

from reprod_align.commands import port
from reprod_align.errors import ReprodError
from tests.commands.asked import run
from tests.conftest import REPOSITORY
from tests.porting.paconvert import needs_paconvert

import pytest

BERT = ("models.pt_bert:BertForMaskedLM(BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, "
        "num_attention_heads=2, intermediate_size=32))")  # fmt: skip
INFORMER = ("models.pt_informer:Informer(enc_in=7, dec_in=7, c_out=7, seq_len=24, label_len=8, out_len=8, "
            "d_model=16, n_heads=2, d_ff=16)")  # fmt: skip
INPUTS = """
import numpy as np

def ids():
    drawn = np.random.default_rng(0).integers(1, 50, (3, 30))
    mask = np.ones((3, 30), np.int64)
    mask[1, 20:] = drawn[1, 20:] = 0
    return {"input_ids": drawn, "attention_mask": mask}

def series():
    drawn = np.random.default_rng(0)
    def marks(length):
        return np.stack([drawn.integers(1, most, (2, length)) for most in (13, 29, 7, 24)], -1)
    return drawn.normal(size=(2, 24, 7)), marks(24), drawn.normal(size=(2, 16, 7)), marks(16)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_inputs.py").write_text(INPUTS)
    return tmp_path


@needs_paconvert
@pytest.mark.parametrize(
    ("file", "call", "inputs", "at_once", "edits"),
    [
        ("pt_bert.py", BERT, "ids", "faithful", 0),
        ("pt_informer.py", INFORMER, "series", "does not build", 3),
    ],
)
def test_our_own_twins_end_faithful(
    file: str,
    call: str,
    inputs: str,
    at_once: str,
    edits: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (str(REPOSITORY / "models" / file), "-o", "out", "--torch", call, "--json")
    assert run(port, *words, "--inputs", f"mine_inputs:{inputs}") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["passed"] and (said["at_once"], len(said["edits"])) == (at_once, edits)
    assert "the outputs of both models agree" in said["weights"] and not said["left"]


def test_a_full_folder_is_refused_before_anything_is_done(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "mine").write_text("")
    words = (str(REPOSITORY / "models" / "pt_bert.py"), "-o", "out", "--torch", BERT)
    with pytest.raises(ReprodError, match="out holds files already"):
        run(port, *words, "--inputs", "mine_inputs:ids")
    assert [path.name for path in (folder / "out").iterdir()] == ["mine"]


@needs_paconvert
def test_a_file_like_a_pairs_file_needs_neither_option(folder: Path) -> None:
    """As README shows it: `reprod-align port SRC.py -o OUT`."""
    (folder / "mine_source.py").write_text(
        "import numpy as np\nfrom torch import nn\n\n\ndef torch_model():\n    return nn.Linear(3, 2)\n\n\n"
        "def inputs():\n    return (np.eye(3),)\n"
    )
    assert run(port, "mine_source.py", "-o", "out") == 0
    assert (folder / "out" / "pair.py").is_file()


@pytest.mark.parametrize(
    ("text", "missing"),
    [("", "torch_model(): .* --torch"), ("def torch_model(): 0", "inputs(): .* --inputs")],
)
def test_what_neither_an_option_nor_the_file_gives(folder: Path, text: str, missing: str) -> None:
    name = f"mine_{len(text)}"
    (folder / f"{name}.py").write_text(text)
    said = re.escape(f"{name}.py defines no ") + missing.replace("()", r"\(\)") + " MODULE:CALL"
    with pytest.raises(ReprodError, match=said):
        run(port, f"{name}.py", "-o", "out")
