"""Damaged and hostile files: each is refused in one line that says what is wrong, and nothing is lost."""

import importlib.util
import json
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from models.bert_config import BertConfig
from pipeline.bert.exported import read_config, write_description
from pipeline.bert.fake_batch import load_fake_batch
from pipeline.corpus import find_corpus
from pipeline.profiles import PROFILES
from pipeline.run import Run, folder, make_run, whole_path
from pipeline.timing.workload import PHASES, Speed, Workload, require_counted
from pipeline.training.native import read_run
from pipeline.training.state import read_state, require_resumable, write_state
from reprod_align import Gate, ReprodError, check, load_record, save_record
from reprod_align.backends.torch import read_weights
from reprod_align.commands import main
from reprod_align.initialisation.sample import Collector, as_record, from_record
from reprod_align.pair.file import explain_error
from reprod_align.significance import compare_accuracies
from tests.alignment.test_robustness import file_with, only_line
from tests.conftest import REPOSITORY

import numpy as np
import pytest
import torch

# ------------------------------------------------------------------ a pair's file


def test_inputs_without_an_element(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_with(tmp_path, "def inputs(): return (np.ones((0, 5)),)")
    assert main(["pair", file]) == 2
    assert "every array is empty" in only_line(capsys)


def test_links_in_a_ring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring = tmp_path / "ring"
    ring.symlink_to(ring)
    assert main(["pair", str(ring)]) == 2 and "is missing" in only_line(capsys)
    assert "is missing" in str(explain_error(ReprodError("is missing"), ring))
    for kind in (folder, whole_path):
        with pytest.raises(Exception, match="expected a path"):
            kind(str(ring))
        with pytest.raises(Exception, match="expected a path"):
            kind("a" * 300)


# ------------------------------------------------------------------ logs and records

LOG = "".join(f'{{"step": {step}, "loss": {1 / step}}}\n' for step in range(1, 9))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"step": 1e30, "epoch": 1}\n', "step 100000000000000001988462 is too large"),
        ("step 1, loss: 0.5\n" + "x" * (1 << 20), "line 2 is longer than 1,048,576 characters"),
    ],
)
def test_logs(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(LOG)
    bad.write_text(text)
    assert main(["curves", str(good), str(bad)]) == 2
    assert said in only_line(capsys)


def test_an_offset_that_no_counter_reaches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text(LOG)
    words = ["curves", str(tmp_path / "log"), str(tmp_path / "log"), "--offset", str(10**30)]
    assert main(words) == 2 and "offset must be a number of steps" in only_line(capsys)


def test_numbers_in_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = "9" * 400
    save_record(tmp_path / "a", {f"epoch_{many}_losses": np.arange(3.0)})
    save_record(tmp_path / "b", {f"loss_{many}": np.float64(1)})
    first, second = str(tmp_path / "a.npy"), str(tmp_path / "b.npy")
    assert main(["curves", first, first]) == 0
    capsys.readouterr()
    assert main(["curves", first, second]) == 2
    assert "step 100000000000000000000000 is too large" in only_line(capsys)


def test_more_than_memory_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_record(tmp_path / "a", {"x": np.ones(1)})

    read_bytes = Path.read_bytes

    def too_much(self: Path) -> bytes:
        if self == path:  # other files are read in the same process
            raise MemoryError
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", too_much)
    assert main(["compare", str(path), str(path)]) == 2
    assert "more than fit into memory" in only_line(capsys)


def test_strict_records_of_another_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = save_record(tmp_path / "a", {"loss": np.ones(3)})
    other = save_record(tmp_path / "b", {"linear": np.ones(3)})
    gate = Gate("x", (ours, ours), (other, other), tmp_path / "x.log", "it", required=("loss",))
    assert check(gate) == 2
    assert "lack loss, so they belong to another step" in only_line(capsys)
    twin = {
        "required": ("loss",),
        "required_twin": "linear",
    }  # a step whose twins have names of their own
    assert check(Gate("x", (ours, ours), (other, other), tmp_path / "x.log", "it", **twin)) == 0
    assert check(Gate("x", (ours, ours), (ours, ours), tmp_path / "x.log", "it", **twin)) == 2
    assert "lack linear, so they belong to another step" in capsys.readouterr().err


@pytest.mark.parametrize("required", [(), ("loss",)])
def test_texts_for_numbers(required: tuple[str, ...], tmp_path: Path) -> None:
    ours = save_record(tmp_path / "a", {"loss": np.array("0.5")})
    other = save_record(tmp_path / "b", {"loss": np.array("0.7")})
    log = tmp_path / "x.log"
    gate = Gate("x", (ours, other), (ours, other), log, "it", required=required)
    assert check(gate) == (2 if required else 1)
    assert ("holds text, not numbers, under loss" in log.read_text()) == bool(required)


# ------------------------------------------------------------------ checkpoints

FACTS = {"made_with": {}, "position": [0, 1, 1], "learner": {}, "curves": ["a"], "log_bytes": 5}
ARRAYS = {
    "w": np.arange(6.0).reshape(2, 3),
    "optimizer/w/exp_avg": np.ones((2, 3)),
    "optimizer/w/step": np.float64(1),
    "curves/a": np.ones(2),
    "none": np.empty((0, 3)),
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_state(tmp_path / "last.safetensors", ARRAYS, FACTS)
    return tmp_path / "last.safetensors"


def test_a_checkpoint_comes_back(checkpoint: Path) -> None:
    arrays, facts = read_state(checkpoint)
    require_resumable(checkpoint, arrays, facts)
    assert facts == FACTS and arrays.keys() == ARRAYS.keys()


def test_a_checkpoint_with_one_bit_turned(checkpoint: Path) -> None:
    raw = checkpoint.read_bytes()
    for place in (len(raw) - 1, raw.index(b"position") + 13, raw.index(b"exp_avg")):
        turned = bytearray(raw)
        turned[place] ^= 1
        checkpoint.write_bytes(turned)
        with pytest.raises(ReprodError, match="is damaged, or not a checkpoint of Step 5"):
            read_state(checkpoint)


def test_a_checkpoint_of_before_there_were_sums(checkpoint: Path) -> None:
    raw = checkpoint.read_bytes()
    checkpoint.write_bytes(raw.replace(b'"crc32"', b'"other"'))
    assert read_state(checkpoint)[1] == FACTS


@pytest.mark.parametrize("facts", [[], 5, {"made_with": 3}])
def test_facts_that_are_none(facts: Any, checkpoint: Path) -> None:
    write_state(checkpoint, ARRAYS, facts)
    with pytest.raises(ReprodError, match="is damaged, or not a checkpoint of Step 5"):
        read_state(checkpoint)


@pytest.mark.parametrize(
    "facts",
    [
        {"position": [1, 2]},
        {"position": [0, True, 1]},
        {"position": None},
        {"log_bytes": -1},
        {"log_bytes": "5"},
        {"curves": ["b"]},
        {"curves": 1},
        {"learner": []},
        {"learner": {"schedule": {"last_lr": "x", "last_epoch": 1}}},
        {"learner": {"schedule": {"last_lr": float("nan"), "last_epoch": 1}}},
        {"learner": {"scaler": None}},
    ],
)
def test_facts_that_nothing_goes_on_from(facts: dict[str, Any], checkpoint: Path) -> None:
    write_state(checkpoint, ARRAYS, FACTS | facts)
    with pytest.raises(ReprodError, match="lacks what a training needs to go on: --no-resume"):
        require_resumable(checkpoint, *read_state(checkpoint))


@pytest.mark.parametrize(
    "arrays",
    [
        {"optimizer/w/exp_avg": np.ones((3, 2))},
        {"optimizer/w/exp_avg": np.ones((2, 3), "float32")},
        {"optimizer/v/exp_avg": np.ones((2, 3))},
    ],
)
def test_averages_of_other_weights(arrays: dict[str, Any], checkpoint: Path) -> None:
    write_state(checkpoint, ARRAYS | arrays, FACTS)
    with pytest.raises(ReprodError, match="lacks what a training needs to go on"):
        require_resumable(checkpoint, *read_state(checkpoint))


# ------------------------------------------------------------------ weights and inputs


@pytest.mark.parametrize(
    "tensor", [torch.ones(2, 2).to_sparse(), torch.ones(2, device="meta")], ids=["sparse", "meta"]
)
def test_tensors_without_an_array(tensor: torch.Tensor, tmp_path: Path) -> None:
    torch.save({"a": tensor}, tmp_path / "w.bin")
    with pytest.raises(
        ReprodError, match=r"w\.bin: a is a torch\._utils\._rebuild_.*, not a dense tensor"
    ):
        read_weights(tmp_path / "w.bin")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"num_hidden_layers": 10**30}, "num_hidden_layers must be at most 1000"),
        ({"hidden_size": 12 * 10**9}, "the number of weights must be at most 1e"),
    ],
)
def test_a_model_that_nobody_can_build(given: dict[str, int], said: str) -> None:
    with pytest.raises(ReprodError, match=said):
        BertConfig(**given)


