"""What Step 5 trains and measures on, in Paddle. pt_sentences.py is its twin."""

from dataclasses import dataclass

from pipeline.pd.loader import load_examples, load_tokenizer, native_order
from pipeline.run import Run
from pipeline.training.measures import dev_files
from pipeline.training.native import NATIVE, native_seed
from pipeline.training.options import TrainingOptions
from pipeline.training.ranks import Ranks, first_then_others
from reprod_align.randomness import epoch_order

from paddlenlp.datasets import MapDataset
from paddlenlp.transformers import BertTokenizer


@dataclass
class Sentences:
    """The sentences of a task, as token ids."""

    tokenizer: BertTokenizer
    train: MapDataset
    dev: dict[str, MapDataset]  # by their prefix in the record

    def order(self, options: TrainingOptions, epoch: int) -> list[int]:
        """Return the order of the training sentences in an epoch."""
        if options.randomness == NATIVE:
            return native_order(self.train, native_seed(options.seed, epoch))
        return epoch_order(len(self.train), options.seed, epoch)


def load_sentences(run: Run, options: TrainingOptions, ranks: Ranks) -> Sentences:
    """Read and tokenize the sentences."""
    tokenizer, longest = load_tokenizer(run), options.max_length
    train, dev = first_then_others(ranks, lambda: (run.corpus.train, dev_files(run)))
    return Sentences(
        tokenizer,
        load_examples(train, tokenizer, longest),
        {name: load_examples(path, tokenizer, longest) for name, path in dev.items()},
    )
