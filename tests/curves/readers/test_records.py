"""Step 5's records."""

from pathlib import Path

from reprod_align.curves.log import CurveError
from reprod_align.curves.readers import read_curves
from reprod_align.curves.readers.records import read_record
from reprod_align.records import save_record

import numpy as np
import pytest

SAMPLES = {"curves.npy": lambda folder: [
    save_record(folder / "r", {"epoch_0_losses": np.arange(4.0), "loss_3": 1.0}).read_bytes()]}  # fmt: skip


def test_records_of_step_5(tmp_path: Path) -> None:
    record = {
        "epoch_0_losses": np.array([3.0, 2.0]),
        "epoch_0_logits": np.zeros((4, 2)),
        "epoch_0_accuracy": 0.5,
        "epoch_1_losses": np.array([1.0, 0.5]),
        "epoch_1_accuracy": 0.75,
        "loss_0": 9.0,
        "loss_1": 8.0,
        "name": "x",
    }
    log = read_curves(save_record(tmp_path / "train_align_torch.npy", record))
    assert log.epochs is not None and log.epochs.values.tolist() == [0, 0, 1, 1]
    assert log.curves["accuracy"].steps.tolist() == [2, 4]
    del record["loss_0"], record["loss_1"]
    log = read_curves(save_record(tmp_path / "again.npy", record))
    assert log.curves["loss"].values.tolist() == [3, 2, 1, 0.5]
    assert log.curves["loss"].steps.tolist() == [1, 2, 3, 4]


def test_a_record_without_numbers(tmp_path: Path) -> None:
    path = save_record(tmp_path / "names.npy", {"name": "x", "table": np.zeros((2, 2))})
    with pytest.raises(CurveError, match="holds no numbers"):
        read_record(path)
