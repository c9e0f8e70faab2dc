"""Step 5's two trainings, for `reprod-align curves A B --explain pipeline/pair_training.py`.

A and B are the log.jsonl of the two sides in a folder of --output. How they trained is read from the
checkpoints beside them; --save-every and --keep leave some near the step in question. The weights are
those of this repository, or of PIPELINE_HOME=DIR, and the sentences the built-in ones, or those of
PIPELINE_DATA_DIR=DIR.
"""

import argparse
import os
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeline.bert.exported import find_exported_run
from pipeline.run import REPOSITORY, Run
from pipeline.training.options import TrainingOptions
from pipeline.training.session import describe_training
from pipeline.training.state import (
    PROCESSES,
    Facts,
    differences,
    list_kept_steps,
    read_state,
    require_resumable,
)
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.randomness import SharedRandom

copy_weights = False
_ROOMS = {"torch": "pt", "paddle": "pd"}


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
    facts = {side: _read_last(folder)[1] for side, folder in sides.items()}
    made = {side: known["made_with"] for side, known in facts.items()}
    _require_one_stream(made)
    home = Path(os.environ.get("PIPELINE_HOME", REPOSITORY)).resolve()
    run = _find_run(home, made["torch"])
    for side, folder in sides.items():
        _require_same(run, side, folder / "last.safetensors", made[side])
    saved = {
        side: {facts[side]["position"][1]: folder / "last.safetensors", **list_kept_steps(folder)}
        for side, folder in sides.items()
    }
    options = {
        side: replace(_read_options(found), device="cpu", amp="off") for side, found in made.items()
    }
    trained = Trained(run, options, saved)


def checkpoints():
    """Return the steps after which both sides have a checkpoint."""
    return sorted(trained.saved["torch"].keys() & trained.saved["paddle"].keys())


def draws(step):
    """Return the random numbers of a step, as both trainings drew them."""
    return SharedRandom(trained.options["torch"].seed, *_find_place("torch", step))


def _load_batch(side, step):
    """Return the token ids of a step and its labels, as one side reads them."""
    epoch, number = _find_place(side, step)
    done = number * trained.options[side].examples_per_step
    for _, batch in _load_sentences(side).train_batches(epoch, done):
        arrays = {name: tensor.numpy() for name, tensor in batch.items()}
        return arrays, arrays.pop("labels")
    raise IndexError(f"the training has no step {step}")


def _build_model(side):
    """Return a side's model as its training begins."""
    return _module(side, "model").load_bert(trained.run, trained.options[side].dtypes[0])


def _compute_loss(side, logits, labels):
    """Return the loss of a batch."""
    return _module(side, "model").criterion(logits, labels)


def _build_optimizer(side, model):
    """Return AdamW, which clips the gradients first if the run did; its learner is kept with it."""
    options = trained.options[side]
    steps = options.steps(len(_load_sentences(side).train))
    learner = _module(side, "learner").build_learner(model, options, steps)
    optimizer = learner.optimizer
    optimizer.learner = learner
    if options.clip is not None:
        step, clip_gradients = optimizer.step, _module(side, "optimizer").clip_gradients

        def clip_and_step():
            clip_gradients(model, options.clip)
            step()

        optimizer.step = clip_and_step
    return optimizer


def _find_scheduler(optimizer):
    """Return the schedule that was made with the optimizer."""
    return optimizer.learner.schedule


def _restore(side, model, optimizer, step):
    """Load a side's checkpoint of a step."""
    arrays, facts = read_state(trained.saved[side][step])
    optimizer.learner.restore(arrays, facts["learner"])


torch_model, paddle_model = (partial(_build_model, side) for side in _ROOMS)
torch_batch, paddle_batch = (partial(_load_batch, side) for side in _ROOMS)
torch_loss, paddle_loss = (partial(_compute_loss, side) for side in _ROOMS)
torch_optimizer, paddle_optimizer = (partial(_build_optimizer, side) for side in _ROOMS)
torch_scheduler = paddle_scheduler = _find_scheduler
torch_restore, paddle_restore = (partial(_restore, side) for side in _ROOMS)


def _module(side: str, name: str) -> Any:
    """Return a module of pipeline/pt or pipeline/pd, imported only where its framework is needed."""
    return import_module(f"pipeline.{_ROOMS[side]}.{name}")


@cache
def _load_sentences(side: str) -> Any:
    run, options, loader = trained.run, trained.options[side], _module(side, "loader")
    tokenizer = loader.load_tokenizer(run)
    train = loader.load_examples(run.corpus.train, tokenizer, options.max_length)
    return _module(side, "sentences").Sentences(tokenizer, train, {}, options)


def _find_place(side: str, step: int) -> tuple[int, int]:
    """Return the epoch of a step, and its number in it."""
    options = trained.options[side]
    return divmod(step - 1, options.steps(len(_load_sentences(side).train)) // options.epochs)


def _read_last(folder: Path) -> tuple[Any, Facts]:
    path = folder / "last.safetensors"
    if not path.is_file():
        raise MissingInputError(
            f"{path} is missing: the logs must be log.jsonl of the sides' folders in --output"
        )
    state = read_state(path)
    require_resumable(path, *state)
    return state


def _find_run(home: Path, made: Facts) -> Run:
    """Return the run of the weights in `home`, with the choices that say where the inputs are."""
    run = find_exported_run(home)
    folder = os.environ.get("PIPELINE_DATA_DIR")
    chosen = {
        "data_dir": Path(folder).resolve() if folder else None,
        "task": made.get("--task", run.options.task),
        "epochs": made["--epochs"],
    }
    return replace(run, options=argparse.Namespace(**vars(run.options) | chosen))


def _read_options(made: Facts) -> TrainingOptions:
    """Return the options that a checkpoint was made with; those that it does not hold are None."""
    names = [field.name for field in fields(TrainingOptions)]
    options = TrainingOptions(**{name: made.get(f"--{name.replace('_', '-')}") for name in names})
    return replace(options, dtypes=(made["--dtype"],))


def _require_same(run: Run, side: str, path: Path, found: Facts) -> None:
    """Raise ReprodError unless the checkpoint is of this side, these options and these files."""
    if found.get("--randomness") == "native":
        raise ReprodError(
            f"{path}: trained with --randomness native, whose draws cannot be repeated"
        )
    made = describe_training(run, _read_options(found), Path(side, found["--dtype"]))
    as_found = {name: found[name] for name in (PROCESSES, "--randomness") if name in found}
    other = ", ".join(differences(found, made | as_found))
    if other:
        raise ReprodError(
            f"{path} was made with {other}: PIPELINE_HOME and PIPELINE_DATA_DIR must be where that "
            "run's files are"
        )


def _require_one_stream(made: dict[str, Facts]) -> None:
    """Raise ReprodError if the two sides drew from other seeds: then their steps cannot be compared."""
    seeds = [found["--seed"] for found in made.values()]
    if seeds[0] != seeds[1]:
        raise ReprodError(
            f"the logs' runs were made with --seed {seeds[0]} and {seeds[1]}: "
            "train both with the same one"
        )
