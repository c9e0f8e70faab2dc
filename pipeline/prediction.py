"""What predicts labels, on both sides: which sentences, and which weights."""

import argparse
from pathlib import Path

from pipeline.run import Run
from pipeline.saved_state import Arrays, model_weights, read_state
from pipeline.training_options import add_model_options
from reprod_align.errors import MissingInputError, ReprodError

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


def sentences(run: Run) -> list[str]:
    """Return the sentences of --file, and those of the command line; ReprodError if there are none."""
    lines = _lines(run.options.file) if run.options.file else []
    found = [line.strip() for line in (*lines, *run.options.sentences) if line.strip()]
    if not found:
        raise ReprodError("no sentence: give some on the command line, or in --file")
    return found


def trained_weights(run: Run, side: str) -> Arrays | None:
    """Return the weights of --checkpoint, None without it; ReprodError if they are not this side's."""
    if run.options.checkpoint is None:
        return None
    path = _checkpoint(run.options.checkpoint, side)
    arrays, facts = read_state(path)
    made_with = facts["made_with"]
    wanted = {"side": side, "--profile": run.profile.name}
    for name, value in wanted.items():
        if made_with[name] != value:
            raise ReprodError(
                f"{path}: {name.lstrip('-')} is {made_with[name]}, here it is {value}"
            )
    return model_weights(arrays)


def _checkpoint(path: Path, side: str) -> Path:
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


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ReprodError(f"{path} is no UTF-8 text: {error}") from error
