"""Native mode's verdict from generated records: equal sides, a real gap, too few seeds, bad records."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.Step5 import check_native
from pipeline.training.native import read_run
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.records import load_record, save_record
from tests.conftest import one_line_error, run_script
from tests.pipeline.runs import tiny_run
from tests.significance.test_significance import Task, with_wrong

import numpy as np
import pytest

EXAMPLES = 872
Judge = Callable[..., tuple[int, str, dict[str, Any]]]


def write_run(
    folder: Path, side: str, seed: int, labels: np.ndarray, right: np.ndarray, without: str = ""
) -> Path:
    """Write a record of two epochs, of which the second is the better, as a training does."""
    record: dict[str, Any] = {}
    for epoch, predicted in enumerate((with_wrong(labels, right, 9), right)):
        logits = np.eye(2)[predicted] * 2.0 - 1.0
        record[f"epoch_{epoch}_logits"] = logits
        record[f"epoch_{epoch}_accuracy"] = float((predicted == labels).mean())
    record["acc"] = record["epoch_1_accuracy"]
    record["labels"] = labels
    record.pop(without, None)
    path = folder / "log_reprod" / "native" / f"train_align_{side}_seed{seed}.npy"
    return save_record(path, record)


def write_all(folder: Path, task: Task, torch: np.ndarray, paddle: np.ndarray) -> None:
    for side, runs in (("torch", torch), ("paddle", paddle)):
        for seed, predicted in enumerate(runs, 1):
            write_run(folder, side, seed, task.labels, predicted)


@pytest.fixture
def judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Judge:
    """Return a function that runs the check: exit code, what it prints, its JSON."""

    def judge_runs(*words: str) -> tuple[int, str, dict[str, Any]]:
        code = check_native.main(native_run(tmp_path, *words))
        folder = tmp_path / "log_reprod" / "native"
        said = capsys.readouterr().out
        assert (folder / "native_diff.log").read_text() == said
        return code, said, json.loads((folder / "native_diff.json").read_text())

    return judge_runs


def native_run(home: Path, *words: str) -> Any:
    """Return what the check's command line gives its `main`."""
    run = tiny_run(home)
    parser = argparse.ArgumentParser()
    check_native.add_options(parser)
    vars(run.options).update(vars(parser.parse_args(words)))
    return run


def test_equal_sides(tmp_path: Path, judge: Judge) -> None:
    task = Task(20)
    write_all(tmp_path, task, task.runs(12, noise=0.01), task.runs(12, noise=0.01))
    code, said, content = judge()
    assert code == 0 and content["verdict"] == "equivalent"
    lines = said.splitlines()
    assert lines[0].split()[0] == "pair" and [line.split()[:2] for line in lines[1:13]] == [
        ["seed", str(seed)] for seed in range(1, 13)
    ]
    for words in ("margin 0.0015: official rule passed", "margin 0.0025: official rule passed"):
        assert words in said
    assert "equivalent, 12 and 12 seeds: the mean accuracies differ by less than 0." in said
    assert content["seeds_found"] == {"torch": list(range(1, 13)), "paddle": list(range(1, 13))}


def test_a_real_gap(tmp_path: Path, judge: Judge) -> None:
    """A port one percent worse: the rule sees it, and so do the tests."""
    task = Task(21)
    ours = task.runs(8, noise=0.1)
    theirs = np.stack([with_wrong(task.labels, run, 9) for run in task.runs(8, noise=0.1)])
    write_all(tmp_path, task, ours, theirs)
    code, said, content = judge()
    assert code == 1 and content["verdict"] == "different"
    assert "official rule failed" in said and said.strip().endswith("a difference was seen")
    assert content["seeds"]["difference"] < -0.005


def test_the_best_epoch_counts(tmp_path: Path) -> None:
    task = Task(22)
    (right,) = task.runs(1)
    path = write_run(tmp_path, "torch", 1, task.labels, right)
    found = read_run(path)
    assert found.accuracy == (right == task.labels).mean()
    assert found.predicted is not None and np.array_equal(found.predicted, right)


def test_too_few_seeds(tmp_path: Path, judge: Judge) -> None:
    task = Task(23)
    write_all(tmp_path, task, task.runs(1), task.runs(1))
    code, said, _ = judge()
    assert code == 2
    assert "undecided, 1 and 1 seeds" in said and "train at least two seeds a side" in said


def test_how_many_seeds_would_be_needed(tmp_path: Path, judge: Judge) -> None:
    task = Task(24)
    write_all(tmp_path, task, task.runs(3), task.runs(3))
    code, said, content = judge()
    assert code == 2
    for margin in content["seeds"]["margins"]:
        count = margin["seeds_needed"]
        assert count > 3
        assert f"about {count} seeds a side could show {100 * margin['margin']:.2f}%" in said


