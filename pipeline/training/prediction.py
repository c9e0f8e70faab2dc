"""The options, sentences and weights of prediction, on both sides."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pipeline.run import Run
from pipeline.tasks import SST2, Task
from pipeline.training.options import add_model_options
from pipeline.training.state import Arrays, model_weights, read_state
from reprod_align.errors import MissingInputError, ReprodError

import numpy as np

NAMES = ("last.safetensors", "best.safetensors")  # the better one last


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of prediction."""
    add_model_options(parser)
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE")
    parser.add_argument("--file", type=Path, help="one sentence a line, in UTF-8")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="PATH",
        help="training's --output, or a checkpoint in it (default: the weights before training)",
    )


def read_sentences(run: Run) -> list[list[str]]:
    """Return the texts of --file, and those of the command line: one, or the task's two, each.

    Raises ReprodError if there are none, or not as many as the task needs.
    """
    lines = _read_lines(run.options.file) if run.options.file else []
    found = [line.strip() for line in (*lines, *run.options.sentences) if line.strip()]
    if not found:
        raise ReprodError("no sentence: give some on the command line, or in --file")
    return [_split_texts(run.task, line) for line in found]


def answer(task: Task, logits: Sequence[float]) -> list[str]:
    """Return what one example's logits (num_labels,) say: label and probability, or the score alone."""
    if not task.labels:
        return [f"{logits[0]:.6f}"]
    powers = np.exp(np.subtract(logits, max(logits)))
    label = int(task.predictions(logits))
    return [task.labels[label], f"{powers[label] / powers.sum():.6f}"]


def _split_texts(task: Task, line: str) -> list[str]:
    names = task.train.texts
    texts = [text.strip() for text in line.split("\t")] if len(names) > 1 else [line]
    if len(texts) != len(names):
        raise ReprodError(
            f"{task.title} takes {len(names)} texts with a tab between, not {line[:40]!r}"
        )
    return texts


def read_trained_weights(run: Run, side: str) -> Arrays | None:
    """Return the weights of --checkpoint, None without it; ReprodError if they are not this side's."""
    if run.options.checkpoint is None:
        return None
    path = _find_checkpoint(run.options.checkpoint, side)
    arrays, facts = read_state(path)
    made_with = {"--task": SST2.name, **facts.get("made_with", {})}
    wanted = {"side": side, "--profile": run.profile.name, "--task": run.task.name}
    for name, value in wanted.items():
        if made_with.get(name) != value:
            raise ReprodError(
                f"{path}: {name.lstrip('-')} is {made_with.get(name)}, here it is {value}"
            )
    return model_weights(arrays)


def _find_checkpoint(path: Path, side: str) -> Path:
    """Return the file that `path` names: of a folder, the best one, float64 rather than float32."""
    if not path.is_dir():
        if not path.is_file():
            raise MissingInputError(f"{path} is missing: --checkpoint names training's --output")
        return path
    names = [path / side / dtype / name for dtype in ("float32", "float64") for name in NAMES]
    found = [name for name in names if name.is_file()]
    if not found:
        raise MissingInputError(f"{path} holds no checkpoint of {side}: train with --output {path}")
    return found[-1]


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ReprodError(f"{path}: expected UTF-8 text: {error}") from error
