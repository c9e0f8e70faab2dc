"""A log in memory: steps, repeats, NaN; names of the same quantity in different tools are paired."""

from pathlib import Path

from reprod_align.curves.log import CurveError, CurveLog, is_measured, normalize_name, pair_names
from reprod_align.curves.readers import read_curves
from tests.curves.runs import command, lines_of

import numpy as np
import pytest


def test_a_log_of_values_counts_from_1() -> None:
    assert CurveLog.from_values({"loss": [1.0, 2.0]}).curves["loss"].steps.tolist() == [1, 2]


def test_a_resumed_run_repeats_steps_and_the_last_counts(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "log", [1, 2, 3, 2, 3, 4], [3.0, 2.0, 9.0, 2.0, 1.0, 0.5])
    log = read_curves(path)
    assert log.curves["loss"].values.tolist() == [3, 2, 1, 0.5]
    assert "more than once: 2 steps of loss (2 to 3), 1 of them" in log.remarks[0]


def test_nan_in_any_spelling(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = ['{"step": 1, "loss": NaN}', '{"step": 2, "loss": "nan"}', '{"step": 3, "loss": 1e999}']
    path.write_text("\n".join([*lines, '{"step": 4, "loss": 1' + "0" * 400 + "}"]))
    values = read_curves(path).curves["loss"].values
    assert np.isnan(values[:2]).all() and np.isposinf(values[2:]).all()


@pytest.mark.parametrize(
    "name", ["loss", "train_loss", "Train/loss", "LOSS", "my run - train/loss"]
)
def test_synonyms_of_the_loss(name: str) -> None:
    assert normalize_name(name) == "loss"


def test_synonyms_of_the_rest() -> None:
    assert normalize_name("train/learning_rate") == normalize_name("lr") == "lr"
    assert normalize_name("val_acc") == normalize_name("eval/accuracy") == "eval_accuracy"
    assert normalize_name("eval_loss") != normalize_name("loss")


@pytest.mark.parametrize(
    "name",
    ["epoch", "train_runtime", "interval_samples_per_second", "progress_or_epoch", "global_step",
     "train/max_memory_allocated", "reader_cost", "ips", "memory(GiB)", "train_speed(iter/s)"],
)  # fmt: skip
def test_time_and_memory_are_not_compared(name: str) -> None:
    assert is_measured(name)


@pytest.mark.parametrize("name", ["loss", "cost", "lr", "grad_norm", "eval_accuracy", "perplexity"])
def test_quantities_are_compared(name: str) -> None:
    assert not is_measured(name)


def test_a_trainers_final_mean_is_not_the_loss() -> None:
    pairs = pair_names(["loss", "train_loss", "learning_rate"], ["train_loss", "lr"]).pairs
    assert pairs == {"loss": "train_loss", "learning_rate": "lr"}


def test_unprefixed_metrics_are_paired_with_a_remark() -> None:
    names = pair_names(["loss", "accuracy"], ["loss", "eval_accuracy"])
    assert names.pairs["accuracy"] == "eval_accuracy" and "taken for the same" in names.remarks[0]


def test_names_without_a_partner_are_listed_and_none_at_all_is_an_error() -> None:
    names = pair_names(["loss", "bleu"], ["loss", "rouge", "kl"])
    assert names.remarks == ("only the first log has bleu", "only the second log has rouge, kl")
    with pytest.raises(CurveError, match="no curve is in both logs: the first has bleu, f1"):
        pair_names(["bleu", "f1"], ["rouge", "kl"])
    with pytest.raises(CurveError, match="no curve 'loss' in both"):
        pair_names(["bleu", "loss"], ["bleu"], only=["loss"])
    with pytest.raises(CurveError, match="the second log has no 'x'"):
        pair_names(["loss"], ["loss"], {"loss": "x"})


def test_a_name_map_pairs_what_names_do_not(tmp_path: Path) -> None:
    first = lines_of(tmp_path / "a.jsonl", range(1, 4), [1.0, 2.0, 3.0])
    second = tmp_path / "b.csv"
    second.write_text("step,objective,penalty\n1,1,7\n2,2,7\n3,3,7\n", encoding="utf-8")
    names = tmp_path / "names.json"
    names.write_text('{"loss": "objective"}', encoding="utf-8")
    assert command(first, second, "--name-map", names) == 0
    with pytest.raises(CurveError, match="no curve is in both"):
        command(first, second)
