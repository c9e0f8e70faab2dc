"""`verify --rerun`: what a submission's code computes is held against the records that were handed in."""

import json
import shutil
from pathlib import Path

from reprod_align.commands import verify
from reprod_align.contract.rerun import list_commands
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.submission import verify as verify_files
from reprod_align.submission.files import STEPS
from tests.commands.asked import run
from tests.conftest import REPOSITORY
from tests.contract.submitted import write_submitted

import pytest


def kinds(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, list[str]]:
    """Return the exit code of verify and the kinds of the faults."""
    capsys.readouterr()
    code = run(verify, *words, "--json")
    return code, [one["kind"] for one in json.loads(capsys.readouterr().out)["faults"]]


def test_an_honest_submission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_submitted(tmp_path / "handed")
    assert run(verify, folder, "--rerun", "forward", "loss") == 0
    printed = capsys.readouterr()
    shown = [line.split()[:4] for line in printed.err.splitlines()[1:]]
    assert [line[0] for line in shown] == ["paddle:"] * 2 + ["torch:"] * 2
    assert "the same file" in printed.out


def test_paddle_records_that_are_torch_with_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The port computes something else; what was handed in is PyTorch's, off by one unit."""
    folder = write_submitted(tmp_path, "record = {k: v * 1.01 for k, v in record.items()}")
    assert verify_files(folder).passed, "no file tells"
    code, found = kinds(capsys, folder, "--rerun", "forward", "bp_align")
    assert code == 1 and set(found) == {"not recomputed"}
    assert len(found) == 4, "float32 and float64 of both steps"


WAYS = {
    "PyTorch's record is not there": ("", "open(HERE / 'log_reprod' / 'forward_torch.npy').read()"),
    "PyTorch is not there": ("import torch", ""),
    "it ends itself": ("", "raise SystemExit(0)"),
    "it fails": ("", "raise ValueError"),
    "it hangs": ("", "while True: pass"),
}


def test_a_record_elsewhere_is_closed_to_a_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its path, by what the system says of processes, or as a copy under another name."""
    folder = write_submitted(tmp_path)
    record = folder / "log_reprod" / "forward_torch.npy"
    copied = folder / "weights" / "cache.bin"
    ways = (
        f"open({str(record)!r}, 'rb')",
        "import os\nopen(f'/proc/{os.getppid()}/cmdline')",
        "open(HERE / 'weights' / 'cache.bin')",
    )
    for read in ways:
        text = f"from pathlib import Path\nHERE = Path(__file__).parent\n{read}\n"
        (folder / "steps_pd.py").write_text(text)
        shutil.copy(record, copied)
        assert kinds(capsys, folder, "--rerun", "forward") == (1, ["not recomputed"] * 2), read
        copied.unlink()
        assert kinds(capsys, folder, "--rerun", "forward") == (1, ["not recomputed"]), read


@pytest.mark.parametrize("name", WAYS)
def test_a_port_that_does_not_compute(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    above, read = WAYS[name]
    folder = write_submitted(tmp_path, above=above, read=read)
    limit = ["--seconds", "1.5"] if name == "it hangs" else []
    code, found = kinds(capsys, folder, "--rerun", "forward", *limit)
    assert code == 1 and "not recomputed" in found


def test_other_weights_than_those_of_the_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the digests that the results hold; times do not count."""
    folder = write_submitted(tmp_path)
    (folder / "weights" / "weights.bin").write_bytes(b"other")
    assert kinds(capsys, folder) == (1, ["different runs"])
    assert kinds(capsys, folder, "--rerun", "loss") == (1, ["different runs"])


def test_an_archive_needs_its_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_submitted(tmp_path / "handed")
    archive = shutil.make_archive(str(tmp_path / "x"), "zip", folder, "log_reprod")
    with pytest.raises(MissingInputError, match="--code FOLDER"):
        run(verify, archive, "--rerun", "loss")
    assert run(verify, archive, "--rerun", "loss", "--code", folder) == 0
    with pytest.raises(MissingInputError, match="no script for loss"):
        run(verify, archive, "--rerun", "loss", "--code", tmp_path)
    with pytest.raises(MissingInputError, match="is not a folder"):
        run(verify, archive, "--rerun", "--code", tmp_path / "none")


NAMED = """
[paddle]
forward = "steps_pd.py forward"
[torch]
forward = "src/run_pt.py forward --fast"
"""


def test_a_submission_names_its_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of any layout: rerun.toml says which script computes a step."""
    folder = write_submitted(tmp_path / "handed")
    (folder / "src").mkdir()
    text = (folder / "steps_pt.py").read_text().replace("parent\n", "parents[1]\n")
    (folder / "src" / "run_pt.py").write_text(text.replace("sys.argv[1:]", "sys.argv[1:2]"))
    (folder / "steps_pt.py").unlink()
    with pytest.raises(MissingInputError, match=r"rerun\.toml"):
        run(verify, folder, "--rerun", "forward")
    (folder / "rerun.toml").write_text(NAMED)
    capsys.readouterr()
    assert run(verify, folder, "--rerun", "forward") == 0
    assert "torch: python src/run_pt.py forward --fast" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[paddel]", "paddel"),
        ('[paddle]\nforwrad = "a.py"', "forwrad"),
        ("[paddle]\nforward = 3", "paddle.forward"),
        ('[paddle]\nforward = "bash run.sh"', "Python script"),
        ('[paddle]\nforward = "../x.py"', "Python script"),
        ('[paddle]\nforward = "none.py"', "none.py"),
        ("[paddle", "TOML"),
    ],
)
def test_a_command_that_cannot_be(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "rerun.toml").write_text(text)
    with pytest.raises(ReprodError, match=told):
        list_commands(tmp_path, ["forward"])


def test_the_scripts_of_this_repository() -> None:
    """Each step has one of each side, Paddle's first."""
    found = list_commands(REPOSITORY, [step.name for step in STEPS], ["--profile", "tiny"])
    assert [one.side for one in found] == ["paddle"] * 5 + ["torch"] * 5
    assert found[0].show() == "python pipeline/Step1/pd_forward_bert.py --profile tiny"
    assert {one.script.name for one in found} >= {
        "pd_metric.py",
        "pt_loss.py",
        "pd_bp.py",
        "pt_train.py",
    }
