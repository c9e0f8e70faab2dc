"""A training that is stopped goes on as if it had not been: log, record and weights to the last bit."""

import fcntl
import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.training.options import read_options
from pipeline.training.record import Measured
from pipeline.training.session import Session
from pipeline.training.state import Arrays, Facts, read_state, write_state
from reprod_align.errors import ReprodError
from tests.conftest import ENVIRONMENT, PATIENCE, REPOSITORY
from tests.pipeline.runs import slow_down, tiny_run, write_sentences
from tests.warm import warm_executable

import numpy as np
import pytest

SIDES = {"pt": "torch", "pd": "paddle"}
STEPS = 20  # of the training below: two epochs of 40 sentences
FILES = ("log.jsonl", "last.safetensors", "best.safetensors")
KILLS = 3
# a step takes two milliseconds here: without a pause every kill would come before or after the training
SLOW = slow_down(0.05)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentences(tmp_path_factory.mktemp("sentences"), 40, 10)


@pytest.fixture(scope="module", params=SIDES)
def side(request: pytest.FixtureRequest) -> str:
    return request.param


def command(side: str, home: Path, sentences: Path, output: Path, fault: str = "") -> list[str]:
    """Return the training with everything that needs to be restored."""
    options = "--profile tiny --dtype float32 --epochs 2 --batch-size 2 --grad-accum 2 --clip 1"
    options += " --scheduler cosine --warmup 3 --lr 1e-3 --save-every 3"
    script = REPOSITORY / "pipeline" / "Step5" / f"{side}_train_many.py"
    words = [str(script), *options.split(), "--home", str(home), "--data-dir", str(sentences)]
    words += ["--output", str(output)]
    code = f"{fault}\nimport runpy, sys; sys.argv = sys.argv[1:]\n"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return [str(warm_executable()), "-c", code, *words]


def trained(words: list[str]) -> str:
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stopped(words: list[str], number: int, ready: Callable[[], bool]) -> tuple[int, str]:
    """Send a training a signal when it is ready; return its exit code and what it said on stderr."""
    process = subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def lines(folder: Path) -> int:
    log = folder / "log.jsonl"
    return log.read_bytes().count(b"\n") if log.is_file() else 0


def losses(folder: Path) -> int:
    return (folder / "log.jsonl").read_bytes().count(b'"loss"')


def contents(folder: Path, record: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in [*(folder / name for name in FILES), record]}


@pytest.fixture(scope="module")
def uninterrupted(
    side: str, aligned_home: Path, sentences: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, dict[str, bytes]]:
    """Return a home, the sentences, and the files of a training that nobody stopped."""
    home = tmp_path_factory.mktemp(side) / "home"
    shutil.copytree(aligned_home, home)
    trained(command(side, home, sentences, home / "whole"))
    record = home / "log_reprod" / f"train_align_{SIDES[side]}.npy"
    return home, sentences, contents(home / "whole" / SIDES[side] / "float32", record)


