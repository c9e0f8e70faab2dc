"""Each porting mistake, planted alone, makes the right check fail and say where.

The faults are planted from outside, in the Paddle side's process or in its files; the scripts that
run are the ones users run.
"""

import json
from pathlib import Path
from typing import Any

from reprod_align import load_record, save_record
from reprod_align.backends.paddle import read_weights, write_weights
from tests.conftest import Finished, run_script

import numpy as np
import pytest

CONFIG = """
from dataclasses import replace
from pipeline.pd import model
read = model.read_config
model.read_config = lambda run: replace(read(run), {change})
"""
SETTING = "from pipeline import settings\nsettings.{name} = {value}"
FLIP_LABEL = """
from pipeline.pd import loader as pd_loader
read_tsv = pd_loader.read_tsv
def flipped(path):
    for number, row in enumerate(read_tsv(path)):
        yield {**row, "label": 1 - row["label"]} if number == 3 else row
pd_loader.read_tsv = flipped
"""
DROP_LAST = """
from functools import partial
from pipeline.pd import loader as pd_loader
sampler = pd_loader.BatchSampler
pd_loader.BatchSampler = lambda **options: sampler(**{**options, "drop_last": True})
"""
COSINE = """
from paddlenlp import transformers
transformers.LinearDecayWithWarmup = transformers.CosineDecayWithWarmup
"""


Failures = dict[str, dict[str, Any]]


def caught(script: str, check: str, home: Path, fault: str) -> Failures:
    """Run `script` with the fault, then `check`; return what differs."""
    ran = run_script(script, home, fault=fault)
    assert ran.returncode == 0, ran.stderr
    return failed(checked(check, home), home)


def checked(check: str, home: Path) -> Finished:
    """Run a check without what it goes on to say: test_step_explain.py has that."""
    return run_script(check, home, "--no-explain")


