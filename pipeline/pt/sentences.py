"""What Step 5 trains and measures on: the sentences of a task, and the batches of this process."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline import settings
from pipeline.pt.loader import data_loader, draw_native_order, load_examples, load_tokenizer
from pipeline.pt.model import use_device
from pipeline.run import Run
from pipeline.training.options import NATIVE, TrainingOptions
from pipeline.training.processes import ALONE, Processes, run_first_alone
from pipeline.training.record import list_dev_files
from pipeline.training.shards import Shards, native_seed
from reprod_align.randomness import epoch_order

from datasets import Dataset
from transformers import BertTokenizerFast


@dataclass
class Sentences:
    """The sentences of a task, as token ids."""

    tokenizer: BertTokenizerFast
    train: Dataset
    dev: dict[str, Dataset]  # by their prefix in the record
    options: TrainingOptions
    processes: Processes = ALONE

    def train_batches(self, epoch: int, done: int = 0) -> Shards:
        """Return what each optimizer step of an epoch trains on, after the first `done` examples."""
        order = self._order(epoch)[done:]
        return self._load(self.train, self.options.examples_per_step, order)

    def dev_batches(self, name: str) -> Shards:
        """Return the batches of a dev set, in its own order."""
        return self._load(self.dev[name], settings.EVAL_BATCH_SIZE * self.processes.world)

    def _order(self, epoch: int) -> list[int]:
        if self.options.randomness == NATIVE:
            return draw_native_order(self.train, native_seed(self.options.seed, epoch))
        return epoch_order(len(self.train), self.options.seed, epoch)

    def _load(self, examples: Dataset, size: int, order: Sequence[int] | None = None) -> Shards:
        batches = data_loader(examples, self.tokenizer, size, order)
        return Shards(batches, self.processes, use_device(self.options.device))


def load_sentences(run: Run, options: TrainingOptions, processes: Processes) -> Sentences:
    """Read and tokenize the sentences."""
    tokenizer, longest = load_tokenizer(run), options.max_length
    train, dev = run_first_alone(processes, lambda: (run.corpus.train, list_dev_files(run)))
    return Sentences(
        tokenizer,
        load_examples(train, tokenizer, longest),
        {name: load_examples(path, tokenizer, longest) for name, path in dev.items()},
        options,
        processes,
    )
