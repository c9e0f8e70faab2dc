"""Step 5 on the tasks of GLUE and ChnSentiCorp: the loss, the metrics and the labels are the task's own."""

import importlib
import re
import runpy
import shutil
from argparse import ArgumentParser
from pathlib import Path

from pipeline.profiles import PROFILES
from pipeline.run import Run, make_parser, make_run
from pipeline.Step5 import check_step5
from pipeline.tasks import TASKS
from pipeline.training import record
from pipeline.training.prediction import add_options as add_prediction_options
from pipeline.training.prediction import answer, read_trained_weights
from pipeline.training.record import Measured, list_dev_files
from reprod_align import save_record
from reprod_align.errors import ReprodError
from reprod_align.records import load_record
from tests.conftest import REPOSITORY
from tests.pipeline.runs import files_closed, tiny_run  # noqa: F401
from tests.pipeline.test_tasks import write_task
from tests.pipeline.test_training_options import of_side

import numpy as np
import paddle
import pytest
import torch

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
SIDES = {"pt": "torch", "pd": "paddle"}
OPTIONS = "--epochs 2 --batch-size 4 --lr 1e-3 --grad-accum 2"
# what the record of the best epoch holds, and whose loss it is
OFFICIAL = {
    "cola": ["matthews"],
    "mrpc": ["acc", "f1"],
    "mnli": ["acc", "mm_acc"],
    "stsb": ["pearson", "spearman"],
    "chnsenticorp": ["acc"],
    "qnli": ["acc"],
    "wnli": ["acc"],
}


@pytest.fixture(scope="module")
def place(aligned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(aligned_home, tmp_path_factory.mktemp("tasks") / "home"))


def words_of(name: str, folder: Path) -> list[str]:
    task = TASKS[name]
    write_task(folder, task)
    if name == "mnli":  # its other half has one sentence less
        other = write_task(folder / "other", TASKS["mnli-mm"]) / TASKS["mnli-mm"].dev.file
        lines = other.read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / other.name).write_text("".join(lines[:-1]), encoding="utf-8")
    return ["--task", name, "--data-dir", str(folder), *OPTIONS.split()]


def trained(name: str, place: Path, folder: Path) -> Run:
    """Train both sides on invented sentences; return the run."""
    words = [*words_of(name, folder / "data"), "--output", str(folder / "output")]
    run = tiny_run(place, *words)
    script = REPOSITORY / "classifier_weights" / "generate_classifier_weights.py"
    runpy.run_path(str(script))["main"](run)
    for side in SIDES:
        importlib.import_module(f"pipeline.Step5.{side}_train_many").main(tiny_run(place, *words))
    return run


def judge(run: Run) -> int:
    """Return the exit code of the check, all its own options at their defaults."""
    parser = ArgumentParser()
    check_step5.add_options(parser)
    return check_step5.main(make_run(**vars(run.options), **vars(parser.parse_args([]))))


def strict(run: Run, side: str) -> dict[str, np.ndarray]:
    return load_record(run.output(f"train_align_{SIDES[side]}"))


@pytest.mark.parametrize(
    "name",
    [
        "mnli",
        "stsb",
        *(
            pytest.param(name, marks=pytest.mark.longer)
            for name in OFFICIAL
            if name not in ("mnli", "stsb")
        ),
    ],
)
def test_training_on_a_task(name: str, place: Path, tmp_path: Path, capsys) -> None:
    """Both sides part by rounding alone, and the check says so; what is measured fits the logits."""
    run, task = trained(name, place, tmp_path), TASKS[name]
    assert f"torch float32: best {task.main_metric} " in capsys.readouterr().out
    official = load_record(run.output("train_align_torch", "float32"))
    assert sorted(official) == sorted(OFFICIAL[name])
    ours, theirs = strict(run, "pt"), strict(run, "pd")
    assert list(ours) == list(theirs)
    for entry, values in ours.items():
        np.testing.assert_allclose(theirs[entry], values, rtol=0, atol=1e-9, err_msg=entry)
    assert np.abs(ours["epoch_0_losses"] - theirs["epoch_0_losses"]).max() < 1e-12
    assert ours["epoch_1_logits"].shape == (14, task.num_labels)
    for metric in task.metric_names:
        assert f"epoch_1_{metric}" in ours
    if name == "mnli":
        assert ours["epoch_1_mm_logits"].shape == (13, 3)
    assert judge(run) == 0
    assert "train_align: aligned" in capsys.readouterr().out
    log = (tmp_path / "output" / "torch" / "float64" / "log.jsonl").read_text()
    assert f'"{task.main_metric}": ' in log


def test_the_loss_of_scores_is_their_squared_error() -> None:
    """In float64 on both sides, although torch's labels are float32; of classes it is the cross entropy."""
    logits, labels = np.array([[1.5], [4.0]]), np.array([2.0, 3.8], np.float32)
    wanted = np.mean((logits[:, 0] - labels) ** 2)
    ours = of_side("pt", "model").criterion(torch.tensor(logits), torch.tensor(labels))
    theirs = of_side("pd", "model").criterion(paddle.to_tensor(logits), paddle.to_tensor(labels))
    assert ours.dtype == torch.float64 and ours.item() == wanted == theirs.item()
    assert "float64" in str(theirs.dtype)
    classes = np.log([[0.2, 0.5, 0.3]])
    loss = of_side("pt", "model").criterion(torch.tensor(classes), torch.tensor([1]))
    assert loss.item() == pytest.approx(-np.log(0.5), abs=1e-15)


