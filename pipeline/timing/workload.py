"""The workload that pt_perf.py and pd_perf.py time: options, batches, a stopwatch, and the result."""

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeVar

from models.bert_config import BertConfig
from pipeline import settings
from pipeline.run import Run, positive
from pipeline.training.options import DEVICES
from reprod_align.base.files import write_json
from reprod_align.errors import ReprodError

import numpy as np

Item = TypeVar("Item")
Phase = Literal["data", "forward", "backward", "optimizer"]
PHASES: tuple[Phase, ...] = ("data", "forward", "backward", "optimizer")
_LONGEST = 1e12  # milliseconds that a phase can take: 30 years
WARM_UP = 2  # first steps, not counted: the frameworks allocate memory and optimizer state in them


@dataclass(frozen=True)
class Workload:
    """The timed work: `steps` training steps of `batch_size` sentences of `length` tokens."""

    profile: str
    steps: int
    batch_size: int
    length: int


@dataclass
class Stopwatch:
    """Milliseconds of every phase of every step, first steps included.

    `wait` returns when the device has done what it was given: a GPU's calls return before that.
    """

    wait: Callable[[], object] = lambda: None
    milliseconds: dict[Phase, list[float]] = field(
        default_factory=lambda: {phase: [] for phase in PHASES}
    )

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Time the block as this step's `name`, until the device has done its work."""
        start = time.perf_counter()
        yield
        self.wait()
        self.milliseconds[name].append(1000 * (time.perf_counter() - start))

    def data(self, batches: Iterable[Item]) -> Iterator[Item]:
        """Yield the batches, and time how long each takes to come."""
        remaining = iter(batches)
        while True:
            start = time.perf_counter()
            try:
                batch = next(remaining)
            except StopIteration:
                return
            self.milliseconds["data"].append(1000 * (time.perf_counter() - start))
            yield batch


@dataclass(frozen=True)
class Speed:
    """One side's result: the phases of its counted steps, in milliseconds, and its peak memory."""

    workload: Workload
    device: str
    fast: str  # what makes this side faster, "" for the plain one
    threads: str  # OMP_NUM_THREADS, "" where it is not set
    peak_mb: float
    milliseconds: dict[Phase, list[float]]

    @property
    def sentences_per_second(self) -> float:
        """Of the median step, all phases together."""
        steps = [sum(phases) for phases in zip(*self.milliseconds.values(), strict=True)]
        return 1000 * self.workload.batch_size / median(steps)

    @property
    def tokens_per_second(self) -> float:
        """Of the median step; the sentences are not padded."""
        return self.sentences_per_second * self.workload.length

    def per_phase(self) -> dict[Phase, float]:
        """Return the milliseconds of every phase, median over the steps."""
        return {phase: median(self.milliseconds[phase]) for phase in PHASES}

    def line(self, side: str) -> str:
        """Return the result in one line."""
        phases = ", ".join(f"{phase} {each:.1f} ms" for phase, each in self.per_phase().items())
        return (
            f"{side}: {self.sentences_per_second:.1f} sentences/s, {self.tokens_per_second:.0f} tokens/s; "
            f"{phases}; {self.peak_mb:.0f} MB"
        )


def add_options(parser: argparse.ArgumentParser, ways: Sequence[str]) -> None:
    """Add the options of a perf script; `ways` are those in which its side can be faster."""
    add_workload(parser)
    parser.add_argument(
        "--fast", choices=ways, default="", help="what makes this side faster: docs/performance.md"
    )


def add_workload(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is timed."""
    parser.add_argument("--steps", type=positive, default=8, help="training steps to time")
    parser.add_argument("--batch-size", type=positive, default=32, help="sentences of a step")
    parser.add_argument("--length", type=positive, default=64, help="tokens of a sentence")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="where both sides run")


def read_workload(run: Run) -> Workload:
    """Return what the command line asks to time."""
    chosen = run.options
    return Workload(run.profile.name, chosen.steps, chosen.batch_size, chosen.length)


def list_options(workload: Workload) -> list[str]:
    """Return the command line's words for this workload, without the profile."""
    names = ("steps", "batch_size", "length")
    chosen = [(name.replace("_", "-"), getattr(workload, name)) for name in names]
    return [word for name, value in chosen for word in (f"--{name}", str(value))]


def draw_examples(workload: Workload, config: BertConfig) -> list[dict[str, Any]]:
    """Return random tokenized sentences for all steps, without padding: the same on both sides.

    Raises ReprodError if they are longer than the model takes.
    """
    longest = config.max_position_embeddings
    if workload.length > longest:
        raise ReprodError(f"--length {workload.length}: this model takes at most {longest} tokens")
    count = (WARM_UP + workload.steps) * workload.batch_size
    source = np.random.default_rng(settings.SEED)
    ids = source.integers(1, config.vocab_size, (count, workload.length)).tolist()
    labels = source.integers(0, config.num_labels, count).tolist()
    segments, mask = [0] * workload.length, [1] * workload.length
    return [
        {"input_ids": row, "token_type_ids": segments, "attention_mask": mask, "labels": label}
        for row, label in zip(ids, labels, strict=True)
    ]


def save_speed(run: Run, name: str, watch: Stopwatch, peak_bytes: int) -> Speed:
    """Write what the stopwatch measured to log_reprod/strict/`name`.json, and return it.

    `peak_bytes` is the most memory that the device held; on a CPU the process tells, so 0 will do.
    """
    counted = {phase: values[WARM_UP:] for phase, values in watch.milliseconds.items()}
    speed = Speed(
        read_workload(run),
        run.options.device,
        run.options.fast,
        os.environ.get("OMP_NUM_THREADS", ""),
        (peak_bytes or _process_peak()) / 2**20,
        counted,
    )
    write_json(speed_file(run, name), speed)
    return speed


def _process_peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 2**10  # macOS counts bytes, Linux KiB


def load_speed(run: Run, name: str) -> Speed:
    """Return what `save_speed` wrote; ReprodError if the file is missing or damaged."""
    path = speed_file(run, name)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        speed = Speed(**content | {"workload": Workload(**content["workload"])})
        require_counted(speed)
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ReprodError(f"{path} is missing or damaged: {error}") from error
    return speed


def require_counted(speed: Speed) -> None:
    """Raise ValueError unless every phase was timed in every step, in numbers that can be times."""
    sizes = (speed.workload.steps, speed.workload.batch_size, speed.workload.length)
    if not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError("steps, batch size and length must be whole numbers above 0")
    texts = (speed.workload.profile, speed.threads, speed.device, speed.fast)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("its profile, threads, device or fast is not as the script writes it")
    if set(speed.milliseconds) != set(PHASES):
        raise ValueError(f"times of {', '.join(PHASES)} are expected")
    for phase in PHASES:
        _require_times(speed.milliseconds[phase], phase)
        counted = len(speed.milliseconds[phase])
        if counted != speed.workload.steps:
            raise ValueError(f"{counted} of {speed.workload.steps} steps have a time for {phase}")
    _require_times([speed.peak_mb], "the peak memory")


def _require_times(values: object, what: str) -> None:
    kinds = (int, float)
    if not isinstance(values, list) or not all(
        type(value) in kinds and 0 < value < _LONGEST for value in values
    ):
        raise ValueError(f"{what}: numbers above 0 are expected")


def speed_file(run: Run, name: str) -> Path:
    """Return where a perf result lies."""
    return run.output(name).with_suffix(".json")
