"""Training with --randomness native: each framework's own draws, by --seed, recorded apart."""

import importlib
import shutil
from pathlib import Path

from pipeline.bert.fake_batch import load_fake_batch
from pipeline.training.native import read_run
from pipeline.training.options import read_options
from pipeline.training.session import Session
from pipeline.training.shards import Shard
from pipeline.training.state import read_state
from reprod_align.errors import ReprodError
from reprod_align.records import load_record
from tests.pipeline.runs import files_closed, tiny_run, write_sentences  # noqa: F401
from tests.pipeline.test_training_options import of_side

import numpy as np
import paddle
import pytest
import torch

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
SIDES = {"pt": "torch", "pd": "paddle"}
OPTIONS = "--randomness native --epochs 2 --batch-size 4 --grad-accum 2 --lr 1e-3 --save-every 2"
FILES = ("log.jsonl", "last.safetensors", "best.safetensors")


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentences(tmp_path_factory.mktemp("sentences"), 20, 10)


@pytest.fixture(scope="module")
def place(aligned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(aligned_home, tmp_path_factory.mktemp("native") / "home"))


def train(side: str, place: Path, sentences: Path, output: Path, seed: int = 1) -> Path:
    """Train; return the record."""
    words = [*OPTIONS.split(), "--seed", str(seed), "--data-dir", str(sentences)]
    run = tiny_run(place, *words, "--output", str(output))
    importlib.import_module(f"pipeline.Step5.{side}_train_many").main(run)
    return place / "log_reprod" / "native" / f"train_align_{SIDES[side]}_seed{seed}.npy"


@pytest.mark.parametrize("side", SIDES)
def test_native_runs(side: str, place: Path, sentences: Path, tmp_path: Path, monkeypatch) -> None:
    """Recorded apart; another seed trains otherwise, the same one alike, also if it was stopped."""
    official = {
        path: path.read_bytes() for path in (place / "log_reprod").rglob("train_align_*.npy")
    }
    path = train(side, place, sentences, tmp_path / "whole")
    whole, record = path.read_bytes(), load_record(path)
    assert {"labels", "epoch_0_losses", "epoch_1_logits", "epoch_1_accuracy", "acc"} <= {*record}
    assert record["labels"].shape == (10,) and record["epoch_0_losses"].shape == (3,)
    assert read_run(path).accuracy == record["acc"]
    other = load_record(train(side, place, sentences, tmp_path / "other", seed=2))
    change = np.abs(other["epoch_0_losses"] - record["epoch_0_losses"])
    assert change.min() > 1e-4 and (other["labels"] == record["labels"]).all()

    end_step = Session.end_step

    def stops(session: Session, *words: float, **numbers: float) -> None:
        end_step(session, *words, **numbers)
        if session.step == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Session, "end_step", stops)
        train(side, place, sentences, tmp_path / "stopped")
    assert not path.exists()  # what was recorded is no longer the last run's
    framework = SIDES[side]
    last = tmp_path / "stopped" / framework / "float32" / "last.safetensors"
    assert read_state(last)[1]["position"][1] == 2
    assert train(side, place, sentences, tmp_path / "stopped").read_bytes() == whole
    for name in FILES:
        found = [tmp_path / run / framework / "float32" / name for run in ("whole", "stopped")]
        assert found[0].read_bytes() == found[1].read_bytes(), name
    assert read_state(last)[1]["made_with"]["--randomness"] == "native"
    assert official == {path: path.read_bytes() for path in official}
    words = [*OPTIONS.split()[2:], "--seed", "1", "--dtype", "float32"]
    words += ["--data-dir", str(sentences), "--output", str(tmp_path / "stopped")]
    with pytest.raises(ReprodError, match="--randomness native instead of None"):
        importlib.import_module(f"pipeline.Step5.{side}_train_many").main(tiny_run(place, *words))


@pytest.mark.parametrize("side", SIDES)
def test_masks_are_the_frameworks_own(side: str, place: Path) -> None:
    """Each place draws other numbers, and the same ones again; nothing comes from the shared stream."""
    run = tiny_run(place, "--randomness", "native", "--dtype", "float64")
    options = read_options(run)
    learner = of_side(side, "learner").build_learner(
        of_side(side, "model").load_bert(run, "float64"), options, 4
    )
    learner.model.train()
    made = torch.tensor if side == "pt" else paddle.to_tensor
    fake = load_fake_batch(run)
    batch = {"input_ids": made(fake.input_ids), "labels": made(fake.labels)}
    criterion = of_side(side, "model").criterion

    def loss(seed: int, *step: int) -> float:
        object.__setattr__(options, "seed", seed)
        (part,) = Shard(slice(0, 4), 4).split(batch, options, step)
        with learner.forward_pass(part) as forward:
            return criterion(forward(**part.inputs), part.labels).item()

    found = [loss(1, 0, 0), loss(1, 0, 1), loss(1, 1, 0), loss(2, 0, 0)]
    assert len({*found}) == 4 and loss(1, 0, 0) == found[0]
    object.__setattr__(options, "randomness", "shared")
    assert loss(1, 0, 0) not in found


@pytest.mark.parametrize("side", SIDES)
def test_orders(side: str) -> None:
    order = of_side(side, "loader").draw_native_order
    assert sorted(order(range(20), 5)) == list(range(20))
    assert order(range(20), 5) == order(range(20), 5) != order(range(20), 6)


def test_precision(place: Path) -> None:
    """One record for each seed: float32, unless another is asked for."""
    native = ["--randomness", "native"]
    assert read_options(tiny_run(place, *native)).dtypes == ("float32",)
    assert read_options(tiny_run(place, *native, "--dtype", "float64")).dtypes == ("float64",)
    assert read_options(tiny_run(place)).dtypes == ("float64", "float32")
