"""Step 5's two trainings, for `reprod-align curves A B --explain pipeline/pair_training.py`.

A and B are the log.jsonl of the two sides in a folder of --output. How they trained is read from the
checkpoints beside them; --save-every and --keep leave some near the step in question. The weights are
those of this repository, or of PIPELINE_HOME=DIR, and the sentences the built-in ones, or those of
PIPELINE_DATA_DIR=DIR.
"""

import argparse
import os
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from pipeline.run import Run, exported_run
from pipeline.run.command_line import REPOSITORY
from pipeline.training.options import TrainingOptions
from pipeline.training.session import made_with
from pipeline.training.state import (
    PROCESSES,
    Facts,
    differences,
    kept_steps,
    read_state,
    require_resumable,
)
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.randomness import SharedRandom

from numpy.typing import NDArray

copy_weights = False


@dataclass
class Trained:
    """The two runs."""

    run: Run
    options: dict[str, TrainingOptions]  # by side: where they differ, that may be the cause
    saved: dict[str, dict[int, Path]]  # "torch" or "paddle" -> step -> checkpoint


trained: Trained


def logs(reference, other):
    """Find out from the checkpoints beside the two logs how the runs trained; refuse other inputs."""
    global trained
    sides = {"torch": reference.parent, "paddle": other.parent}
    facts = {side: _last(folder)[1] for side, folder in sides.items()}
    made = {side: known["made_with"] for side, known in facts.items()}
    _require_one_stream(made)
    home = Path(os.environ.get("PIPELINE_HOME", REPOSITORY)).resolve()
    run = _run(home, made["torch"])
    for side, folder in sides.items():
        _require_same(run, side, folder / "last.safetensors", made[side])
    saved = {side: _saved(folder, facts[side]) for side, folder in sides.items()}
    options = {
        side: replace(_options(found), device="cpu", amp="off") for side, found in made.items()
    }
    trained = Trained(run, options, saved)


def checkpoints():
    """Return the steps after which both sides have a checkpoint."""
    return sorted(trained.saved["torch"].keys() & trained.saved["paddle"].keys())


def draws(step):
    """Return the random numbers of a step, as both trainings drew them."""
    return SharedRandom(trained.options["torch"].seed, *_place("torch", _torch_data(), step))


def torch_batch(step):
    """Return the token ids of a step and its labels, as PyTorch's side reads them."""
    from pipeline.pt.loader import ShardLoader

    data = _torch_data()
    rows = _rows("torch", data, step)
    ((_, batch),) = ShardLoader(data.train, data.tokenizer, len(rows), rows)
    return _split({name: tensor.numpy() for name, tensor in batch.items()})


def paddle_batch(step):
    """Return the token ids of a step and its labels, as Paddle's side reads them."""
    from pipeline.pd.loader import ShardLoader

    data = _paddle_data()
    rows = _rows("paddle", data, step)
    ((_, batch),) = ShardLoader(data.train, data.tokenizer, len(rows), rows)
    return _split({name: tensor.numpy() for name, tensor in batch.items()})


def torch_model():
    """Return PyTorch's model as its training begins."""
    from pipeline.pt.model import load_bert

    return load_bert(trained.run, trained.options["torch"].dtypes[0])


def paddle_model():
    """Return Paddle's model as its training begins."""
    from pipeline.pd.model import load_bert

    return load_bert(trained.run, trained.options["paddle"].dtypes[0])


def torch_loss(logits, labels):
    """Return the loss of a batch."""
    from pipeline.pt.model import criterion

    return criterion(logits, labels)


def paddle_loss(logits, labels):
    """Return the loss of a batch."""
    from pipeline.pd.model import criterion

    return criterion(logits, labels)


def torch_optimizer(model):
    """Return AdamW, which clips the gradients first if the run did; its learner is kept with it."""
    from pipeline.pt.learner import build_learner
    from pipeline.pt.optimizer import clip_gradients

    options = trained.options["torch"]
    learner = build_learner(model, options, options.steps(len(_torch_data().train)))
    return _with_clip(learner, options.clip, clip_gradients)


def paddle_optimizer(model):
    """Return AdamW, which clips the gradients first if the run did; its learner is kept with it."""
    from pipeline.pd.learner import build_learner
    from pipeline.pd.optimizer import clip_gradients

    options = trained.options["paddle"]
    learner = build_learner(model, options, options.steps(len(_paddle_data().train)))
    return _with_clip(learner, options.clip, clip_gradients)


def torch_scheduler(optimizer):
    """Return the schedule that was made with the optimizer."""
    return optimizer.learner.schedule