def failed(finished: Finished, home: Path) -> Failures:
    """Return the values that differ by name, in the order of the record: of the strict one first."""
    assert finished.returncode == 1, finished.stdout + finished.stderr
    files = sorted((home / "log_reprod" / "strict").glob("*_diff.json"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    (found,) = [result for result in results if not result["passed"]]
    rows = [row for verdict in ("strict", "official") for row in found[verdict]["keys"]]
    failures: Failures = {}
    for row in rows:
        if not row["passed"]:
            failures.setdefault(row["key"], row)
    return failures


def first(failures: Failures) -> str:
    return next(iter(failures))


STEP1 = ("pipeline/Step1/pd_forward_bert.py", "pipeline/Step1/check_step1.py")


def change_weights(home: Path, **arrays: np.ndarray) -> None:
    path = home / "weights" / "paddle_weight.pdparams"
    write_weights(path, read_weights(path) | arrays)


def test_transposed_square_weight(home: Path) -> None:
    name = "encoder.layer.1.attention.self.value.weight"
    weights = read_weights(home / "weights" / "paddle_weight.pdparams")
    change_weights(home, **{name: weights[name].T.copy()})
    assert first(caught(*STEP1, home, "")).startswith("bert.encoder.layer.1")


def test_query_and_key_swapped(home: Path) -> None:
    weights = read_weights(home / "weights" / "paddle_weight.pdparams")
    attention = "encoder.layer.0.attention.self"
    swapped = {
        f"{attention}.{to}.{kind}": weights[f"{attention}.{source}.{kind}"]
        for to, source in (("query", "key"), ("key", "query"))
        for kind in ("weight", "bias")
    }
    change_weights(home, **swapped)
    assert first(caught(*STEP1, home, "")).startswith("bert.encoder.layer.0")


@pytest.mark.parametrize(
    ("change", "layer"),
    [
        pytest.param("layer_norm_eps=1e-5", "bert.embeddings", id="eps"),
        pytest.param("hidden_act='gelu_new'", "bert.encoder.layer.0", id="tanh gelu"),
    ],
)
def test_wrong_setting_of_a_layer(home: Path, change: str, layer: str) -> None:
    assert first(caught(*STEP1, home, CONFIG.format(change=change))) == layer


@pytest.mark.parametrize("script", ["data", "metric"])
def test_one_label_flipped(home: Path, script: str) -> None:
    found = caught(
        f"pipeline/Step2/pd_{script}.py", "pipeline/Step2/check_step2.py", home, FLIP_LABEL
    )
    assert ("dataset_3_labels" if script == "data" else "batch_0_labels") in found


@pytest.mark.parametrize("script", ["data", "metric"])
def test_last_batch_dropped(home: Path, script: str) -> None:
    found = caught(
        f"pipeline/Step2/pd_{script}.py", "pipeline/Step2/check_step2.py", home, DROP_LAST
    )
    start = "dataloader_5_" if script == "data" else "batch_5_"
    assert any(name.startswith(start) for name in found)


IGNORE = """
from models import pd_bert
forward = pd_bert.BertEmbeddings.forward
def ignoring(self, input_ids, token_type_ids=None, position_ids=None):
    return forward(self, input_ids, {arguments})
pd_bert.BertEmbeddings.forward = ignoring
"""
PADDLES_PADDING = """
from models import pd_bert
pd_bert.BertWordEmbeddings.forward = pd_bert.nn.Embedding.forward
"""
FLOAT32 = """
from models import pd_bert
forward = pd_bert.BertPooler.forward
pd_bert.BertPooler.forward = lambda self, x: forward(self, x).astype("float32").astype(x.dtype)
"""
KEEP_FLOAT32 = """
from models import pd_bert
forward = pd_bert.BertForSequenceClassification.forward
pd_bert.BertForSequenceClassification.forward = lambda self, x: forward(self, x).astype("float32")
"""


@pytest.mark.parametrize(
    ("fault", "layer"),
    [
        pytest.param(
            IGNORE.format(arguments="None, position_ids"), "padded_sequence", id="token types"
        ),
        pytest.param(IGNORE.format(arguments="token_type_ids"), "padded_sequence", id="positions"),
        pytest.param(PADDLES_PADDING, "padded_sequence", id="zeros for the pad token"),
        pytest.param(FLOAT32, "bert.pooler", id="float32 inside"),
        pytest.param(KEEP_FLOAT32, "logits", id="float32 logits"),
    ],
)
def test_what_defaults_and_float32_would_hide(home: Path, fault: str, layer: str) -> None:
    assert first(caught(*STEP1, home, fault)) == layer


STEP4 = ("pipeline/Step4/pd_bp.py", "pipeline/Step4/check_step4.py")


def test_weight_decay_on_biases(home: Path) -> None:
    found = caught(*STEP4, home, SETTING.format(name="NO_DECAY", value="('LayerNorm.weight',)"))
    assert "parameter_0.classifier.bias" in found


def test_adam_epsilon(home: Path) -> None:
    found = caught(*STEP4, home, SETTING.format(name="EPSILON", value="1e-8"))
    assert first(found).startswith("parameter_0.classifier.")


def test_cosine_for_linear(home: Path) -> None:
    found = caught("pipeline/Step4/pd_lr_scheduler.py", STEP4[1], home, COSINE)
    assert first(found) == "linear"
    row = found["linear"]
    assert (row["mismatches"], row["size"], row["first_index"]) == (678, 1024, [346])


def test_dropout_left_on(home: Path) -> None:
    fault = (
        "from models import pd_bert\npd_bert.BertForSequenceClassification.eval = lambda self: None"
    )
    assert first(caught(*STEP1, home, fault)).startswith("bert.embeddings")


def change_record(home: Path, name: str, **arrays: np.ndarray | None) -> Path:
    path = home / "log_reprod" / name
    record = load_record(path) | arrays
    save_record(path, {key: array for key, array in record.items() if array is not None})
    return path


def test_nan(home: Path) -> None:
    logits = load_record(home / "log_reprod" / "forward_paddle.npy")["logits"]
    logits[0, 0] = np.nan
    change_record(home, "forward_paddle.npy", logits=logits)
    found = failed(checked(STEP1[1], home), home)
    assert list(found) == ["logits"] and found["logits"]["reason"].startswith("not finite")
    assert "diff check failed" in (home / "log_reprod" / "forward_diff.log").read_text()


def test_missing_key(home: Path) -> None:
    change_record(home, "loss_paddle.npy", class_weights=None)
    found = failed(checked("pipeline/Step3/check_step3.py", home), home)
    assert list(found) == ["class_weights"] and found["class_weights"]["actual_shape"] is None


def test_truncated_record(home: Path) -> None:
    path = home / "log_reprod" / "metric_paddle.npy"
    path.write_bytes(path.read_bytes()[:-7])
    finished = checked("pipeline/Step2/check_step2.py", home)
    assert finished.returncode == 2
    assert len(finished.stderr.strip().splitlines()) == 1
    assert "metric_paddle.npy" in finished.stderr


def test_pickle_that_runs_a_command(home: Path, tmp_path: Path) -> None:
    marker = tmp_path / "executed"

    class Attack:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            import os

            return os.system, (f"touch {marker}",)

    path = home / "log_reprod" / "loss_paddle.npy"
    np.save(path, {"loss": Attack()}, allow_pickle=True)
    finished = checked("pipeline/Step3/check_step3.py", home)
    assert finished.returncode == 2
    assert "asks to run" in finished.stderr and "loss_paddle.npy" in finished.stderr
    assert not marker.exists()


def test_detached_layer(home: Path) -> None:
    """The forward pass is the same; the gradient of what lies behind is missing."""
    fault = """
from models import pd_bert
forward = pd_bert.BertIntermediate.forward
pd_bert.BertIntermediate.forward = lambda self, x: forward(self, x.detach())
"""
    assert first(caught(*STEP4, home, fault)).startswith("gradient_0.bert.encoder.layer.1.")


def test_trained_on_the_wrong_sentences(home: Path) -> None:
    """Accuracy is measured on the training sentences, and happens to be the same."""
    fault = """
from pipeline import corpus
find = corpus.find_corpus
from pipeline import run
run.find_corpus = lambda d: corpus.Corpus(find(d).demo, find(d).train, find(d).train)
"""
    found = caught("pipeline/Step5/pd_train.py", "pipeline/Step5/check_step5.py", home, fault)
    row = found["epoch_0_logits"]
    assert (row["expected_shape"], row["actual_shape"]) == ([110, 2], [330, 2])


def test_records_of_other_weights(home: Path) -> None:
    path = home / "weights" / "paddle_weight.pdparams"
    write_weights(path, {name: array * 2 for name, array in read_weights(path).items()})
    finished = checked(STEP1[1], home)
    assert finished.returncode == 2
    assert "forward_paddle.npy was made with another" in finished.stderr
    assert "run python pipeline/Step1/pt_forward_bert.py" in finished.stderr


def test_records_without_what_matters(home: Path) -> None:
    for folder in ("", "strict/"):
        for side in ("torch", "paddle"):
            change_record(home, f"{folder}forward_{side}.npy", logits=None)
    finished = checked(STEP1[1], home)
    assert finished.returncode == 2 and "both records lack logits" in finished.stderr


def test_one_changed_loss_in_training(home: Path) -> None:
    path = home / "log_reprod" / "strict" / "train_align_paddle.npy"
    losses = load_record(path)["epoch_0_losses"]
    losses[7] *= 1 + 1e-8
    change_record(home, "strict/train_align_paddle.npy", epoch_0_losses=losses)
    found = failed(checked("pipeline/Step5/check_step5.py", home), home)
    assert list(found) == ["epoch_0_losses"] and found["epoch_0_losses"]["worst_index"] == [7]
