"""A training that can be stopped at any moment and goes on as if it had not been.

A checkpoint holds all that the next step depends on, in one file: model, optimizer, schedule, the
position in the data, and how long the log was. The random stream needs no state: it is keyed by seed,
epoch and step. Of several processes, the first one alone writes and reads.
"""

import math
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TypeVar

from pipeline.bert.exported import description_file, find_vocabulary, weight_files
from pipeline.run import Run
from pipeline.settings import STRICT_DTYPE
from pipeline.tasks import SST2
from pipeline.training.log import JsonLines, Log, open_boards
from pipeline.training.options import NATIVE, TrainingOptions
from pipeline.training.processes import ALONE, Processes
from pipeline.training.record import Measured, list_dev_files, native_record, official
from pipeline.training.shards import Part, Shard
from pipeline.training.state import (
    PROCESSES,
    Arrays,
    Facts,
    keep_step,
    list_kept_steps,
    model_weights,
    read_state,
    require_resumable,
    require_same,
    select,
    write_state,
)
from reprod_align import Recorder
from reprod_align.errors import ReprodError
from reprod_align.records.gate import digest

import numpy as np
from tqdm import tqdm

TERMINATED = 128 + signal.SIGTERM  # the exit code
Batch = TypeVar("Batch")
State = tuple[Arrays, Facts]


class Learner(Protocol):
    """What an optimizer step changes; learner.py of each side saves and restores it."""

    def state(self) -> tuple[Arrays, Facts]:
        """Return it as arrays and JSON."""

    def restore(self, arrays: Arrays, facts: Facts) -> None:
        """Take back what `state` returned."""


class Session:
    """The position in a training, its curves, its log and its checkpoints."""

    def __init__(
        self,
        run: Run,
        options: TrainingOptions,
        name: Path,
        learner: Learner,
        processes: Processes = ALONE,
    ) -> None:
        """Start, or go on from the checkpoint in --output. `name` is the side and the dtype.

        Raises ReprodError if the checkpoint was made with other options, weights, sentences or processes.
        """
        self.run, self.options, self.name, self.processes = run, options, name, processes
        self._learner = learner
        self.epoch = self.step = self.step_of_epoch = 0
        self.curves: dict[str, Any] = {}  # what the record of Step 5 holds
        self._folder = options.output / name if options.output and not processes.rank else None
        self._made_with = describe_training(run, options, name, processes) if self._folder else {}
        self._lines: JsonLines | None = None
        self._terminated = False
        self._logs: list[Log] = []
        try:
            state = self._open(self._folder) if self._folder else None
            if not processes.rank and options.output:  # what lies there is another training's
                default_log(run, options, name).unlink(missing_ok=True)
            elif not processes.rank:
                self._logs.append(JsonLines(default_log(run, options, name), 0))
            if not processes.rank:
                self._logs += open_boards(options, name)
            if options.output:
                self._restore(processes.broadcast(state))
        except ReprodError:
            self._close()
            raise

    @property
    def examples_done(self) -> int:
        """How many examples of this epoch have been trained on."""
        return self.step_of_epoch * self.options.examples_per_step

    @property
    def results(self) -> list[float]:
        """The task's main metric after each epoch so far: of SST-2 the accuracy."""
        metric = self.run.task.main_metric
        return [self.curves[f"epoch_{epoch}_{metric}"] for epoch in range(self.epoch)]

    def best(self) -> dict[str, float]:
        """Return the results of the epoch with the best main metric, as the official record names them."""
        start = f"epoch_{self.results.index(max(self.results))}_"
        found = {
            name.removeprefix(start): value
            for name, value in self.curves.items()
            if name.startswith(start)
        }
        return {official(name): value for name, value in found.items() if isinstance(value, float)}

    def __enter__(self) -> Self:
        """From here on, SIGTERM saves and stops."""
        if self.options.output:
            self._handler = signal.signal(signal.SIGTERM, self._on_sigterm)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close the logs."""
        self._close()
        if self.options.output:
            signal.signal(signal.SIGTERM, self._handler)

    def epochs(self) -> Iterator[int]:
        """Yield the epochs that are not at their end yet, the present one first."""
        while self.epoch < self.options.epochs:
            yield self.epoch

    def steps(self, batches: Collection[tuple[Shard, dict[str, Any]]]) -> Iterator[Iterator[Part]]:
        """Yield the parts of the batch of every step that this epoch still has, and show the progress."""
        quiet = True if self.processes.rank else None  # None: unless the screen is a terminal
        title = f"{self.name.parts[0]} epoch {self.epoch}"
        for shard, batch in tqdm(batches, desc=title, disable=quiet):
            yield shard.split(batch, self.options, (self.epoch, self.step_of_epoch))

    def watch(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches, and stop in between if SIGTERM came."""
        for batch in batches:
            self._stop_if_asked()
            yield batch

    def end_step(self, loss: float, **numbers: float) -> None:
        """Count an optimizer step, log its loss and `numbers`, and save if it is time.

        loss: this process's share of it.
        """
        (loss,) = self.processes.add_up([loss])
        self.curves.setdefault(f"epoch_{self.epoch}_losses", []).append(loss)
        self.step, self.step_of_epoch = self.step + 1, self.step_of_epoch + 1
        if self.step % self.options.log_every == 0:
            self._log(loss=loss, **numbers)
        if self.options.save_every and self.step % self.options.save_every == 0:
            self._save()
        self._stop_if_asked()

    def end_epoch(self, measured: Measured) -> None:
        """Log what was measured after an epoch, keep the best model and go on to the next epoch."""
        best = max(self.results, default=-math.inf)
        for name, values in (measured.logits | measured.scores).items():
            self.curves[f"epoch_{self.epoch}_{name}"] = values
        self._log(**measured.scores)
        metric = self.run.task.main_metric
        result = measured.scores[metric]
        if self._folder and result > best:
            weights = model_weights(self._learner.state()[0])
            facts = {"made_with": self._made_with, "step": self.step, metric: result}
            write_state(self._folder / "best.safetensors", weights, facts)
        self.epoch, self.step_of_epoch = self.epoch + 1, 0
        self._save()
        self._stop_if_asked()

    def _log(self, **numbers: float) -> None:
        for log in self._logs:
            log.write(self.step, self.epoch, numbers)

    def _close(self) -> None:
        for log in self._logs:
            log.close()

    def _open(self, folder: Path) -> State | None:
        """Open the log; return the checkpoint to go on from, if there is one."""
        last = folder / "last.safetensors"
        state = read_state(last) if self.options.resume and last.is_file() else None
        if state:
            require_same(last, state[1].get("made_with", {}), self._made_with)
            require_resumable(last, *state)
        self._lines = JsonLines(folder / "log.jsonl", state[1]["log_bytes"] if state else 0)
        self._logs.append(self._lines)
        for rest in folder.glob(".*.tmp"):  # of a run that was killed while it wrote
            rest.unlink()
        if state:
            print(f"goes on after step {state[1]['position'][1]}: {last}")
        else:
            for name in ("last.safetensors", "best.safetensors"):
                (folder / name).unlink(missing_ok=True)
            for path in list_kept_steps(folder).values():
                path.unlink()
        return state

    def _restore(self, state: State | None) -> None:
        if state is None:
            return
        arrays, facts = state
        self._learner.restore(arrays, facts["learner"])
        curves = select(arrays, "curves")
        self.curves = {name: curves[name].tolist() for name in facts["curves"]}
        self.epoch, self.step, self.step_of_epoch = facts["position"]

    def _save(self) -> None:
        if self._folder is None or self._lines is None or self.step == 0:
            return
        arrays, facts = self._learner.state()
        curves = {f"curves/{name}": np.asarray(values) for name, values in self.curves.items()}
        position = {
            "made_with": self._made_with,
            "learner": facts,
            "position": [self.epoch, self.step, self.step_of_epoch],
            "curves": list(self.curves),
            "log_bytes": self._lines.sync(),
        }
        write_state(self._folder / "last.safetensors", arrays | curves, position)
        keep_step(self._folder, self.step, self.options.keep)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        self._terminated = True  # the step at work is finished first: half of it can't be saved

    def _stop_if_asked(self) -> None:
        if self.options.output and any(self.processes.add_up([self._terminated])):
            self._save()
            if self._folder:
                print(f"terminated after step {self.step}, which is saved", file=sys.stderr)
            sys.exit(TERMINATED)


