"""Every option of Step 5's training does what it says, and does the same on both sides."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from pipeline.bert.fake_batch import load_fake_batch
from pipeline.profiles import PROFILES
from pipeline.run import Run, make_parser
from pipeline.training.options import SCHEDULERS, read_options
from pipeline.training.shards import Shard, draw_rows
from pipeline.training.state import model_weights, read_state
from reprod_align.curves import compare_curves
from reprod_align.curves.readers import read_curves
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.randomness import SharedRandom, UnsharedDrawError
from reprod_align.records import load_record
from tests.conftest import ENVIRONMENT, REPOSITORY
from tests.pipeline.runs import files_closed, tiny_run, write_sentences  # noqa: F401

import numpy as np
import paddle
import pytest
import torch

# Hugging Face datasets leaves the files open that it reads; here it does so in the tests' own process
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
SIDES = {"pt": "torch", "pd": "paddle"}


def of_side(side: str, name: str) -> Any:
    """Return a module of one side; not imported above, since Paddle's hide torch unless it came first."""
    return importlib.import_module(f"pipeline.{side}.{name}")


# five steps on 36 sentences; Paddle keeps the weight decay in float32, where 0.01 is another number
SHORT = "--dtype float64 --epochs 1 --batch-size 8 --lr 1e-3 --weight-decay 0.0078125"


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentences(tmp_path_factory.mktemp("sentences"), 36, 10)


