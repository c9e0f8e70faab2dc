"""MLflow's file store, written as its own package writes it (3.17, MLFLOW_ALLOW_FILE_STORE)."""

from pathlib import Path

from reprod_align.curves import compare_curves
from reprod_align.curves.log import CurveError
from reprod_align.curves.readers import read_curves, read_head
from reprod_align.curves.readers.mlflow import MLFLOW

import numpy as np
import pytest

NOW = 1795552039311


SAMPLES = {"metric": lambda folder: [
    b"".join(b"%d %f %d\n" % (NOW + step, 1 / step, step) for step in range(1, 9))]}  # fmt: skip


def write_run(folder: Path, metrics: dict[str, list[object]]) -> Path:
    """Write a run as MLflow does: texts are lines as they stand, numbers get time and step."""
    (folder / "tags").mkdir(parents=True)
    (folder / "meta.yaml").write_text(
        f"artifact_uri: file:///x\nrun_id: {folder.name}\nstatus: 3\n"
    )
    for name, values in metrics.items():
        path = folder / "metrics" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            each if isinstance(each, str) else f"{NOW + step} {each!r} {step}\n"
            for step, each in enumerate(values, 1)
        ]
        path.write_text("".join(lines))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    values = {
        "loss": [1 / step for step in range(1, 6)],
        "train/lr": [0.1] * 5,
        "epoch": [0.2, 0.4],
    }
    return write_run(tmp_path / "mlruns" / "22" / "67b7", values)


def test_a_run_is_read_from_every_folder_around_it(run: Path) -> None:
    (run.parents[1] / "0").mkdir()
    (run.parents[1] / "0" / "meta.yaml").write_text("experiment_id: '0'\n")
    write_run(run.parents[1] / ".trash" / "gone", {"loss": [1.0]})
    for folder in (run, run / "metrics", run.parent, run.parents[1]):
        log = read_curves(folder)
        assert (log.kind, log.remarks) == ("an MLflow run", ())
        assert list(log.curves) == ["loss", "train/lr"]
        assert log.curves["loss"].steps.tolist() == [1, 2, 3, 4, 5]
        assert log.curves["loss"].values.tolist() == [1 / step for step in range(1, 6)]  # exactly
        assert log.epochs is not None and log.epochs.values.tolist() == [0.2, 0.4]


def test_one_metric_is_a_log_too(run: Path) -> None:
    path = run / "metrics" / "train" / "lr"
    assert read_curves(path).curves["lr"].values.tolist() == [0.1] * 5
    assert MLFLOW.recognise(read_head(path)) and not MLFLOW.recognise(read_head(run / "meta.yaml"))


def test_several_runs_must_be_told_apart(run: Path) -> None:
    other = write_run(run.parent / "7a00", {"loss": [1.0, 0.5, 0.4]})
    with pytest.raises(CurveError, match="holds 2 runs: give one of 22/67b7, 22/7a00"):
        read_curves(run.parents[1])
    assert compare_curves(run, run).passed and not compare_curves(run, other).passed


def test_what_mlflow_writes_beside_plain_values(tmp_path: Path) -> None:
    lines = [f"{NOW} nan 1\n", f"{NOW} -inf 2 sentences 90e3\n", f"{NOW} 1e-07 3\n", f"{NOW} 2 3\n"]
    log = read_curves(write_run(tmp_path / "run", {"loss": list(lines)}))
    np.testing.assert_array_equal(log.curves["loss"].values, [np.nan, -np.inf, 2.0])
    assert "logged more than once: 1 step of loss" in log.remarks[0]


def test_values_without_a_step_are_counted(tmp_path: Path) -> None:
    values = {"loss": [f"{NOW} 3.0 0\n", f"{NOW} 2.0 0\n"], "old": [f"{NOW} 5.0\n"]}
    log = read_curves(write_run(tmp_path / "run", values))
    assert log.curves["loss"].steps.tolist() == [1, 2]
    assert log.curves["old"].steps.tolist() == [0]
    assert log.remarks == ("loss was logged without a step: its values are counted from 1",)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            [f"{NOW} 1.0 1\n", "rubbish\n", f"{NOW} 1.0 2\n"],
            "loss, line 2 is damaged: expected time",
        ),
        ([f"{NOW} 1.0 1.5\n"], "line 1 is damaged"),
        ([f"{NOW} 1_0 1\n"], "line 1 is damaged"),
        ([f"{NOW} 1.0 {'9' * 30}\n"], "is too large"),
        ([""], "holds no numbers"),
    ],
)
def test_damage_is_one_clear_error(tmp_path: Path, lines: list[object], words: str) -> None:
    with pytest.raises(CurveError, match=words):
        read_curves(write_run(tmp_path / "run", {"loss": lines}))


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    log = read_curves(write_run(tmp_path / "run", {"loss": [0.5, f"{NOW} 0.3"]}))
    assert log.curves["loss"].values.tolist() == [0.5]
    assert log.remarks == ("loss: the last line (2) was cut off and is left out",)
