"""CSV, TSV and the export of Weights & Biases."""

from pathlib import Path

from reprod_align.curves.log import normalize_name
from reprod_align.curves.readers import Head, read_curves
from reprod_align.curves.readers.tables import TABLE

import pytest

ROWS = [f"{n},{1 / n},{n}/9" for n in range(1, 9)]
SAMPLES = {"a.csv": lambda folder: ["\n".join(["step,loss,global_step/max_steps", *ROWS]).encode()]}


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_tables(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "log"
    rows = [
        "Step,mode,train_loss,val_loss",
        "0,train,0.7,",
        "1,train,nan,0.5",
        "",
        "2.0,train,0.5,",
    ]
    path.write_text("\n".join(rows).replace(",", delimiter) + "\n", encoding="utf-8-sig")
    log = read_curves(path)
    assert list(log.curves) == ["train_loss", "val_loss"]
    assert log.curves["train_loss"].steps.tolist() == [0, 1, 2]
    assert log.curves["val_loss"].values.tolist() == [0.5]


def test_an_export_of_weights_and_biases(tmp_path: Path) -> None:
    path = tmp_path / "wandb.csv"
    path.write_text(
        '"Step","run-1 - train/loss","run-1 - train/loss__MIN","run-1 - train/loss__MAX"\n'
        '"1","0.5","0.5","0.5"\n',
        encoding="utf-8",
    )
    assert [normalize_name(name) for name in read_curves(path).curves] == ["loss"]


@pytest.mark.parametrize(
    ("text", "recognised"),
    [("\nStep,loss\n1,2\n", True), ("loss\titer\n", True), ("loss,lr\n", False), ("", False)],
)
def test_it_is_recognised(text: str, recognised: bool) -> None:
    assert TABLE.recognise(Head(text.encode(), text)) == recognised
