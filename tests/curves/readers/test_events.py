"""TensorBoard and VisualDL, whole and damaged."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from reprod_align.curves import compare_curves
from reprod_align.curves.log import CurveError
from reprod_align.curves.readers import read_curves
from reprod_align.curves.readers.events import read_tensorboard
from tests.curves.runs import Values, one

import pytest


def write_visualdl(folder: Path, values: Values, start: int = 1) -> Path:
    from visualdl import LogWriter

    with LogWriter(str(folder)) as writer:
        for name, column in values.items():
            for step, value in enumerate(column, start):
                writer.add_scalar(tag=f"train/{name}", step=step, value=value)
    return folder


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_visualdl(tmp_path: Path, reference: Values) -> None:
    pytest.importorskip("visualdl")
    folder = write_visualdl(tmp_path / "vdl", reference)
    (path,) = folder.iterdir()
    report = compare_curves(reference, folder)
    assert report.passed and one(report).other_name == "train/loss"
    assert compare_curves(reference, path).passed
    data = path.read_bytes()
    path.write_bytes(data[:-7])
    assert "its last record was cut off" in read_curves(path).remarks[0]
    path.write_bytes(data[:200] + b"\xff" * 200 + data[400:])
    with pytest.raises(CurveError, match="damaged at byte"):
        read_curves(folder)


def write_tensorboard(folder: Path, values: Values) -> Path:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for name, column in values.items():
            for step, value in enumerate(column, 1):
                writer.add_scalar(f"train/{name}", value, step)
    return folder


def test_tensorboard(tmp_path: Path, reference: Values) -> None:
    pytest.importorskip("tensorboard")
    folder = write_tensorboard(tmp_path / "runs" / "one", reference)
    (path,) = folder.iterdir()
    report = compare_curves(reference, tmp_path / "runs")
    assert report.passed and one(report).logged == (240, 240)
    assert compare_curves(reference, path).passed
    data = path.read_bytes()
    path.write_bytes(data[:-7])
    assert "its last event was cut off" in read_curves(path).remarks[0]
    for place in (400, len(data) // 2):
        path.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
        with pytest.raises(CurveError, match="damaged at byte"):
            read_curves(folder)


def test_several_runs_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.out.tfevents.1").write_bytes(b"\0" * 12 + b"brain.Event:2")
    with pytest.raises(CurveError, match="holds 2 runs: give one of a, b"):
        read_curves(tmp_path)


@pytest.mark.parametrize(
    ("package", "head"),
    [("tensorboard", b"\0" * 12 + b"brain.Event:2"), ("visualdl", b"\0" * 12 + b"meta_data_tag")],
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, head: bytes
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError("gone", name=name.partition(".")[0])

    monkeypatch.setattr("reprod_align.curves.readers.events.import_module", missing)
    (tmp_path / "log").write_bytes(head)
    with pytest.raises(CurveError, match=f"needs {package}: python -m pip install {package}"):
        read_curves(tmp_path / "log")


def test_files_of_one_run_are_joined(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    parts = [
        write_tensorboard(tmp_path / name, {"loss": values})
        for name, values in (("a", [3.0, 2.0]), ("b", [9.0, 8.0, 7.0]))
    ]
    log = read_tensorboard(*(next(part.iterdir()) for part in parts))
    assert log.curves["train/loss"].values.tolist() == [9, 8, 7]  # the last value of a step counts


def make_events(folder: Path, write: Callable[[Path, Values], Path]) -> list[bytes]:
    found = write(folder / "events", {"loss": [1.0, 0.5, float("nan")], "lr": [0.1, 0.1, 0.1]})
    return [next(path for path in found.rglob("*") if path.is_file()).read_bytes()]


SAMPLES = {
    "events.out.tfevents.1": partial(make_events, write=write_tensorboard),
    "vdlrecords.1.log": partial(make_events, write=write_visualdl),
}