def test_stopped_at_random_moments(side: str, uninterrupted, tmp_path: Path) -> None:
    """`kill -9` at the n-th line of the log or a moment later, again and again, and SIGTERM at last."""
    home, sentences, expected = uninterrupted
    folder = tmp_path / SIDES[side] / "float32"
    chance = random.Random(f"{side} 4")
    *killed, ended = sorted(chance.sample(range(1, STEPS - 1), KILLS + 1))
    slow = command(side, home, sentences, tmp_path, SLOW)
    for reached in killed:
        code, _ = stopped(slow, signal.SIGKILL, lambda least=reached: lines(folder) >= least)
        assert code == -signal.SIGKILL and reached <= lines(folder) <= STEPS
    code, said = stopped(slow, signal.SIGTERM, lambda: lines(folder) >= ended)
    assert code == 143 and "terminated after step" in said
    step = read_state(folder / "last.safetensors")[1]["position"][1]
    assert step == losses(folder) >= ended - 1  # a line may be an accuracy
    said = trained(command(side, home, sentences, tmp_path))
    assert f"goes on after step {step}: " in said
    found = contents(folder, home / "log_reprod" / f"train_align_{SIDES[side]}.npy")
    assert [name for name in expected if found[name] != expected[name]] == []
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_the_log(uninterrupted) -> None:
    _, _, expected = uninterrupted
    rows = [json.loads(line) for line in expected["log.jsonl"].splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == list(range(1, STEPS + 1))
    assert [(row["step"], row["epoch"]) for row in rows if "accuracy" in row] == [(10, 0), (20, 1)]
    assert rows[0].keys() == {"step", "epoch", "loss", "lr", "grad_norm"}


class Counter:
    """A learner whose only weight is the number of its steps."""

    def __init__(self) -> None:
        self.steps = 0

    def state(self) -> tuple[Arrays, Facts]:
        return {"weight": np.array([self.steps])}, {"steps": self.steps}

    def restore(self, arrays: Arrays, facts: Facts) -> None:
        self.steps = facts["steps"]
        assert arrays["weight"] == self.steps


Train = Callable[..., Counter]


@pytest.fixture
def train(aligned_home: Path, tmp_path: Path) -> Train:
    """A training of two epochs of five steps that may be cut short, under the options given."""

    def train(*words: str, stop_after: int = 10) -> Counter:
        run = tiny_run(aligned_home, "--epochs", "2", "--output", str(tmp_path), *words)
        learner = Counter()
        with Session(run, read_options(run), Path("torch", "float32"), learner) as session:
            for _ in session.epochs():
                while session.step_of_epoch < 5:
                    if session.step == stop_after:
                        return learner
                    learner.steps += 1
                    session.end_step(1 / learner.steps, lr=0.1)
                session.end_epoch(
                    Measured({"logits": [[0.0, 1.0]]}, {"accuracy": learner.steps / 100})
                )
        return learner

    return train


def test_position_and_log_go_together(train: Train, tmp_path: Path) -> None:
    """The checkpoint is of step 6, the log of step 9: what the log has more is cut, and made again."""
    folder = tmp_path / "torch" / "float32"
    train("--save-every", "3", stop_after=8)
    assert lines(folder) == 9 and read_state(folder / "last.safetensors")[1]["position"] == [
        1,
        6,
        1,
    ]
    with (folder / "log.jsonl").open("ab") as log:
        log.write(b'{"step": 9, "ep')
    (folder / ".0123456789abcdef.tmp").touch()  # of a run that was killed while it wrote
    assert train("--save-every", "4").steps == 10
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10]
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert read_state(folder / "best.safetensors")[1]["accuracy"] == 0.1


def test_a_finished_training_takes_no_further_step(train: Train) -> None:
    train()
    assert train(stop_after=0).steps == 10
    assert train("--no-resume", stop_after=0).steps == 0


REFUSED = {
    "another option": (["--lr", "2e-3"], "--lr 3e-05 instead of 0.002"),
    "two of them": (["--seed", "1", "--clip", "2"], "--seed 42 instead of 1, --clip None instead of 2.0"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "said"), REFUSED.values(), ids=REFUSED)
def test_a_checkpoint_of_other_options(train: Train, options: list[str], said: str) -> None:
    train()
    with pytest.raises(ReprodError, match="last.safetensors was made with") as caught:
        train(*options)
    assert f"made with {said}: give what it was made with" in str(caught.value)
    assert "\n" not in str(caught.value)
    train(*options, "--no-resume")


@pytest.mark.parametrize("name", ["torch_weight.bin", "train.tsv", "config.json"])
def test_a_checkpoint_of_other_inputs(train: Train, tmp_path: Path, name: str) -> None:
    train()
    path = tmp_path / "torch" / "float32" / "last.safetensors"
    arrays, facts = read_state(path)
    facts["made_with"][name] = "another digest"
    write_state(path, arrays, facts)
    with pytest.raises(ReprodError, match=f"was made with another {name}: "):
        train()


def test_damage(train: Train, tmp_path: Path) -> None:
    train()
    folder = tmp_path / "torch" / "float32"
    with (folder / "log.jsonl").open("r+b") as log:
        log.truncate(10)
    with pytest.raises(ReprodError, match="log.jsonl has 10 bytes, its checkpoint knows"):
        train()
    path = folder / "last.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ReprodError, match="is damaged, or not a checkpoint of Step 5"):
        train()


def test_two_trainings_in_one_folder(train: Train, tmp_path: Path) -> None:
    train()
    with (tmp_path / "torch" / "float32" / "log.jsonl").open("ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        with pytest.raises(ReprodError, match="is another run's, which is still training"):
            train()


def test_state_file_is_one_that_safetensors_reads(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "b": np.array(2.5),
        "c/d": np.array([1]),
    }
    write_state(tmp_path / "x.safetensors", arrays, {"step": 1})
    found, facts = read_state(tmp_path / "x.safetensors")
    assert facts == {"step": 1} and found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
