"""How every script starts and ends: missing inputs, bad options, other folders."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from pipeline.align import PREPARATION, STEPS
from pipeline.corpus import find_corpus
from reprod_align import EXACT, ReprodError, compare_records, load_record
from tests.conftest import ENVIRONMENT, REPOSITORY, one_line_error, run_script, run_warm_python

import numpy as np
import pytest

SCRIPTS = [
    *(script for scripts in PREPARATION for script in scripts),
    *(script for step in STEPS for side in ("pt", "pd") for script in step.side(side)),
    *(step.check for step in STEPS),
]


@pytest.mark.parametrize(
    ("script", "first"),
    [
        ("weights/torch2paddle.py", "weights/torch_bert_weight.py"),
        ("classifier_weights/generate_classifier_weights.py", "weights/torch_bert_weight.py"),
        ("pipeline/Step1/pt_forward_bert.py", "weights/torch_bert_weight.py"),
        ("pipeline/Step2/pd_data.py", "weights/torch_bert_weight.py"),
        ("pipeline/Step1/check_step1.py", "pipeline/Step1/pt_forward_bert.py"),
        ("pipeline/Step2/check_step2.py", "pipeline/Step2/pt_data.py"),
        ("pipeline/Step3/check_step3.py", "pipeline/Step3/pt_loss.py"),
        ("pipeline/Step4/check_step4.py", "pipeline/Step4/pt_lr_scheduler.py"),
        ("pipeline/Step5/check_step5.py", "pipeline/Step5/pt_train.py"),
        ("pipeline/reprod_log_demo/check_log_diff.py", "pipeline/reprod_log_demo/write_log.py"),
    ],
)
def test_missing_inputs_name_the_script_to_run_first(
    tmp_path: Path, script: str, first: str
) -> None:
    finished = run_script(script, tmp_path)
    assert finished.returncode == 2
    # a check of two comparisons has a line for each
    for line in finished.stderr.strip().splitlines():
        assert "missing: first run python " in line
    assert f"python {first} --profile tiny --home {tmp_path}" in finished.stderr


@pytest.mark.parametrize("side", ["pt", "pd"])
def test_steps_before_the_weights(aligned_home: Path, tmp_path: Path, side: str) -> None:
    """Fake data alone are there: the weights come next, then (for Paddle) their conversion."""
    (tmp_path / "fake_data").symlink_to(aligned_home / "fake_data")
    script = f"pipeline/Step1/{side}_forward_bert.py"
    assert "first run python weights/torch_bert_weight.py" in one_line_error(
        run_script(script, tmp_path)
    )


def test_paddle_before_the_conversion(home: Path) -> None:
    (home / "weights" / "paddle_weight.pdparams").unlink()
    error = one_line_error(run_script("pipeline/Step1/pd_forward_bert.py", home))
    assert "first run python weights/torch2paddle.py" in error


def test_a_failing_script_leaves_no_old_record(home: Path) -> None:
    """What ran yesterday must not be judged as today's result."""
    (home / "weights" / "paddle_weight.pdparams").write_bytes(b"damaged")
    one_line_error(run_script("pipeline/Step1/pd_forward_bert.py", home))
    checked = run_script("pipeline/Step1/check_step1.py", home)
    assert checked.returncode == 2
    assert "forward_paddle.npy" in checked.stderr and "missing: first run" in checked.stderr
    log = (home / "log_reprod" / "forward_diff.log").read_text()
    assert "check passed" not in log and "failed" in log.splitlines()[-1]


@pytest.mark.parametrize(
    "script", ["Step1/pt_forward_bert", "Step4/pd_bp", "Step5/pt_train", "Step5/pd_train"]
)
def test_a_refused_run_leaves_earlier_results(home: Path, script: str) -> None:
    """Another profile than the folder's: nothing is done, so nothing is lost."""
    before = {path: path.read_bytes() for path in (home / "log_reprod").rglob("*.npy")}
    error = one_line_error(run_script(f"pipeline/{script}.py", home, "--profile", "minilm"))
    assert "holds the weights of profile tiny" in error
    assert {path: path.read_bytes() for path in (home / "log_reprod").rglob("*.npy")} == before
    assert not list((home / "log_reprod").rglob(".*"))


@pytest.mark.parametrize("script", ["Step1/pt_forward_bert", "Step5/pt_train", "Step5/pd_train"])
@pytest.mark.parametrize("options", [(), ("--randomness", "native", "--seed", "3")])
def test_results_that_cannot_be_written_are_told_before_the_work(
    home: Path, script: str, options: tuple[str, ...]
) -> None:
    if options and "Step1" in script:
        pytest.skip("Step 1 has no such option")
    shutil.rmtree(home / "log_reprod")
    (home / "log_reprod").write_text("a file in place of the folder")
    finished = run_script(f"pipeline/{script}.py", home, *options)
    assert "cannot write in" in one_line_error(finished) and finished.stdout == ""