def default_log(run: Run, options: TrainingOptions, name: Path) -> Path:
    """Return where the log goes without --output: beside the records, since a submission has both."""
    seed = f"_seed{options.seed}" if options.randomness == NATIVE else ""
    return run.results / "training" / f"{'_'.join(name.parts)}{seed}.jsonl"


def describe_training(
    run: Run, options: TrainingOptions, name: Path, processes: Processes = ALONE
) -> Facts:
    """Return what a training depends on: side and dtype, options, and the digests of its inputs."""
    side = name.parts[0]
    exported = (find_vocabulary(run), description_file(run), *weight_files(run, side))
    inputs = (run.corpus.train, *list_dev_files(run).values(), *exported)
    chosen = {"--profile": run.profile.name, "--dtype": name.name, **options.as_chosen()}
    if run.task is not SST2:
        chosen["--task"] = run.task.name
    if options.randomness == NATIVE:
        chosen["--randomness"] = NATIVE
    if processes.world > 1:  # other numbers of processes add up in another order
        chosen[PROCESSES] = processes.world
    return {"side": side, **chosen, **{path.name: digest(path) for path in inputs}}


def save_training(session: Session, dev: Mapping[str, Iterable[Any]]) -> None:
    """Record the best epoch's result and print it, in the first process.

    In float64 and native mode the record also holds every loss, metric and logit.
    """
    if session.processes.rank:
        return
    run, (side, dtype) = session.run, session.name.parts
    native = session.options.randomness == NATIVE
    record = Recorder(
        native_record(run, side) if native else run.output(f"train_align_{side}", dtype)
    )
    if native:
        for name, examples in dev.items():
            record.add(f"{name}labels", [example["labels"] for example in examples])
    if native or dtype == STRICT_DTYPE:
        record.add_all(session.curves)
    record.add_all(session.best())
    record.save()
    print(f"{side} {dtype}: best {run.task.main_metric} {max(session.results):.4f}")