def paddle_scheduler(optimizer):
    """Return the schedule that was made with the optimizer."""
    return optimizer.learner.schedule


def torch_restore(model, optimizer, step):
    """Load PyTorch's checkpoint of a step."""
    _restore("torch", optimizer, step)


def paddle_restore(model, optimizer, step):
    """Load Paddle's checkpoint of a step."""
    _restore("paddle", optimizer, step)


def _restore(side: str, optimizer, step: int) -> None:
    arrays, facts = read_state(trained.saved[side][step])
    optimizer.learner.restore(arrays, facts["learner"])


def _with_clip(learner, largest, clip_gradients):
    optimizer = learner.optimizer
    optimizer.learner = learner
    if largest is not None:
        step = optimizer.step

        def clipped_step():
            clip_gradients(learner.model, largest)
            step()

        optimizer.step = clipped_step
    return optimizer


def _last(folder: Path):
    path = folder / "last.safetensors"
    if not path.is_file():
        raise MissingInputError(
            f"{path} is missing: the logs must be log.jsonl of the sides' folders in --output"
        )
    state = read_state(path)
    require_resumable(path, *state)
    return state


def _saved(folder: Path, facts: Facts) -> dict[int, Path]:
    return {facts["position"][1]: folder / "last.safetensors", **kept_steps(folder)}


def _run(home: Path, made: Facts) -> Run:
    """Return the run of the weights in `home`, with the choices that tell where the inputs are."""
    run = exported_run(home)
    folder = os.environ.get("PIPELINE_DATA_DIR")
    chosen = {
        "data_dir": Path(folder).resolve() if folder else None,
        "task": made.get("--task", run.options.task),
        "epochs": made["--epochs"],
    }
    return replace(run, options=argparse.Namespace(**vars(run.options) | chosen))


def _options(made: Facts) -> TrainingOptions:
    """Return the options that a checkpoint was made with; what it does not tell is None."""
    names = [field.name for field in fields(TrainingOptions)]
    options = TrainingOptions(**{name: made.get(f"--{name.replace('_', '-')}") for name in names})
    return replace(options, dtypes=(made["--dtype"],))


def _require_same(run: Run, side: str, path: Path, found: Facts) -> None:
    """Raise ReprodError unless the checkpoint is of this side, these options and these files."""
    if found.get("--randomness") == "native":
        raise ReprodError(
            f"{path}: trained with --randomness native, whose draws cannot be repeated"
        )
    made = made_with(run, _options(found), Path(side, found["--dtype"]))
    told = {name: found[name] for name in (PROCESSES, "--randomness") if name in found}
    other = ", ".join(differences(found, made | told))
    if other:
        raise ReprodError(
            f"{path} was made with {other}: PIPELINE_HOME and PIPELINE_DATA_DIR must be where that "
            "run's files are"
        )


def _require_one_stream(made: dict[str, Facts]) -> None:
    """Raise ReprodError if the two sides drew from other seeds: then nothing of a step is comparable."""
    seeds = [found["--seed"] for found in made.values()]
    if seeds[0] != seeds[1]:
        raise ReprodError(
            f"the logs' runs were made with --seed {seeds[0]} and {seeds[1]}: "
            "train both with the same one"
        )


def _place(side: str, data, step: int) -> tuple[int, int]:
    """Return the epoch of a step, and its number in it."""
    options = trained.options[side]
    return divmod(step - 1, options.steps(len(data.train)) // options.epochs)


def _rows(side: str, data, step: int) -> list[int]:
    """Return which sentences a step trains on, by the order in which a side visits them."""
    options, (epoch, number) = trained.options[side], _place(side, data, step)
    size = options.examples_per_step
    rows = data.order(options, epoch)[number * size : (number + 1) * size]
    if not rows:
        raise IndexError(f"the training has no step {step}")
    return rows


def _split(batch: dict[str, NDArray]) -> tuple[dict[str, NDArray], NDArray]:
    return batch, batch.pop("labels")


@cache
def _torch_data():
    from pipeline.pt.loader import load_examples, load_tokenizer
    from pipeline.pt.sentences import Sentences

    longest, tokenizer = trained.options["torch"].max_length, load_tokenizer(trained.run)
    return Sentences(tokenizer, load_examples(trained.run.corpus.train, tokenizer, longest), {})


@cache
def _paddle_data():
    from pipeline.pd.loader import load_examples, load_tokenizer
    from pipeline.pd.sentences import Sentences

    longest, tokenizer = trained.options["paddle"].max_length, load_tokenizer(trained.run)
    return Sentences(tokenizer, load_examples(trained.run.corpus.train, tokenizer, longest), {})