def test_a_script_says_what_it_wrote(home: Path) -> None:
    script = "pipeline/Step4/pt_lr_scheduler.py"
    finished = run_script(script, home)
    written = home.resolve() / "log_reprod" / "strict" / "lr_torch.npy"
    assert finished.stdout.splitlines()[-1] == f"wrote {written}"
    assert run_script(script, home, "--quiet").stdout == ""


def test_a_home_that_cannot_be_written_to() -> None:
    finished = run_warm_python("-m", "pipeline.align", "--profile", "tiny", "--home", "/proc/x")
    assert finished.returncode == 2 and finished.stdout == ""
    assert finished.stderr.startswith("align.py: --home /proc/x: cannot be written to")


def test_steps_before_the_fake_data(home: Path) -> None:
    (home / "fake_data" / "fake_data.npy").unlink()
    error = one_line_error(run_script("pipeline/Step3/pt_loss.py", home))
    assert "first run python fake_data/gen_fake_data.py" in error


def test_damaged_config(home: Path) -> None:
    (home / "weights" / "config.json").write_text("{")
    error = one_line_error(run_script("pipeline/Step3/pt_loss.py", home))
    assert "config.json is damaged: run python weights/torch_bert_weight.py" in error


def test_damaged_fake_data(home: Path) -> None:
    path = home / "fake_data" / "fake_data.npy"
    path.write_bytes(path.read_bytes()[:50])
    error = one_line_error(run_script("pipeline/Step3/pd_loss.py", home))
    assert "fake_data.npy is damaged: run python fake_data/gen_fake_data.py" in error


@pytest.mark.parametrize(
    "array",
    [np.full((4, 64), 40_000), np.full((4, 64), -1), np.ones((4, 64)), np.ones(64, dtype=np.int64)],
    ids=["beyond the vocabulary", "negative", "floats", "one axis"],
)
def test_fake_data_that_the_model_cannot_take(home: Path, array: np.ndarray) -> None:
    np.save(home / "fake_data" / "fake_data.npy", array)
    error = one_line_error(run_script("pipeline/Step1/pd_forward_bert.py", home))
    assert "must hold int64 numbers from 0 to 30521 along 2 axes" in error


def test_a_label_too_few(home: Path) -> None:
    np.save(home / "fake_data" / "fake_label.npy", np.array([0, 1, 1]))
    error = one_line_error(run_script("pipeline/Step3/pt_loss.py", home))
    assert "3 labels for 4 sentences" in error


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"just\nwords\n"])
def test_a_damaged_vocabulary(home: Path, content: bytes) -> None:
    (home / "weights" / "vocab.txt").write_bytes(content)
    error = one_line_error(run_script("pipeline/Step2/pd_data.py", home))
    assert "vocab.txt: expected the vocabulary of this model" in error


def test_a_reader_that_leaves_early(home: Path) -> None:
    """`check_step1.py | true` is quiet."""
    words = [sys.executable, str(REPOSITORY / "pipeline/Step1/check_step1.py"), "--profile", "tiny"]
    command = shlex.join([*words, "--home", str(home)]) + " | true"
    finished = subprocess.run(
        ["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert finished.stderr == ""


def test_a_folder_that_cannot_be_written(aligned_home: Path, tmp_path: Path) -> None:
    """A file stands where log_reprod/ should be."""
    for name in ("weights", "fake_data", "classifier_weights"):
        (tmp_path / name).symlink_to(aligned_home / name)
    (tmp_path / "log_reprod").write_text("in the way")
    error = one_line_error(run_script("pipeline/Step1/pt_forward_bert.py", tmp_path))
    assert "log_reprod" in error


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_runs_from_its_own_folder(script: str) -> None:
    path = REPOSITORY / script
    finished = run_warm_python(path.name, "--help", cwd=path.parent)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    assert "--profile" in finished.stdout and "--data-dir" in finished.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--profile", "large"], "invalid choice: 'large'"),
        (["--weights", "nowhere"], "nowhere is not a folder"),
        (["--epochs", "0"], "0 is not a whole number above 0"),
    ],
)
def test_bad_options(tmp_path: Path, options: list[str], message: str) -> None:
    finished = run_script("fake_data/gen_fake_data.py", tmp_path, *options)
    assert finished.returncode == 2
    assert message in finished.stderr.splitlines()[-1]


