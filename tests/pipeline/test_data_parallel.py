"""Several processes train as one does: the same curve from the same global batch, dropout on."""

import fcntl
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.training import processes
from pipeline.training.processes import Processes as Alone
from pipeline.training.shards import Shards, restore_order, take_shard
from pipeline.training.state import model_weights, read_state
from reprod_align.errors import ReprodError
from reprod_align.records import load_record
from tests.conftest import ENVIRONMENT, PATIENCE, REPOSITORY
from tests.pipeline.runs import slow_down, tiny_run, write_sentences

import numpy as np
import paddle
import pytest
import torch

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
SIDES = {"pt": "torch", "pd": "paddle"}
# a step's batch is 15 sentences, so the last of 31 is alone: one of two processes gets none
OPTIONS = "--dtype float64 --epochs 2 --batch-size 5 --grad-accum 3 --lr 1e-3 --clip 1 --warmup 1"
STEPS = 6
TOLERANCE = 1e-12

# The frameworks are imported once: the processes of a training are forks
FORKS = """
import importlib, json, os, runpy, signal, sys, traceback
plan = json.loads(sys.argv[1])
importlib.import_module(plan["imported"])
exec(plan["fault"])
children = []
for process in plan["processes"]:
    child = os.fork()
    if child:
        children.append(child)
        continue
    os.environ.update(process["environment"])
    for number, path in enumerate(process["said"], 1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    sys.argv = process["words"]
    code = 1
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
print(json.dumps(children), flush=True)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def environments(side: str, world: int) -> Iterator[dict[str, str]]:
    """Yield what torchrun and paddle.distributed.launch put into each process's environment."""
    ports = free_ports(world)
    endpoints = [f"127.0.0.1:{port}" for port in ports]
    for rank in range(world):
        if side == "pt":
            yield {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(ports[0]),
            }
        else:
            yield {
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_RANK_IN_NODE": str(rank),
                "PADDLE_TRAINERS_NUM": str(world),
                "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
                "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
            }


@dataclass
class Processes:
    """A training in several processes, each with a home and an --output of its own, as on two machines."""

    side: str
    folder: Path
    parent: subprocess.Popen[str]
    children: list[int]

    def finish(self) -> list[int]:
        """Return the exit codes."""
        out, _ = self.parent.communicate(timeout=PATIENCE)
        return json.loads(out.splitlines()[-1])

    def said(self, rank: int) -> tuple[str, str]:
        """Return stdout and stderr of one process."""
        out, err = ((self.folder / f"{name}{rank}").read_text() for name in ("out", "err"))
        return out, err

    def output(self, rank: int = 0, dtype: str = "float64") -> Path:
        return self.folder / f"output{rank}" / SIDES[self.side] / dtype

    def home(self, rank: int) -> Path:
        return self.folder / f"home{rank}"


Start = Callable[..., Processes]


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentences(tmp_path_factory.mktemp("sentences"), 31, 13)


