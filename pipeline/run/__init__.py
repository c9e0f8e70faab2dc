"""One script's run: its files, what its check compares, and how it ends."""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from models.bert_config import BertConfig
from pipeline import settings
from pipeline.data.corpus import Corpus, find_corpus, find_task_corpus
from pipeline.data.hub import fetch_corpus
from pipeline.profiles import PROFILES, Profile
from pipeline.run.command_line import DEFAULTS, make_parser
from pipeline.tasks import SST2, TASKS, Task
from reprod_align.base.ending import run_command
from reprod_align.errors import MissingInputError, ReprodError

import numpy as np
from numpy.typing import NDArray

SPECIAL_TOKENS = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}
Part = Literal["forward", "loss", "training"]  # what a step is about; each holds those before it
JUDGE = "float64"  # the precision whose records the strict verdict compares


@dataclass(frozen=True)
class Run:
    """What the command line chose. Everything read and written lies under `home`."""

    profile: Profile
    home: Path
    options: argparse.Namespace  # the whole command line: a script's own options too

    # The twin in strict/ first: Paddle keeps memory it once had, and float32 fits into what float64 left
    dtypes = (JUDGE, "float32")

    @property
    def weights(self) -> Path | None:
        """The checkpoint folder of --weights, None for the profile's own."""
        return self.options.weights

    @property
    def task(self) -> Task:
        """The task of --task, which Steps 2 and 5 are about."""
        return TASKS[self.options.task]

    @cached_property
    def corpus(self) -> Corpus:
        """The sentences of Steps 2 and 5, checked."""
        folder = self.options.data_dir
        if self.options.from_hub:
            folder = fetch_corpus(self.task, self.home)
        return find_corpus(folder) if self.task is SST2 else find_task_corpus(self.task, folder)

    @cached_property
    def exported(self) -> Mapping[str, object]:
        """What `torch_bert_weight.py` wrote of the checkpoint: its config.json and two entries of ours."""
        script = "weights/torch_bert_weight.py"
        path = self.needed(self.home / "weights" / "config.json", script)
        exported = _description(path, self.command(script))
        found = exported["profile"]
        if found != self.profile.name:
            raise ReprodError(
                f"{path.parent} holds the weights of profile {found}, not {self.profile.name}: "
                f"add --profile {found}, or first run {self.command(script)}"
            )
        return exported

    def config(self) -> BertConfig:
        """Return the shape of the exported BERT, with as many labels as the task has."""
        _ = self.exported  # refuses the weights of another profile
        exported = BertConfig.from_json_file(self.home / "weights" / "config.json")
        return replace(exported, num_labels=self.task.num_labels)

    @property
    def vocab(self) -> Path:
        """The vocabulary that both tokenizers read, checked."""
        script = "weights/torch_bert_weight.py"
        path = self.needed(self.home / "weights" / "vocab.txt", script)
        require_vocabulary(path, self.config(), f"run {self.command(script)} again")
        return path

    @property
    def do_lower_case(self) -> bool:
        """Whether the tokenizers lower-case the sentences, as the checkpoint's own does."""
        return bool(self.exported["do_lower_case"])

    @property
    def epochs(self) -> int:
        """How often Step 5 goes through the training sentences."""
        return self.options.epochs or self.profile.epochs

    @property
    def torch_weight(self) -> Path:
        """BertModel's state dict in PyTorch's layout."""
        return self.home / "weights" / "torch_weight.bin"

    @property
    def paddle_weight(self) -> Path:
        """BertModel's state dict in Paddle's layout."""
        return self.home / "weights" / "paddle_weight.pdparams"

    @property
    def torch_classifier(self) -> Path:
        """The classifier's weight and bias in PyTorch's layout."""
        return self._classifier("torch_classifier_weights")

    @property
    def paddle_classifier(self) -> Path:
        """The classifier's weight and bias in Paddle's layout."""
        return self._classifier("paddle_classifier_weights")

    def fake_data(self) -> NDArray[np.int64]:
        """Return the fake batch: token ids, int64 of shape (4, 64)."""
        batch, longest = self._fake("fake_data.npy", 2, self.config().vocab_size), self.config()
        if batch.shape[1] > longest.max_position_embeddings:
            raise ReprodError(
                f"the fake batch is {batch.shape[1]} tokens long, this model takes "
                f"{longest.max_position_embeddings}"
            )
        return batch

    def padded_batch(self) -> dict[str, NDArray[np.int64]]:
        """Return the fake batch with padding, a second segment and positions from 1: (4, 64) each.

        What the plain batch leaves at its defaults, so that a model which ignores it is found out.
        """
        input_ids = self.fake_data()
        sentences, length = input_ids.shape
        columns = np.tile(np.arange(length), (sentences, 1))
        mask = (columns < length - 5 * np.arange(sentences)[:, None]).astype(np.int64)
        last = self.config().max_position_embeddings - 1
        return {
            "input_ids": np.where(mask == 1, input_ids, self.config().pad_token_id),
            "attention_mask": mask,
            "token_type_ids": np.where(columns < length // 2, 0, self.config().type_vocab_size - 1),
            "position_ids": np.minimum(columns + 1, last),
        }

    def fake_label(self) -> NDArray[np.int64]:
        """Return the labels of the fake batch: int64 of shape (4,)."""
        if self.task.num_labels != settings.NUM_LABELS:
            raise ReprodError(
                f"the fake batch has {settings.NUM_LABELS} labels, {self.task.title} "
                f"{self.task.num_labels}: run this step without --task"
            )
        labels, sentences = self._fake("fake_label.npy", 1, settings.NUM_LABELS), self.fake_data()
        if len(labels) != len(sentences):
            raise ReprodError(
                f"the fake batch has {len(labels)} labels for {len(sentences)} sentences: "
                f"run {self.command('fake_data/gen_fake_data.py')} again"
            )
        return labels

    def layer_names(self) -> list[str]:
        """Return the layers whose outputs Step 1 compares, in the order of the forward pass."""
        layers = range(self.config().num_hidden_layers)
        encoder = [f"bert.encoder.layer.{number}" for number in layers]
        return ["bert.embeddings", *encoder, "bert.pooler", "classifier"]

    def needed(self, path: Path, script: str) -> Path:
        """Return an input's path; MissingInputError naming the script to run first if it is missing."""
        if not path.is_file():
            raise MissingInputError(f"{path} is missing: first run {self.command(script)}")
        return path

    @property
    def results(self) -> Path:
        """The folder of records and logs; a task other than SST-2 has its own."""
        folder = self.home / "log_reprod"
        return folder if self.task is SST2 else folder / self.task.name

    def output(self, name: str, dtype: str = JUDGE) -> Path:
        """Return where the record `name` ("forward_torch") lies: float32 in `results`, else strict/."""
        return (self.results / "strict" if dtype == JUDGE else self.results) / f"{name}.npy"

    def demo_record(self, number: int) -> Path:
        """Return where reprod_log_demo keeps its two records."""
        return self.home / "log_reprod" / "demo" / f"result_{number}.npy"

    def remove_records(self, name: str) -> None:
        """Remove earlier records `name`, so that a script that fails can't leave them to be judged."""
        for dtype in self.dtypes:
            self.output(name, dtype).unlink(missing_ok=True)

    def command(self, script: str) -> str:
        """Return the command line that runs another script with the same choices."""
        words = ["python", script]
        for name, default in DEFAULTS.items():
            chosen = getattr(self.options, name)
            if chosen != default:
                option = f"--{name.replace('_', '-')}"
                words += [option] if chosen is True else [option, str(chosen)]
        return shlex.join(words)

    def _classifier(self, name: str) -> Path:
        """Return the file of classifier weights; there is one for each number of labels."""
        labels = self.task.num_labels
        suffix = "" if labels == settings.NUM_LABELS else f"_{labels}"
        return self.home / "classifier_weights" / f"{name}{suffix}.bin"

    def _fake(self, name: str, axes: int, below: int) -> NDArray[np.int64]:
        script = "fake_data/gen_fake_data.py"
        path = self.needed(self.home / "fake_data" / name, script)
        try:
            array: NDArray[np.int64] = np.load(path, allow_pickle=False)
        except Exception as error:  # numpy raises half a dozen kinds for a damaged file
            raise ReprodError(f"{path} is damaged: run {self.command(script)} again") from error
        plain = isinstance(array, np.ndarray)  # of a .npz archive it is none
        fits = plain and array.dtype == np.int64 and array.ndim == axes and array.size > 0
        if not (fits and array.min() >= 0 and array.max() < below):
            raise ReprodError(
                f"{path} must hold int64 numbers from 0 to {below - 1} along {axes} axes, which this model "
                f"takes: run {self.command(script)} again"
            )
        return array


def exported_run(home: Path) -> Run:
    """Return the run of whichever profile's weights lie in `home`; ReprodError if there are none."""
    run = _run_with(home=home)
    script = "weights/torch_bert_weight.py"
    path = run.needed(home / "weights" / "config.json", script)
    return _run_with(home=home, profile=_description(path, run.command(script))["profile"])


def _run_with(**choices: object) -> Run:
    """Return a run of these choices, every other one at its default."""
    options = argparse.Namespace(**DEFAULTS | choices)
    return Run(PROFILES[options.profile], options.home, options)


def _description(path: Path, writer: str) -> Mapping[str, object]:
    """Read what `writer`, a command line, wrote about the exported checkpoint."""
    try:
        description: dict[str, object] = json.loads(path.read_text())
        known = description["profile"] in PROFILES
        if not isinstance(description["do_lower_case"], bool):
            raise TypeError("true or false expected")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ReprodError(f"{path} is damaged: run {writer} again") from error
    if not known:
        raise ReprodError(f"{path} names no profile of this version: run {writer} again")
    return description


def require_vocabulary(path: Path, config: BertConfig, remedy: str) -> None:
    """Raise ReprodError unless the file holds the special tokens, and no more words than the model."""
    words = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not SPECIAL_TOKENS <= set(words) or len(words) > config.vocab_size:
        raise ReprodError(
            f"{path} is no vocabulary of this model ({len(words)} words, of which it needs "
            f"{', '.join(sorted(SPECIAL_TOKENS))}): {remedy}"
        )


def start(
    main: Callable[[Run], int | None],
    about: str | None,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
    *,
    writes: str = "",
) -> None:
    """Run a script's `main` on what the command line chose, and exit: 0 done, 2 could not be done.

    `writes` names the records that `main` saves; earlier ones are removed first. Whatever is
    in the way becomes one line on stderr. A check script's `main` returns its exit code.
    """
    parser = make_parser(about)
    add_options(parser)

    def work() -> int | None:
        options = parser.parse_args()
        run = Run(PROFILES[options.profile], options.home, options)
        if writes:
            run.remove_records(writes)
        return main(run)

    sys.exit(run_command(Path(sys.argv[0]).name, work))