def test_a_metric_that_differs_is_found(tmp_path: Path, capsys) -> None:
    """A record whose Spearman is another fails the check, which also asks for its metrics."""
    run = make_run(home=tmp_path, task="stsb", profile="tiny", no_explain=True)
    for dtype in ("float32", "float64"):
        for side, spearman in (("torch", 0.5), ("paddle", 0.51)):
            path = run.output(f"train_align_{side}", dtype)
            save_record(path, {"pearson": np.array(0.5), "spearman": np.array(spearman)})
    assert judge(run) == 1
    assert "spearman" in capsys.readouterr().out
    for side in ("torch", "paddle"):
        save_record(run.output(f"train_align_{side}", "float32"), {"pearson": np.array(0.5)})
    assert judge(run) == 2
    assert "both records lack spearman" in capsys.readouterr().err


def test_rounding_makes_no_rank() -> None:
    """Equal pairs get scores that differ in the last digit: their ranks must not depend on it."""
    labels = [1.0, 2.0, 3.0, 4.0]
    results = []
    for rounding in (1e-13, -1e-13):
        measured = Measured()
        scores = [[0.3], [0.7], [0.7 + rounding], [0.9]]
        measured.add(TASKS["stsb"], "", scores, labels)
        results.append(measured.scores["spearman"])
        assert (
            measured.scores["pearson"]
            == TASKS["stsb"].metrics(np.array(scores)[:, 0], labels)["pearson"]
        )
    assert results[0] == results[1]


def test_mismatched_is_measured_where_it_is_there(tmp_path: Path, monkeypatch) -> None:
    write_task(tmp_path, TASKS["mnli"])
    run = make_run(task="mnli", data_dir=tmp_path, home=tmp_path)
    assert list(list_dev_files(run)) == [""]
    write_task(tmp_path, TASKS["mnli-mm"])
    assert list(list_dev_files(run)) == ["", "mm_"]
    path = tmp_path / "dev_mismatched.tsv"
    path.write_text("index\n", encoding="utf-8")
    with pytest.raises(ReprodError, match="dev_mismatched.tsv, line 1: the header"):
        list_dev_files(run)
    fetched = []
    monkeypatch.setattr(record, "fetch_corpus", lambda task, home: fetched.append(task) or home)
    path.unlink()
    list_dev_files(make_run(task="mnli", data_dir=tmp_path, from_hub=False, home=tmp_path))
    assert fetched == []


def predicted(side: str, capsys, home: Path, *words: str) -> list[list[str]]:
    parser = make_parser(None)
    add_prediction_options(parser)
    options = parser.parse_args(["--profile", "tiny", "--home", str(home), *words])
    capsys.readouterr()
    importlib.import_module(f"pipeline.Step5.{side}_predict").main(
        Run(PROFILES["tiny"], home, options)
    )
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def test_predictions_of_pairs(place: Path, tmp_path: Path, capsys) -> None:
    """A label by its name and a score, the same text from both sides."""
    for name in ("mnli", "stsb"):
        run = tiny_run(place, "--task", name, "--data-dir", str(tmp_path))
        script = REPOSITORY / "classifier_weights" / "generate_classifier_weights.py"
        runpy.run_path(str(script))["main"](run)
    words = ["a fine film\ta good one", "12\tnull"]
    ours = predicted("pt", capsys, place, "--task", "mnli", *words)
    assert ours == predicted("pd", capsys, place, "--task", "mnli", *words)
    assert ours[0][0] in TASKS["mnli"].labels and ours[0][2:] == ["a fine film", "a good one"]
    scores = predicted("pt", capsys, place, "--task", "stsb", *words)
    assert scores == predicted("pd", capsys, place, "--task", "stsb", *words)
    assert len(scores[0]) == 3 and re.fullmatch(r"-?\d+\.\d{6}", scores[0][0])
    with pytest.raises(ReprodError, match="STS-B takes 2 texts with a tab between, not 'one'"):
        predicted("pd", capsys, place, "--task", "stsb", "one")


def test_answers() -> None:
    assert answer(TASKS["sst2"], [0.0, 0.0]) == ["0", "0.500000"]
    assert answer(TASKS["mnli"], [0.0, 800.0, 0.0]) == ["entailment", "1.000000"]
    assert answer(TASKS["stsb"], [3.25]) == ["3.250000"]


def test_a_checkpoint_of_another_task(tmp_path: Path) -> None:
    from pipeline.training.state import write_state

    facts = {"made_with": {"side": "torch", "--profile": "minilm", "--task": "mrpc"}}
    write_state(tmp_path / "x.safetensors", {"weight": np.zeros(1)}, facts)
    run = make_run(task="rte", checkpoint=tmp_path / "x.safetensors")
    with pytest.raises(ReprodError, match="task is mrpc, here it is rte"):
        read_trained_weights(run, "torch")