def test_unpaired_seeds_count_and_are_not_paired(tmp_path: Path, judge: Judge) -> None:
    task = Task(25)
    ours, theirs = task.runs(4), task.runs(3)
    for seed, predicted in zip((1, 2, 3, 4), ours, strict=True):
        write_run(tmp_path, "torch", seed, task.labels, predicted)
    for seed, predicted in zip((3, 1, 9), theirs, strict=True):
        write_run(tmp_path, "paddle", seed, task.labels, predicted)
    _, said, content = judge()
    assert content["names"] == ["seed 1", "seed 3"] and len(content["pairs"]) == 2
    expected = [(ours[place] == task.labels).mean() for place in (0, 2)]
    assert [pair["both_right"] + pair["only_torch"] for pair in content["pairs"]] == [
        round(share * EXAMPLES) for share in expected
    ]
    assert "4 and 3 seeds" in said
    assert "remark: PyTorch alone has seed 2, 4: it counts, unpaired" in said
    assert "remark: Paddle alone has seed 9: it counts, unpaired" in said


def test_without_labels_accuracies_alone_are_compared(tmp_path: Path, judge: Judge) -> None:
    task = Task(26)
    write_all(tmp_path, task, task.runs(5, noise=0.05), task.runs(5, noise=0.05))
    write_run(tmp_path, "paddle", 2, task.labels, task.runs(1)[0], "labels")
    code, said, content = judge()
    assert content["pairs"] == [] and content["exchange"] is None and code in (0, 2)
    assert "train_align_paddle_seed2.npy: no labels or logits, so McNemar's" in said
    assert "PyTorch mean" in said and "McNemar p" not in said


def test_the_same_seed_twice_is_remarked_on(tmp_path: Path, judge: Judge) -> None:
    task = Task(27)
    same = np.repeat(task.runs(1), 3, axis=0)
    write_all(tmp_path, task, same, task.runs(3))
    _, said, _ = judge()
    assert "all seeds of PyTorch predict the very same: did --seed reach the runs?" in said


def test_margins_and_the_plot(tmp_path: Path, judge: Judge) -> None:
    task = Task(28)
    write_all(tmp_path, task, task.runs(4, noise=0.05), task.runs(4, noise=0.05))
    page = tmp_path / "native.html"
    code, said, content = judge("--margin", "0.02", "--report", str(page))
    assert code == 0 and "margin 0.02: official rule passed; equivalence shown" in said
    text = page.read_text()
    assert "native mode: equivalent" in text and '<svg aria-hidden="true"' in text
    judge("--report", str(tmp_path / "native.png"))
    assert (tmp_path / "native.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ReprodError, match=r"must end in \.html, \.png, \.svg"):
        check_native.main(native_run(tmp_path, "--report", "native.pdf"))


def other_labels(path: Path) -> None:
    record = load_record(path)
    record["labels"][:2] = record["labels"][:2][::-1]
    predicted = record["epoch_1_logits"].argmax(1)
    for epoch in (0, 1):
        predicted = record[f"epoch_{epoch}_logits"].argmax(1)
        record[f"epoch_{epoch}_accuracy"] = (predicted == record["labels"]).mean()
    save_record(path, record)


def fewer(path: Path) -> None:
    task = Task(30, 100)
    (right,) = task.runs(1)
    write_run(path.parents[2], "paddle", 2, task.labels, right)


def shuffled(path: Path) -> None:
    record = load_record(path)
    record["labels"] = 1 - record["labels"]
    save_record(path, record)


def no_accuracy(path: Path) -> None:
    save_record(path, {"epoch_0_pearson": np.array(0.8)})


SPOILT = {
    "damaged": (lambda path: path.write_bytes(path.read_bytes()[:900]), r"seed2\.npy"),
    "other sentences": (other_labels, "measured on different sentences"),
    "fewer sentences": (fewer, r"different sentences \(872 and 100 labels\)"),
    "labels of others": (shuffled, "labels and logits do not give its accuracy"),
    "a score": (no_accuracy, "holds no accuracy"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_spoilt_records(what: str, tmp_path: Path) -> None:
    task = Task(29)
    task.labels[:2] = 0, 1
    write_all(tmp_path, task, task.runs(2), task.runs(2))
    spoil, words = SPOILT[what]
    spoil(tmp_path / "log_reprod" / "native" / "train_align_paddle_seed2.npy")
    with pytest.raises(ReprodError, match=words):
        check_native.main(native_run(tmp_path))


def test_missing_records(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"no train_align_torch_seed\*\.npy"):
        check_native.main(native_run(tmp_path))
    task = Task(31)
    write_run(tmp_path, "torch", 1, task.labels, task.runs(1)[0])
    said = one_line_error(run_script("pipeline/Step5/check_native.py", tmp_path))
    assert (
        "has no train_align_paddle_seed*.npy: first run python pipeline/Step5/pd_train_many.py"
        in said
    )
    assert "--randomness native --seed 1" in said


def test_as_a_script(tmp_path: Path) -> None:
    task = Task(21)
    ours = task.runs(8, noise=0.1)
    theirs = np.stack([with_wrong(task.labels, run, 9) for run in task.runs(8, noise=0.1)])
    write_all(tmp_path, task, ours, theirs)
    finished = run_script("pipeline/Step5/check_native.py", tmp_path)
    assert finished.returncode == 1 and finished.stderr == ""
    assert finished.stdout.startswith("pair    PyTorch")
