"""JSON lines, and the states of both Trainers."""

import json
from pathlib import Path

from reprod_align.curves import compare_curves
from reprod_align.curves.readers import Head, read_curves
from reprod_align.curves.readers.json import JSON
from tests.curves.runs import one

import pytest

HISTORY = [
    {"epoch": 0.5, "grad_norm": 2.5, "learning_rate": 2e-05, "loss": 0.6931, "step": 10},
    {"epoch": 1.0, "grad_norm": 2.0, "learning_rate": 1e-05, "loss": 0.5, "step": 20},
    {"epoch": 1.0, "eval_accuracy": 0.9, "eval_loss": 0.4, "eval_runtime": 1.2, "step": 20},
    {"epoch": 1.0, "total_flos": 1e12, "train_loss": 0.6, "train_runtime": 9.0, "step": 20},
]


PADDLE_HISTORY = [
    {"loss": 0.69310001, "learning_rate": 2e-05, "global_step": 10, "interval_runtime": 1.0,
     "interval_samples_per_second": 3.2, "interval_steps_per_second": 0.1, "progress_or_epoch": 0.5,
     "step": 10},
    {"loss": 0.50000001, "learning_rate": 1e-05, "global_step": 20, "interval_runtime": 1.0,
     "progress_or_epoch": 1.0, "step": 20},
    {"eval_loss": 0.4, "eval_accuracy": 0.9, "eval_runtime": 2.0, "progress_or_epoch": 1.0, "step": 20},
]  # fmt: skip


ROWS = [{"step": n, "loss": 1 / n, "epoch": n / 4} for n in range(1, 9)]
SAMPLES = {
    "a.jsonl": lambda folder: [
        "\n".join(map(json.dumps, ROWS)).encode(),
        json.dumps({"log_history": ROWS}).encode(),
    ]
}


def test_our_own_log_with_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"step": 1, "epoch": 0, "loss": 0.69, "lr": 2e-05}\n'
        '{"step": 2, "epoch": 1, "loss": 0.6, "lr": 1e-05}\n'
        '{"step": 2, "epoch": 1, "accuracy": 0.91, "best": true, "note": "x", "none": null}\n',
        encoding="utf-8",
    )
    log = read_curves(path)
    assert list(log.curves) == ["loss", "lr", "accuracy"] and log.kind == "JSON lines"
    assert not log.remarks
    assert log.curves["accuracy"].steps.tolist() == [2] and log.curves["loss"].values[1] == 0.6
    assert log.epochs is not None and log.epochs.values.tolist() == [0, 1]


@pytest.mark.parametrize("whole", [True, False], ids=["trainer_state.json", "JSON lines"])
def test_both_trainers_are_read_and_paired(tmp_path: Path, whole: bool) -> None:
    paths = []
    for name, history in (("hf", HISTORY), ("paddle", PADDLE_HISTORY)):
        text = json.dumps({"best_metric": None, "log_history": history}, indent=2) + "\n"
        lines = "".join(json.dumps(row) + "\n" for row in history)
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(text if whole else lines, encoding="utf-8")
    report = compare_curves(*paths, tolerance=1e-6)
    assert [r.quantity for r in report.results] == ["lr", "loss", "eval_accuracy", "eval_loss"]
    assert report.passed and one(report).track.steps.tolist() == [10, 20]


def test_a_trainers_folder_and_its_latest_checkpoint(tmp_path: Path) -> None:
    for number, history in ((10, HISTORY[:1]), (9, HISTORY)):
        folder = tmp_path / f"checkpoint-{number}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    assert read_curves(tmp_path).curves["loss"].steps.tolist() == [10]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": HISTORY[:2]}))
    assert read_curves(tmp_path).curves["loss"].steps.tolist() == [10, 20]


@pytest.mark.parametrize(
    ("text", "recognised"),
    [
        ('{"step": 1}', True),
        (' [ {"step": 1}]', True),
        ("[]", True),
        ("[1]", False),
        ("step", False),
    ],
)
def test_it_is_recognised(text: str, recognised: bool) -> None:
    assert JSON.recognise(Head(text.encode(), text)) == recognised