@pytest.mark.parametrize(
    "text", ["[" * 5000, '{"profile": "tiny", "do_lower_case": "no"}', '{"profile": []}', "5"]
)
def test_a_description_that_is_damaged(text: str, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text(text)
    with pytest.raises(ReprodError, match=r"config\.json is damaged"):
        read_config(make_run(home=tmp_path, profile="tiny"))


def test_a_checkpoint_whose_vocabulary_is_damaged(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text(json.dumps(BertConfig().to_dict()))
    (source / "vocab.txt").write_text("[PAD]\n[UN")
    run = Run(PROFILES["tiny"], tmp_path / "home", Namespace(weights=source))
    with pytest.raises(
        ReprodError, match="source/vocab.txt: expected the vocabulary of this model"
    ):
        write_description(run)
    assert not run.home.exists()


def archive(path: Path) -> None:
    with path.open("wb") as handle:
        np.savez(handle, a=np.ones(1))


def lying(path: Path) -> None:
    np.save(path, np.zeros((4, 64), "int64"))
    path.write_bytes(
        path.read_bytes().replace(b"(4, 64), }       ", b"(4, 64" + b"0" * 8 + b"), }")
    )


def half_a_header(path: Path) -> None:
    np.save(path, np.zeros((4, 64), "int64"))
    path.write_bytes(path.read_bytes().replace(b"(4, 64), }", b"(4, (64), "))


@pytest.mark.parametrize("damage", [archive, lying, half_a_header])
def test_a_fake_batch_that_is_damaged(damage: Callable[[Path], None], tmp_path: Path) -> None:
    for name in ("weights", "fake_data"):
        (tmp_path / name).mkdir()
    config = BertConfig().to_dict() | {"profile": "tiny", "do_lower_case": True}
    (tmp_path / "weights" / "config.json").write_text(json.dumps(config))
    damage(tmp_path / "fake_data" / "fake_data.npy")
    with pytest.raises(ReprodError, match=r"fake_data\.npy (is damaged|must hold int64)"):
        load_fake_batch(make_run(home=tmp_path, profile="tiny"))


@pytest.mark.filterwarnings("ignore")  # files that datasets leaves open
def test_a_folder_whose_name_is_a_pattern(tmp_path: Path) -> None:
    from pipeline.pt.loader import read_tsv

    for name in ("a[1]", "a?", "ab", "a::b"):
        (tmp_path / name).mkdir()
        for part in ("train", "dev"):
            lines = "".join(f"{name} {row}\t1\n" for row in range(3))
            (tmp_path / name / f"{part}.tsv").write_text(f"sentence\tlabel\n{lines}")
        found = read_tsv(find_corpus(tmp_path / name).dev)
        assert found["sentence"][:] == [f"{name} {row}" for row in range(3)]


# ------------------------------------------------------------------ speeds, seeds, initialisation

TIMES = dict.fromkeys(PHASES, [1.0, 2.0])


@pytest.mark.parametrize(
    "given",
    [
        {"milliseconds": TIMES | {"data": [1.0, "2"]}},
        {"milliseconds": TIMES | {"data": [1.0, -2.0]}},
        {"milliseconds": TIMES | {"data": [1.0, float("nan")]}},
        {"milliseconds": TIMES | {"more": [1.0, 1.0]}},
        {"milliseconds": TIMES | {"data": None}},
        {"workload": Workload("tiny", 2, True, 8)},
        {"workload": Workload(["tiny"], 2, 2, 8)},  # type: ignore[arg-type]
        {"peak_mb": None},
        {"fast": 1},
    ],
)
def test_speeds(given: dict[str, Any]) -> None:
    whole = {
        "workload": Workload("tiny", 2, 2, 8),
        "device": "cpu",
        "fast": "",
        "threads": "",
        "peak_mb": 1.0,
    }
    require_counted(Speed(**whole | {"milliseconds": TIMES}))
    with pytest.raises(ValueError):
        require_counted(Speed(**whole | {"milliseconds": TIMES} | given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epoch_0_logits": np.full((4, 2), np.nan)}, "finite logits and whole numbers"),
        ({"labels": np.zeros(4, "U1")}, "finite logits and whole numbers"),
        ({"epoch_0_accuracy": np.array("x")}, "epoch_0_accuracy must be a number from 0 to 1"),
        ({"epoch_0_accuracy": np.float64("nan")}, "must be a number from 0 to 1"),
        ({"epoch_0_accuracy": np.ones(2)}, "must be a number from 0 to 1"),
    ],
)
def test_seeds(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    whole = {"epoch_0_logits": np.eye(4, 2), "labels": np.zeros(4, int), "acc": 0.75}
    record = whole | {"epoch_0_accuracy": np.float64(0.75)}
    assert read_run(save_record(tmp_path / "good", record)).accuracy == 0.75
    with pytest.raises(ReprodError, match=said):
        read_run(save_record(tmp_path / "bad", record | given))


def test_a_margin_too_small_for_numbers() -> None:
    with pytest.raises(ReprodError, match="margins must lie between 1e-06 and 1"):
        compare_accuracies([0.8, 0.9], [0.7, 0.9], [1e-300])


@pytest.mark.parametrize(
    "given",
    [
        {"w|moments": np.array([np.inf, 0, 1, 3])},
        {"w|values": np.array(1.0)},
        {"w|values": np.full(24, np.nan)},
        {"w|fixed": np.ones(2)},
        {"w|shape": np.array([-2, -4])},
        {"w|layout_shape": np.array([3, 3])},
    ],
)
def test_a_record_of_another_initialisation(given: dict[str, Any], tmp_path: Path) -> None:
    collector, source = Collector(range(3)), np.random.default_rng(0)
    for _ in range(3):
        collector.add("w", source.normal(size=(2, 4)), (2, 4))
    record = as_record(collector.samples())
    assert from_record(load_record(save_record(tmp_path / "a", record)))["w"].size == 8
    with pytest.raises(ReprodError, match="the record does not hold an initialisation"):
        from_record(record | given)


# ------------------------------------------------------------------ the example's series


def informer_series(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = REPOSITORY / "examples" / "informer" / "informer_series.py"
    spec = importlib.util.spec_from_file_location("informer_series", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "informer_series", module)  # where dataclasses look
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b"2016-07-01 00:00:00,1,2,3,4,5,6,\xff\n", "expected CSV text in UTF-8"),
        (b'2016-07-01 00:00:00,"' + b"1" * 200_000, "expected CSV text in UTF-8: field larger"),
        (b"9999999999999-01-01 00:00:00,1,2,3,4,5,6,7\n", "line 2: not a date"),
        (b"2016-07-01 00:00:00+02:00,1,2,3,4,5,6,7\n", "line 2: not a date"),
        (b"now,1,2,3,4,5,6,7\n", "line 2: not a date"),
    ],
)
def test_a_series(row: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = informer_series(monkeypatch)
    header = ",".join(("date", *module.COLUMNS)).encode()
    (tmp_path / "ETTh1.csv").write_bytes(b"\xef\xbb\xbf" + header + b"\n" + row)
    with pytest.raises(ReprodError, match=said):
        module.read_series(tmp_path / "ETTh1.csv")