@pytest.fixture(scope="module")
def place(aligned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the inputs of a training."""
    home = tmp_path_factory.mktemp("options") / "home"
    shutil.copytree(aligned_home, home)
    return home


class Trained:
    """What both sides wrote in a training with the same options."""

    def __init__(self, home: Path, sentences: Path, output: Path, options: str) -> None:
        """Train both, in this process."""
        words = [*SHORT.split(), "--data-dir", str(sentences), "--output", str(output)]
        self.logs, self.weights = {}, {}
        for side, name in SIDES.items():
            script = importlib.import_module(f"pipeline.Step5.{side}_train_many")
            script.main(tiny_run(home, *words, *options.split()))
            folder = next((output / name).iterdir())
            self.logs[name] = folder / "log.jsonl"
            self.weights[name] = model_weights(read_state(folder / "last.safetensors")[0])

    def rows(self, side: str, key: str = "loss") -> list[Any]:
        """Return a number of every line that has it."""
        rows = [json.loads(line) for line in self.logs[side].read_text().splitlines()]
        return [row[key] for row in rows if key in row]

    def agree(self, tolerance: float = 1e-13) -> bool:
        """Return whether all curves of the two sides agree."""
        losses = np.abs(np.subtract(self.rows("torch"), self.rows("paddle")))
        curves = compare_curves(self.logs["torch"], self.logs["paddle"])
        return bool(losses.max() <= tolerance) and curves.passed


@pytest.fixture
def trained(place: Path, sentences: Path, tmp_path: Path):
    return lambda options="": Trained(
        place, sentences, tmp_path / str(len(os.listdir(tmp_path))), options
    )


@pytest.fixture(scope="module")
def plain(place: Path, sentences: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(place, sentences, tmp_path_factory.mktemp("plain"), "")


def test_plain(plain: Trained) -> None:
    assert plain.agree() and len(plain.rows("torch")) == 5
    assert plain.rows("torch", "epoch") == [0] * 6
    assert plain.rows("torch", "accuracy") == plain.rows("paddle", "accuracy")


CHANGES = {
    "weight decay": ("--weight-decay 0.5", 0.0),
    "constant": ("--scheduler constant", 0.0),
    "cosine": ("--scheduler cosine --warmup 2", 0.0),
    "polynomial": ("--scheduler polynomial --warmup 0.5", 0.0),
    "seed": ("--seed 7", 1e-3),
    "max length": ("--max-length 8", 1e-3),
    "clip": ("--clip 0.1", 0.0),
}


@pytest.mark.parametrize(("options", "first"), CHANGES.values(), ids=CHANGES)
def test_what_changes_the_training(plain: Trained, trained, options: str, first: float) -> None:
    """It changes the losses, from the first one on or later, and on both sides alike."""
    found = trained(options)
    assert found.agree()
    change = np.abs(np.subtract(found.rows("torch"), plain.rows("torch")))
    assert change.max() > 1e-6 and change[0] >= first


@pytest.mark.parametrize(
    "options", ["--batch-size 3 --grad-accum 4", "--batch-size 5 --grad-accum 3"]
)
def test_accumulated_gradients_are_those_of_one_batch(trained, options: str) -> None:
    """Dropout on, sentences of all lengths, a short last batch and a short last part."""
    size = np.prod([int(word) for word in options.split()[1::2]])
    parts, whole = trained(options), trained(f"--batch-size {size}")
    for side in SIDES.values():
        np.testing.assert_allclose(parts.rows(side), whole.rows(side), rtol=0, atol=1e-12)
        for name, weight in whole.weights[side].items():
            np.testing.assert_allclose(parts.weights[side][name], weight, rtol=0, atol=1e-9)


def test_rows_draw_what_the_whole_batch_draws() -> None:
    whole, rows = SharedRandom(1, 2, 3), slice(2, 5)
    part = draw_rows(SharedRandom(1, 2, 3), rows, 7)
    assert (part.uniform((3, 4)) == whole.uniform((7, 4))[rows]).all()
    assert (part.normal((3,)) == whole.normal((7,))[rows]).all()
    assert (part.integers(0, 9, (3, 2)) == whole.integers(0, 9, (7, 2))[rows]).all()
    for draw in (
        lambda: part.uniform((7, 4)),
        lambda: part.uniform(()),
        lambda: part.permutation(3),
    ):
        with pytest.raises(UnsharedDrawError):
            draw()


def test_logs_of_both_kinds(trained, tmp_path: Path) -> None:
    """VisualDL and TensorBoard get every number, in float32; the JSON lines every second step."""
    words = f"--visualdl {tmp_path / 'v'} --tensorboard {tmp_path / 't'} --log-every 2"
    found = trained(words)
    assert found.rows("torch", "step") == [2, 4, 5]
    visualdl, tensorboard = (tmp_path / kind / "torch" / "float64" for kind in "vt")
    assert compare_curves(visualdl, tensorboard).passed
    shown = read_curves(tensorboard).curves["loss"].values
    assert list(shown) == list(np.float32(found.rows("torch")))
    assert compare_curves(visualdl, tmp_path / "v" / "paddle" / "float64").passed


@pytest.mark.parametrize("package", ["visualdl", "tensorboard"])
def test_a_logging_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, place: Path, tmp_path: Path, package: str
) -> None:
    for module in (package, "tensorboard.summary"):
        monkeypatch.setitem(sys.modules, module, None)
    script = importlib.import_module("pipeline.Step5.pt_train_many")
    run = tiny_run(place, "--dtype", "float64", f"--{package}", str(tmp_path))
    with pytest.raises(MissingInputError, match=f"--{package} needs the package {package}"):
        script.main(run)


def test_one_precision_writes_its_records_alone(trained, place: Path) -> None:
    records = [place / "log_reprod" / name for name in ("", "strict")]
    for folder in records:
        (folder / "train_align_torch.npy").unlink(missing_ok=True)
    found = trained()
    assert not (records[0] / "train_align_torch.npy").exists()
    record = load_record(records[1] / "train_align_torch.npy")
    assert record["epoch_0_losses"].tolist() == found.rows("torch")
    names = ["epoch_0_losses", "epoch_0_logits", "epoch_0_accuracy", "acc"]
    assert list(record) == names


@pytest.mark.parametrize("warmup", [0, 3])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_schedules_are_the_same(scheduler: str, warmup: int) -> None:
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=3e-5)
    ours = of_side("pt", "optimizer").build_schedule(optimizer, 10, warmup, scheduler)
    theirs = of_side("pd", "optimizer").build_schedule(3e-5, 10, warmup, scheduler)
    for step in range(11):
        np.testing.assert_allclose(
            theirs.get_lr(), ours.get_last_lr()[0], rtol=1e-12, err_msg=str(step)
        )
        optimizer.step()
        ours.step()
        theirs.step()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("largest", [0.01, 1e6])
def test_clipping_is_paddles_own(dtype: str, largest: float) -> None:
    """The same on both sides, and what ClipGradByGlobalNorm does."""
    ours = torch.nn.Linear(5, 3, dtype=getattr(torch, dtype))
    paddle.set_default_dtype(dtype)
    theirs = paddle.nn.Linear(5, 3)
    values = [np.random.default_rng(0).normal(size=shape).astype(dtype) for shape in ((5, 3), (3,))]
    ours.weight.grad, ours.bias.grad = torch.tensor(values[0].T), torch.tensor(values[1])
    theirs.weight.grad, theirs.bias.grad = map(paddle.to_tensor, values)
    clip = paddle.nn.ClipGradByGlobalNorm(largest)
    pairs = clip([(each, paddle.to_tensor(each.grad.numpy())) for each in theirs.parameters()])
    wanted = [gradient.numpy() for _, gradient in pairs]
    norms = (
        of_side("pt", "optimizer").clip_gradients(ours, largest),
        of_side("pd", "optimizer").clip_gradients(theirs, largest),
    )
    eps = np.finfo(np.float64).eps  # 18 squares added up in any order: 18 * eps, of the root half
    np.testing.assert_allclose(*norms, rtol=9 * eps)
    np.testing.assert_allclose(norms[0], np.sqrt(sum((v.astype("f8") ** 2).sum() for v in values)))
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    for left, right, want in zip(
        (ours.weight.grad.numpy().T, ours.bias.grad.numpy()),
        [each.grad.numpy() for each in theirs.parameters()],
        wanted,
        strict=True,
    ):
        # the norms' difference, or the last digit of the factor in float32
        np.testing.assert_allclose(left, right, rtol=max(11 * eps, 2 * np.finfo(dtype).eps))
        np.testing.assert_allclose(right, want, rtol=tolerance)


def test_gradients_that_are_not_finite_stay_so() -> None:
    ours, theirs = torch.nn.Linear(2, 1), paddle.nn.Linear(2, 1)
    ours.weight.grad = torch.tensor([[torch.nan, 1.0]])
    theirs.weight.grad = paddle.to_tensor([[np.nan], [1.0]])
    for side, layer in (("pt", ours), ("pd", theirs)):
        assert np.isnan(of_side(side, "optimizer").clip_gradients(layer, 1.0))
    assert ours.weight.grad.isnan().all() and theirs.weight.grad.isnan().all()


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_amp_on_torch(place: Path, amp: str) -> None:
    """PyTorch casts on the CPU too: a step runs, near the plain one, and skips what overflowed."""

    losses, criterion = {}, of_side("pt", "model").criterion
    for kind in ("off", amp):
        run = tiny_run(place, "--dtype", "float32")
        options = read_options(run)
        object.__setattr__(options, "amp", kind)
        learner = of_side("pt", "learner").build_learner(
            of_side("pt", "model").load_bert(run, "float32"), options, 4
        )
        fake = load_fake_batch(run)
        batch = {"input_ids": torch.tensor(fake.input_ids), "labels": torch.tensor(fake.labels)}
        (part,) = Shard(slice(0, 4), 4).split(batch, options, (0, 0))
        with learner.forward_pass(part) as forward:
            loss = criterion(forward(**part.inputs), part.labels)
        learner.scaler.scale(loss).backward()
        losses[kind] = loss.item()
        learner.scaler.step(learner.optimizer)
        learner.scaler.update()
        assert learner.scaler.is_enabled() == (kind == "fp16")
    assert 0 < abs(losses[amp] - losses["off"]) < 0.05


def test_paddles_scaler_is_saved(place: Path) -> None:
    """GradScaler does nothing without a GPU; its state is saved as plain numbers all the same."""

    state = {
        "scale": np.array([1024.0], np.float32),
        "incr_count": 3,
        "use_dynamic_loss_scaling": True,
    }
    plain = of_side("pd", "learner")._to_plain
    assert plain(state) == {"scale": 1024.0, "incr_count": 3, "use_dynamic_loss_scaling": True}
    run = tiny_run(place, "--dtype", "float32")
    learner = of_side("pd", "learner").build_learner(paddle.nn.Linear(2, 2), read_options(run), 4)
    assert not learner.scaler.is_enable()


REFUSED = {
    "amp on the CPU": ("--amp bf16", "--amp needs --device gpu"),
    "amp in float64": ("--amp fp16 --device gpu", "--amp needs --dtype float32"),
    "positions": ("--max-length 513", "--max-length 513: this model takes 512 tokens"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_go_together(place: Path, words: str, message: str) -> None:
    with pytest.raises(ReprodError, match=message):
        read_options(tiny_run(place, *words.split()))


@pytest.mark.parametrize("side", SIDES)
def test_a_device_and_a_warmup_that_cannot_be(place: Path, side: str) -> None:
    layer = {"pt": torch.nn, "pd": paddle.nn}[side].Linear(2, 2)
    build = of_side(side, "learner").build_learner
    if not torch.cuda.is_available():
        with pytest.raises(ReprodError, match="--device gpu: .* finds no GPU here"):
            build(layer, read_options(tiny_run(place, "--device", "gpu")), 4)
    with pytest.raises(ReprodError, match="--warmup 4: the whole training has 4 steps"):
        build(layer, read_options(tiny_run(place, "--warmup", "4")), 4)


@pytest.mark.parametrize(
    "words",
    ["--lr 0", "--lr nan", "--clip -1", "--weight-decay x", "--warmup 1.5", "--seed -1",
     "--grad-accum 0", "--scheduler step", "--amp fp8", "--dtype float16", "--max-length 2"],
)  # fmt: skip
def test_bad_values(place: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    with pytest.raises(SystemExit):
        tiny_run(place, *words.split())
    assert f"argument {words.split()[0]}: " in capsys.readouterr().err


def test_command_lines_are_identical() -> None:
    """What --help shows of the options, and what train_pt.sh and train_pd.sh pass on."""
    folder = REPOSITORY / "pipeline" / "Step5"
    for name in ("train_many", "predict"):
        texts = [(folder / f"{side}_{name}.py").read_text() for side in SIDES]
        assert all("add_options" in text and "add_argument" not in text for text in texts)
    shells = [(folder / f"train_{side}.sh").read_text() for side in SIDES]
    shells[0] = shells[0].replace("torch.distributed.run", "paddle.distributed.launch")
    assert shells[0].replace("torch", "paddle").replace("pt", "pd") == shells[1].replace("pt", "pd")


def test_train_sh(place: Path, sentences: Path, tmp_path: Path) -> None:
    """Its options are a training's, the user's win, and SIGTERM reaches the training itself."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    script = REPOSITORY / "pipeline" / "Step5" / "train_pd.sh"
    env = ENVIRONMENT | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [script, "--epochs", "1", "--clip", "2"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    path, *words = done.stdout.split()
    assert Path(path).name == "pd_train_many.py"
    options = read_options(tiny_run(place, *words))
    assert (options.epochs, options.clip, options.batch_size) == (1, 2.0, 32)
    several = env | {"NPROC": "2", "LAUNCH": "--nnodes 3"}
    done = subprocess.run([script], env=several, capture_output=True, text=True, check=True)
    launcher = "-m paddle.distributed.launch --nproc_per_node 2 --nnodes 3 "
    assert done.stdout.startswith(launcher + path) and done.stdout.split()[7:] == words[:-4]


def predicted(side: str, capsys: pytest.CaptureFixture[str], home: Path, *words: str) -> str:
    script = importlib.import_module(f"pipeline.Step5.{side}_predict")
    from pipeline.training.prediction import add_options as add_prediction_options

    parser = make_parser(None)
    add_prediction_options(parser)
    options = parser.parse_args(["--profile", "tiny", "--home", str(home), *words])
    capsys.readouterr()
    script.main(Run(PROFILES["tiny"], home, options))
    return capsys.readouterr().out


def test_predictions(
    plain: Trained, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences of all lengths, symbols and numbers, in batches of two: the same text from both sides."""
    file = tmp_path / "sentences.txt"
    file.write_text(
        "a fine film\n\nit costs £14 , don't\n12\nnull\n" + "good " * 200, encoding="utf-8"
    )
    output = str(plain.logs["torch"].parents[2])
    words = ["very good", "--file", str(file), "--batch-size", "2"]
    for more in ([], ["--checkpoint", output]):
        ours = predicted("pt", capsys, place, *words, *more)
        assert ours == predicted("pd", capsys, place, *words, *more)
        rows = [line.split("\t") for line in ours.splitlines()]
        assert [row[2] for row in rows][:2] == ["a fine film", "it costs £14 , don't"]
        assert len(rows) == 6 and all(0.5 <= float(row[1]) <= 1 for row in rows)
    assert ours != predicted("pt", capsys, place, *words)  # trained, and not


def test_predictions_that_cannot_be(
    plain: Trained, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = str(plain.logs["torch"].parent / "best.safetensors")
    cases = {
        ("no sentence: ", ): (),
        ("side is torch, here it is paddle", ): ("good", "--checkpoint", checkpoint),
        ("holds no checkpoint of paddle", ): ("good", "--checkpoint", str(tmp_path)),
        ("is missing: --checkpoint names", ): ("good", "--checkpoint", str(tmp_path / "none")),
    }  # fmt: skip
    for (message,), words in cases.items():
        with pytest.raises(ReprodError, match=message):
            predicted("pd", capsys, place, *words)