def test_results_of_align(aligned_home: Path) -> None:
    """The folder to submit is complete, every log says passed, and the table names every step."""
    names = ("forward", "metric", "loss", "bp_align", "train_align")
    folder = aligned_home / "log_reprod"
    records = {f"{name}_{side}.npy" for name in names for side in ("torch", "paddle")}
    assert {path.name for path in folder.glob("*.npy")} == records
    assert {path.name for path in (folder / "strict").glob("*.npy")} >= records
    for name in (*names, "data", "lr"):
        log = (folder / f"{name}_diff.log").read_text()
        assert "diff check passed" in log and "check passed: False" not in log
        assert json.loads((folder / "strict" / f"{name}_diff.json").read_text())["passed"] is True
    table = (aligned_home / "align.txt").read_text()
    for step in (
        "1 forward",
        "2 data",
        "2 metric",
        "3 loss",
        "4 lr",
        "4 bp_align",
        "5 train_align",
    ):
        assert f"\n{step} " in table
    assert f"results: {folder}\nreport: {folder / 'report.html'}\n" in table
    page = (folder / "report.html").read_text()
    assert (
        page.count('class="ok"><span lang="en">passed') == 3 * 7
        and "all 7 comparisons passed" in page
    )
    assert (folder / "report.md").read_text().startswith("### ✅ `make align`: passed")
    assert 'failures="0"' in (folder / "report.xml").read_text()


BROKEN_PADDLE = """
import subprocess
from pipeline import align, run
popen = subprocess.Popen
fault = "from pipeline import settings; settings.EPSILON = 1e-4\\n"
fault += "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
def start(words, **options):
    broken = [words[0], "-c", fault, *words[1:]] if words[1].endswith("pd_bp.py") else words
    return popen(broken, **options)
subprocess.Popen = start
align.Server.run = lambda *_: None  # as where nothing forks
run.start(align.main, None, align.add_options)
"""


def test_align_fails_if_a_step_does(tmp_path: Path) -> None:
    """A broken Paddle side: the pipeline goes on to the end, and its exit code is 1."""
    options = ("--profile", "tiny", "--home", str(tmp_path / "home"), "--no-explain")
    finished = run_warm_python("-c", BROKEN_PADDLE, *options, warm_children=True)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    (row,) = (line for line in finished.stdout.splitlines() if line.startswith("4 bp_align"))
    assert row.split()[2:4] == ["FAILED", "FAILED"] or row.split()[3] == "FAILED"
    (row,) = (line for line in finished.stdout.splitlines() if line.startswith("5 train_align"))
    assert row.split()[2:4] == ["passed", "passed"]
    page = (tmp_path / "home" / "log_reprod" / "report.html").read_text()
    assert "1 of 7 comparisons did not pass, the first is 4 bp_align" in page


def test_bad_data_leave_no_old_record(home: Path, tmp_path: Path) -> None:
    """A script that can't read its data must not leave yesterday's record to the check."""
    options = ("--data-dir", str(tmp_path))
    error = one_line_error(run_script("pipeline/Step5/pd_train.py", home, *options))
    assert "dev.tsv is missing: --data-dir needs SST-2's train.tsv and dev.tsv" in error
    assert run_script("pipeline/Step5/check_step5.py", home).returncode == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence,label\n", "line 1: the header must be sentence<TAB>label"),
        ("sentence\tlabel\n", "holds no sentences"),
        ("sentence\tlabel\nfine\t1\nbad\n", "line 3: 1 columns instead of 2"),
        ("sentence\tlabel\n \t1\n", "line 2: the sentence is empty"),
        ("sentence\tlabel\nfine\tyes\n", "line 2: the label must be 0 or 1, not 'yes'"),
        (b"sentence\tlabel\n\xff\t1\n", "is not UTF-8 text"),
    ],
)
def test_damaged_data_name_the_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    for name in ("train.tsv", "dev.tsv"):
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(raw)
    with pytest.raises(ReprodError) as raised:
        find_corpus(tmp_path)
    assert message in str(raised.value)


def test_sentences_are_read_as_they_stand(aligned_home: Path, tmp_path: Path) -> None:
    """Quotes, the words null and NA, commas and trailing blanks, alike on both sides."""
    sentences = ['a "quoted" one \t1', "null\t0", "NA\t1", "one, two \t0", "'\t1"]
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("\n".join(["sentence\tlabel", *sentences]) + "\n")
    (tmp_path / "weights").symlink_to(aligned_home / "weights")
    for side in ("pt", "pd"):
        finished = run_script(
            f"pipeline/Step2/{side}_data.py", tmp_path, "--data-dir", str(tmp_path)
        )
        assert finished.returncode == 0, finished.stderr
    folder = tmp_path / "log_reprod" / "strict"
    expected, actual = (load_record(folder / f"data_{side}.npy") for side in ("torch", "paddle"))
    assert int(expected["length"]) == 5
    assert compare_records(expected, actual, rule=EXACT).passed