@pytest.fixture
def start(aligned_home: Path, sentences: Path, tmp_path: Path) -> Start:
    """Start a training in `world` processes; `fault` is code that runs before it, to break it."""

    def start(
        side: str, world: int = 2, options: str = OPTIONS, fault: str = "", data: Path = sentences
    ) -> Processes:
        script = REPOSITORY / "pipeline" / "Step5" / f"{side}_train_many.py"
        plan = {"imported": f"pipeline.Step5.{side}_train_many", "fault": fault, "processes": []}
        for rank, environment in enumerate(environments(side, world)):
            home, output = tmp_path / f"home{rank}", tmp_path / f"output{rank}"
            if not home.exists():
                shutil.copytree(
                    aligned_home, home, ignore=shutil.ignore_patterns("log_reprod", "*.npz")
                )
            words = [str(script), "--profile", "tiny", *options.split(), "--home", str(home)]
            words += ["--data-dir", str(data), "--output", str(output)]
            said = [str(tmp_path / f"{name}{rank}") for name in ("out", "err")]
            process = {"environment": environment, "words": words, "said": said}
            plan["processes"].append(process)
        parent = subprocess.Popen(
            [sys.executable, "-c", FORKS, json.dumps(plan)],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        return Processes(side, tmp_path, parent, json.loads(parent.stdout.readline()))

    return start


def rows(log: Path, key: str = "loss") -> list[float]:
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [row[key] for row in found if key in row]


@pytest.fixture(scope="module")
def alone(
    aligned_home: Path, sentences: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Return the folder of each side's training in one process; its home is beside."""
    folder, found = tmp_path_factory.mktemp("alone"), {}
    for side, name in SIDES.items():
        home = Path(shutil.copytree(aligned_home, folder / f"home_{side}"))
        words = [*OPTIONS.split(), "--data-dir", str(sentences), "--output", str(folder / side)]
        importlib.import_module(f"pipeline.Step5.{side}_train_many").main(tiny_run(home, *words))
        found[side] = folder / side / name / "float64"
    torch.set_default_dtype(torch.float32)
    paddle.set_default_dtype("float32")
    return found


def record(home: Path, side: str) -> dict[str, np.ndarray]:
    return load_record(home / "log_reprod" / "strict" / f"train_align_{SIDES[side]}.npy")


def furthest(log: Path, other: Path) -> float:
    """Return by how much two curves part."""
    return float(np.abs(np.subtract(rows(log), rows(other))).max())


@pytest.mark.parametrize("side", SIDES)
def test_two_processes_train_as_one(side: str, start: Start, alone: dict[str, Path]) -> None:
    """Every loss, the norms, the dev set's logits and the weights; and the first process alone writes."""
    training = start(side)
    assert training.finish() == [0, 0], training.said(0)[1] + training.said(1)[1]
    log = training.output() / "log.jsonl"
    assert len(rows(log)) == STEPS
    for other in alone.values():
        assert furthest(log, other / "log.jsonl") < TOLERANCE
        norms = np.subtract(rows(log, "grad_norm"), rows(other / "log.jsonl", "grad_norm"))
        assert np.abs(norms).max() < 1e-11
    wanted, found = record(alone[side].parents[2] / f"home_{side}", side), None
    found = record(training.home(0), side)
    assert list(found) == list(wanted) and len(found["epoch_1_logits"]) == 13
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=TOLERANCE, err_msg=name)
    arrays, facts = read_state(training.output() / "last.safetensors")
    for name, weight in model_weights(read_state(alone[side] / "last.safetensors")[0]).items():
        np.testing.assert_allclose(arrays[name], weight, rtol=0, atol=1e-9, err_msg=name)
    assert facts["made_with"]["processes"] == 2
    assert training.said(0)[0].startswith(f"{SIDES[side]} float64: best accuracy ")
    assert training.said(0)[1] == ""
    assert training.said(1) == ("", "")
    assert not training.output(1).exists() and not (training.home(1) / "log_reprod").exists()


# --- small parts ---------------------------------------------------------------------------------


class Rank(Alone):
    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world


@pytest.mark.parametrize("world", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("examples", [1, 2, 5, 6, 16])
def test_shards_are_the_batch(world: int, examples: int) -> None:
    """Every example is one process's, in order, and counts once; sizes differ by one at most."""
    shards = [take_shard(examples, Rank(rank, world)) for rank in range(world)]
    counted = [shard for shard in shards if shard.counts]
    assert [row for shard in counted for row in range(examples)[shard.rows]] == [*range(examples)]
    sizes = [len(range(examples)[shard.rows]) for shard in shards]
    assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1
    shares = [shard.share(slice(0, size)) for shard, size in zip(shards, sizes, strict=True)]
    assert sum(shares) == pytest.approx(1.0, abs=1e-15)


def test_gathered_rows_are_in_order() -> None:
    """Nothing twice, nothing left out: also where a process got no row of a batch."""
    order, gathered = np.arange(9), []
    loader = [{"labels": torch.tensor(order[start : start + 4])} for start in range(0, 9, 4)]
    for rank in range(3):
        batches = Shards(loader, Rank(rank, 3), "cpu")
        rows = [(shard.counts, batch["labels"].tolist()) for shard, batch in batches]
        gathered.append([own if counts else [] for counts, own in rows])
    assert restore_order(gathered) == order.tolist() and len(batches) == 3


def test_one_process_speaks(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    """The first that fails says why; a process that only sees the others go says nothing of its own."""
    monkeypatch.setattr(processes, "PATIENCE", 0.0)

    class Last(Rank):
        def is_first_to_fail(self) -> bool:
            return False

    with pytest.raises(SystemExit) as ended, processes.let_one_speak(Last(1, 2)):
        raise ReprodError("a file is missing")
    assert ended.value.code == processes.FAILED
    with pytest.raises(ReprodError, match="a file is missing"), processes.let_one_speak(Rank(1, 2)):
        raise ReprodError("a file is missing")
    with pytest.raises(ReprodError, match="another process of this training has ended"):
        with processes.let_one_speak(Rank(0, 2)):
            raise RuntimeError("gloo/transport/tcp/pair.cc:553] Connection closed by peer")
    with pytest.raises(RuntimeError, match="shapes"), processes.let_one_speak(Rank(0, 2)):
        raise RuntimeError("shapes differ")  # a bug stays one


# --- what ends a training ------------------------------------------------------------------------

# a step takes milliseconds here: without a pause every signal would come after the training
SLOW = slow_down(0.2)
FILES = ("log.jsonl", "last.safetensors", "best.safetensors")


def wait_for_lines(log: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not log.is_file() or log.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, "no training"
        time.sleep(0.005)


def lines_of(training: Processes) -> list[str]:
    """Return what all processes said on stderr, a line each."""
    return [line for rank in (0, 1) for line in training.said(rank)[1].splitlines()]


@pytest.mark.longer
@pytest.mark.parametrize("side", SIDES)
def test_stopped_and_taken_up_again(side: str, start: Start) -> None:
    """`kill -9` of one process, then of both, SIGTERM to one: as if nothing had been, bit by bit."""
    saved = f"{OPTIONS} --save-every 2"
    whole = start(side, options=saved)
    assert whole.finish() == [0, 0]
    expected = {name: (whole.output() / name).read_bytes() for name in FILES}
    shutil.rmtree(whole.folder / "output0")
    for lines, victims in enumerate([(1,), (0,), (0, 1)], 2):
        training = start(side, options=saved, fault=SLOW)
        wait_for_lines(training.output() / "log.jsonl", lines)
        for victim in victims:
            os.kill(training.children[victim], signal.SIGKILL)
        codes = training.finish()
        assert [codes[victim] for victim in victims] == [-signal.SIGKILL] * len(victims)
        assert 0 not in codes
        said = lines_of(training)
        if victims == (1,):
            assert len(said) == 1 and "another process of this training has ended" in said[0]
        else:
            assert said == []
    training = start(side, options=saved, fault=SLOW)
    wait_for_lines(
        training.output() / "log.jsonl", 5
    )  # each time a line more: the last ones are there
    os.kill(training.children[1], signal.SIGTERM)  # the first one hears of it
    assert training.finish() == [143, 143]
    (said,) = lines_of(training)
    assert said.startswith("terminated after step ")
    training = start(side, options=saved)
    assert training.finish() == [0, 0]
    assert training.said(0)[0].startswith("goes on after step ")
    found = {name: (training.output() / name).read_bytes() for name in FILES}
    assert [name for name in FILES if found[name] != expected[name]] == []
    training = start(side, world=3, options=saved)
    assert training.finish() == [2, 2, 2]
    (said,) = lines_of(training)
    assert "was made with processes 2 instead of 3: give what it was made with" in said


@pytest.mark.longer
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("options", "broken", "message"),
    [
        ("--amp bf16", None, "--amp needs --device gpu"),
        ("--lr 0", None, "argument --lr: 0 is not a number above 0"),
        ("--warmup 90", None, "--warmup 90: the whole training has 6 steps"),
        ("", 0, "is missing: first run python"),
        ("", 1, "is missing: first run python"),
        ("--device gpu", None, "finds no GPU here"),
    ],
)
def test_what_is_wrong_is_said_once(
    side: str, start: Start, tmp_path: Path, aligned_home: Path, options: str, broken, message
) -> None:
    if broken is not None:
        shutil.copytree(aligned_home, tmp_path / f"home{broken}")
        shutil.rmtree(tmp_path / f"home{broken}" / "classifier_weights")
    training = start(side, options=f"{OPTIONS} {options}")
    assert training.finish() == [2, 2]
    said = lines_of(training)
    assert message in said[-1] and "Traceback" not in "".join(said)
    assert len(said) == 1 or "usage:" in said[0]
    assert (tmp_path / f"err{1 - (broken or 0)}").read_text() == ""


FAULTS = {
    "the mean of the processes' means": (
        "from pipeline.training.shards import Shard\n"
        "Shard.share = lambda self, rows: 0.5 * (rows.stop - rows.start) / (self.rows.stop - self.rows.start)"
    ),
    "masks of its own": (
        "from pipeline.training.shards import Shard\nShard.draws = lambda self, whole, rows: whole"
    ),
    "padded to its own longest": (
        "from pipeline.training.shards import Shards\n"
        "pad = Shards.__iter__\n"
        "def cut(self):\n"
        "    for shard, batch in pad(self):\n"
        "        longest = int(batch['attention_mask'].sum(1).max())\n"
        "        wide = {name: rows for name, rows in batch.items() if rows.ndim > 1}\n"
        "        yield shard, batch | {name: rows[:, :longest] for name, rows in wide.items()}\n"
        "Shards.__iter__ = cut"
    ),
    "gradients stay where they are": (
        "from pipeline.{side}.processes import Launched\n"
        "Launched.wrap = lambda self, model: type('Bare', (), dict(\n"
        "    __call__=lambda _, **inputs: model(**inputs),\n"
        "    no_sync=lambda _: __import__('contextlib').nullcontext()))()"
    ),
}


@pytest.mark.longer
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_faults_are_seen(side: str, fault: str, start: Start, alone: dict[str, Path]) -> None:
    """What the comparison of curves is for: each of these moves it by far more than its tolerance."""
    training = start(side, fault=fault.replace("{side}", side))
    assert training.finish() == [0, 0], training.said(0)[1]
    assert furthest(training.output() / "log.jsonl", alone[side] / "log.jsonl") > 1e-6


@pytest.mark.longer
@pytest.mark.parametrize("side", SIDES)
def test_three_processes(side: str, start: Start, alone: dict[str, Path]) -> None:
    training = start(side, world=3)
    assert training.finish() == [0, 0, 0], training.said(0)[1]
    assert furthest(training.output() / "log.jsonl", alone[side] / "log.jsonl") < TOLERANCE


# --- the launchers -------------------------------------------------------------------------------


def launched(side: str, folder: Path, home: Path, data: Path, slow: bool = True) -> list[str]:
    """Return the command of a user, with every step slowed down if asked for."""
    launcher = (
        "torch.distributed.run --master_port {}" if side == "pt" else "paddle.distributed.launch"
    )
    words = ["-m", *launcher.format(*free_ports(1)).split(), "--nproc_per_node", "2"]
    words += ["--log_dir", str(folder / "launcher")] if side == "pd" else []
    script = str(REPOSITORY / "pipeline" / "Step5" / f"{side}_train_many.py")
    words += [script, "--profile", "tiny", *OPTIONS.split(), "--save-every", "2"]
    words += ["--home", str(home), "--data-dir", str(data), "--output", str(folder / "output")]
    (folder / "sitecustomize.py").write_text(SLOW if slow else "")
    return [sys.executable, *words]


def wait_for_end(log: Path) -> None:
    """Wait until the log is no longer any process's."""
    with log.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)


@pytest.mark.longer
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_launcher_that_is_stopped(
    side: str, number: int, home: Path, sentences: Path, alone: dict[str, Path], tmp_path: Path
) -> None:
    """Its processes end with it and leave a checkpoint, and the same command goes on from there."""
    log = tmp_path / "output" / SIDES[side] / "float64" / "log.jsonl"
    env = ENVIRONMENT | {"PYTHONPATH": str(tmp_path)}
    with (tmp_path / "said").open("w") as said:
        words = launched(side, tmp_path, home, sentences)
        process = subprocess.Popen(words, env=env, stdout=said, stderr=said, cwd=tmp_path)
        wait_for_lines(log, 3)
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) != 0
    last, deadline = log.parent / "last.safetensors", time.monotonic() + PATIENCE
    while read_state(last)[1]["position"][1] < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(rows(log)) == read_state(last)[1]["position"][1] < STEPS
    wait_for_end(log)
    words = launched(side, tmp_path, home, sentences, slow=False)
    done = subprocess.run(
        words, env=env, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert "goes on after step " in done.stdout + done.stderr
    assert len(rows(log)) == STEPS and furthest(log, alone[side] / "log.jsonl") < TOLERANCE
