"""What the steps read of the exported checkpoint and of the fake batch."""

import json
from pathlib import Path

from models.bert_config import BertConfig
from pipeline.bert.exported import (
    find_exported_run,
    layer_names,
    read_config,
    reads_lower_case,
    weight_files,
)
from pipeline.bert.fake_batch import load_fake_batch
from pipeline.profiles import PROFILES
from pipeline.run import Run, make_run
from reprod_align.errors import MissingInputError, ReprodError

import numpy as np
import pytest


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run with the shape of `tiny` and a fake batch."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "fake_data").mkdir()
    described = PROFILES["tiny"].random.to_dict() | {"profile": "tiny", "do_lower_case": False}
    (tmp_path / "weights" / "config.json").write_text(json.dumps(described))
    np.save(tmp_path / "fake_data" / "fake_data.npy", np.arange(1, 21).reshape(2, 10))
    np.save(tmp_path / "fake_data" / "fake_label.npy", np.array([0, 1]))
    return make_run(home=tmp_path, profile="tiny")


def test_the_exported_shape(run: Run) -> None:
    assert read_config(run) == PROFILES["tiny"].random
    assert read_config(make_run(home=run.home, profile="tiny", task="mnli")).num_labels == 3
    assert reads_lower_case(run) is False
    assert find_exported_run(run.home).profile.name == "tiny"
    with pytest.raises(ReprodError, match="weights of profile tiny, not minilm: add --profile"):
        read_config(make_run(home=run.home))


def test_weights_of_each_side_and_task(run: Run) -> None:
    names = [path.name for path in weight_files(run, "paddle")]
    assert names == ["paddle_weight.pdparams", "paddle_classifier_weights.bin"]
    stsb = make_run(home=run.home, profile="tiny", task="stsb")
    assert weight_files(stsb, "torch")[1].name == "torch_classifier_weights_1.bin"


def test_layers_in_the_order_of_the_forward_pass() -> None:
    names = layer_names(BertConfig(num_hidden_layers=2))
    assert names[0] == "bert.embeddings" and names[-2:] == ["bert.pooler", "classifier"]
    assert names[1:3] == ["bert.encoder.layer.0", "bert.encoder.layer.1"]


def test_the_padded_batch(run: Run) -> None:
    """It leaves nothing at a default: padding grows by five, half is the second segment."""
    fake = load_fake_batch(run)
    assert fake.input_ids.shape == (2, 10) and fake.labels.tolist() == [0, 1]
    padded = fake.padded
    assert {array.shape for array in padded.values()} == {(2, 10)}
    assert padded["attention_mask"].sum(1).tolist() == [10, 5]
    assert padded["input_ids"][1].tolist() == [11, 12, 13, 14, 15, 0, 0, 0, 0, 0]
    assert padded["token_type_ids"][0].tolist() == [0] * 5 + [1] * 5
    assert padded["position_ids"][0].tolist() == list(range(1, 11))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("fake_data", np.full((2, 10), 40_000), "int64 numbers from 0 to 30521 along 2 axes"),
        ("fake_data", np.ones((2, 600), np.int64), "600 tokens long, this model takes 512"),
        ("fake_label", np.array([0, 1, 1]), "3 labels for 2 sentences: run python fake_data/"),
    ],
)
def test_a_batch_that_the_model_cannot_take(run: Run, name: str, array, message: str) -> None:
    np.save(run.home / "fake_data" / f"{name}.npy", array)
    with pytest.raises(ReprodError, match=message):
        load_fake_batch(run)


def test_the_fake_batch_has_two_labels(run: Run) -> None:
    with pytest.raises(ReprodError, match=r"MNLI \(matched\) 3: run this step without --task"):
        load_fake_batch(make_run(home=run.home, profile="tiny", task="mnli"))
    (run.home / "fake_data" / "fake_data.npy").unlink()
    with pytest.raises(MissingInputError, match="first run python fake_data/gen_fake_data.py"):
        load_fake_batch(run)
