"""The options of Step 5's training, the same on both sides. The defaults are the pipeline's own training."""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import settings
from pipeline.bert.exported import read_config
from pipeline.run import Run, positive
from pipeline.training.processes import quieten_unless_first
from reprod_align.errors import ReprodError

SCHEDULERS = ("linear", "constant", "cosine", "polynomial")
DEVICES = ("cpu", "gpu")
PRECISIONS = ("off", "bf16", "fp16")  # of --amp
NATIVE = "native"  # each framework's own dropout and shuffling, for runs over several seeds
RANDOMNESS = ("shared", NATIVE)


@dataclass(frozen=True)
class TrainingOptions:
    """How to train. A step sees `batch_size * grad_accum` examples, `batch_size` at a time."""

    epochs: int
    batch_size: int
    max_length: int
    lr: float
    weight_decay: float
    scheduler: str
    warmup: int | float  # steps, or a share below 1 of all of them
    seed: int
    randomness: str  # "native": each framework draws by itself
    grad_accum: int
    clip: float | None  # the largest global norm of the gradients
    device: str
    amp: str
    dtypes: tuple[str, ...]
    log_every: int
    save_every: int | None  # steps; None: at the end of each epoch alone
    keep: int  # so many checkpoints stay beside the last one
    output: Path | None
    resume: bool
    visualdl: Path | None
    tensorboard: Path | None

    @property
    def examples_per_step(self) -> int:
        """How many examples one optimizer step sees, but for an epoch's last."""
        return self.batch_size * self.grad_accum

    def steps(self, examples: int) -> int:
        """Return how many optimizer steps the training takes on so many examples."""
        return self.epochs * math.ceil(examples / self.examples_per_step)

    def warmup_steps(self, steps: int) -> int:
        """Return how many of `steps` warm up; ReprodError if all of them would."""
        share = isinstance(self.warmup, float)
        warmup = int(self.warmup * steps) if share else int(self.warmup)
        if warmup >= steps:
            raise ReprodError(f"--warmup {self.warmup}: the whole training has {steps} steps")
        return warmup

    def optimizer_options(self, steps: int) -> dict[str, Any]:
        """Return what `build_optimizer` takes beside the model, for a training of `steps`."""
        return {
            "learning_rate": self.lr,
            "steps": steps,
            "warmup": self.warmup_steps(steps),
            "scheduler": self.scheduler,
            "weight_decay": self.weight_decay,
        }

    def as_chosen(self) -> dict[str, Any]:
        """Return what changes a run's numbers, or its log, under the names of the command line."""
        names = ("epochs", "batch_size", "max_length", "lr", "weight_decay", "scheduler", "warmup")
        names += ("seed", "grad_accum", "clip", "device", "amp", "log_every")
        return {f"--{name.replace('_', '-')}": getattr(self, name) for name in names}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of training; `--epochs` is every script's already."""
    quieten_unless_first(parser)
    add_model_options(parser)
    numbers: dict[str, tuple[Callable[[str], Any], Any, str]] = {
        "lr": (_above_zero, None, "learning rate (default: the profile's)"),
        "weight-decay": (_from_zero, settings.WEIGHT_DECAY, "of AdamW (default: %(default)s)"),
        "warmup": (_warmup, settings.WARMUP_PROPORTION, "steps, or a share below 1 of them all"),
        "seed": (_whole, settings.SEED, "of batch order and dropout (default: %(default)s)"),
        "grad-accum": (positive, 1, "batches to one optimizer step (default: %(default)s)"),
        "clip": (_above_zero, None, "largest global norm of the gradients (default: any)"),
        "log-every": (positive, 1, "steps to a line of the log (default: %(default)s)"),
        "save-every": (
            positive,
            None,
            "steps from one checkpoint to the next (default: an epoch's)",
        ),
        "keep": (_whole, 0, "checkpoints that stay beside the last, for `curves --explain`"),
    }
    for name, (kind, default, text) in numbers.items():
        parser.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=text)
    parser.add_argument("--scheduler", choices=SCHEDULERS, default="linear")
    parser.add_argument("--randomness", choices=RANDOMNESS, default=RANDOMNESS[0],
                        help="native: each framework's own, recorded in log_reprod/native/")  # fmt: skip
    parser.add_argument("--amp", choices=PRECISIONS, default="off", help="needs --device gpu")
    parser.add_argument("--resume", action=argparse.BooleanOptionalAction, default=True)
    folders = {
        "output": "where log and checkpoints go, and where a stopped run is taken up again",
        "visualdl": "write the log for VisualDL, too",
        "tensorboard": "write the log for TensorBoard, too",
    }
    for name, text in folders.items():
        parser.add_argument(f"--{name}", type=_path, metavar="DIR", help=text)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add what training and prediction have in common."""
    parser.add_argument(
        "--batch-size", type=positive, default=settings.TRAIN_BATCH_SIZE, metavar="N"
    )
    parser.add_argument("--max-length", type=_length, default=settings.MAX_LENGTH, metavar="N",
                        help="tokens; longer sentences are cut (default: %(default)s)")  # fmt: skip
    parser.add_argument("--device", choices=DEVICES, default="cpu")


def read_options(run: Run) -> TrainingOptions:
    """Return what the command line chose; ReprodError for what does not go together."""
    chosen = vars(run.options)
    if chosen["amp"] != "off" and chosen["device"] == "cpu":
        raise ReprodError("--amp needs --device gpu: Paddle's auto_cast has no effect on the CPU")
    if chosen["amp"] != "off" and chosen["dtype"] != "float32":
        raise ReprodError("--amp needs --dtype float32: a float64 run has nothing to cast")
    check_length(run)
    names = TrainingOptions.__dataclass_fields__.keys() - {"epochs", "lr", "dtypes"}
    dtypes = run.dtypes
    if chosen["randomness"] == NATIVE and len(dtypes) > 1:
        dtypes = ("float32",)  # there is one record for each seed, and nothing to judge strictly
    return TrainingOptions(
        epochs=chosen["epochs"] or run.profile.epochs,
        lr=chosen["lr"] or run.profile.learning_rate,
        dtypes=dtypes,
        **{name: chosen[name] for name in names},
    )


def check_length(run: Run) -> None:
    """Raise ReprodError if the model has no positions for --max-length tokens."""
    longest = read_config(run).max_position_embeddings
    asked = getattr(
        run.options, "max_length", settings.MAX_LENGTH
    )  # a plain script lacks the option
    if asked > longest:
        raise ReprodError(f"--max-length {asked}: this model takes {longest} tokens")


def _whole(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is not a whole number from 0")
    return int(word)


def _length(word: str) -> int:
    if _whole(word) < 3:
        raise argparse.ArgumentTypeError(f"{word} leaves no room between [CLS] and [SEP]")
    return int(word)


def _from_zero(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{word} is not a number from 0")
    return number


def _above_zero(word: str) -> float:
    if _from_zero(word) == 0.0:
        raise argparse.ArgumentTypeError(f"{word} is not a number above 0")
    return float(word)


def _warmup(word: str) -> int | float:
    if word.isdecimal():
        return int(word)
    if _from_zero(word) >= 1.0:
        raise argparse.ArgumentTypeError(f"{word} is neither a number of steps nor a share below 1")
    return float(word)


def _path(word: str) -> Path:
    return Path(word).resolve()
