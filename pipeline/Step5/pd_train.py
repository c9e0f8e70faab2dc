"""Step 5, Paddle side: fine-tune on real sentences, dropout on.

reads   pipeline/Step2/demo_sst2_sentence/          train.tsv and dev.tsv, or those of --data-dir
        weights/paddle_weight.pdparams              and the classifier's weights
writes  log_reprod/train_align_paddle.npy           the best accuracy on dev.tsv, float32
        log_reprod/strict/train_align_paddle.npy    the same in float64, every loss and accuracy
        log_reprod/native/train_align_paddle_seed42.npy    instead of both, with --randomness native
pair    pt_train.py                                 the same lines with PyTorch's calls
"""

from dataclasses import dataclass
from pathlib import Path

from pipeline import settings
from pipeline.measures import Measured, dev_files
from pipeline.native import NATIVE, native_record, native_seed, remove_records
from pipeline.pd_checkpoint import Learner, build_learner
from pipeline.pd_loader import ShardLoader, load_examples, load_tokenizer, native_order
from pipeline.pd_model import load_bert
from pipeline.pd_ranks import joined
from pipeline.pd_train_loop import evaluate, train_epoch
from pipeline.ranks import Ranks, first_then_others
from pipeline.run import JUDGE, Run, start
from pipeline.training_options import TrainingOptions, add_options, training_options
from pipeline.training_session import Session
from reprod_align import Recorder
from reprod_align.randomness import epoch_order

from paddlenlp.datasets import MapDataset
from paddlenlp.transformers import BertTokenizer


@dataclass
class Data:
    """The sentences, as token ids."""

    tokenizer: BertTokenizer
    train: MapDataset
    dev: dict[str, MapDataset]  # by their prefix in the record


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks.

    With --randomness native each side shuffles and drops out by itself.
    """
    remove_records(run, "paddle")
    with joined(run.options.device) as ranks:
        options = training_options(run)
        data = load_data(run, options, ranks)
        for dtype in options.dtypes:
            results = fine_tune(run, options, dtype, data, ranks)
            if not ranks.rank:
                print(f"paddle {dtype}: best {run.task.main_metric} {max(results):.4f}")


def load_data(run: Run, options: TrainingOptions, ranks: Ranks) -> Data:
    """Read and tokenize the sentences."""
    tokenizer, longest = load_tokenizer(run), options.max_length
    train, dev = first_then_others(ranks, lambda: (run.corpus.train, dev_files(run)))
    return Data(
        tokenizer,
        load_examples(train, tokenizer, longest),
        {name: load_examples(path, tokenizer, longest) for name, path in dev.items()},
    )


def fine_tune(
    run: Run, options: TrainingOptions, dtype: str, data: Data, ranks: Ranks
) -> list[float]:
    """Train for all epochs and record losses and metrics; return the main metric after each epoch."""
    learner = build_learner(load_bert(run, dtype), options, options.steps(len(data.train)))
    with Session(run, options, Path("paddle", dtype), learner, ranks) as session:
        learner.join(ranks)
        for epoch in session.epochs():
            order = visited(data, options, epoch)[session.examples_done :]
            batches = ShardLoader(
                data.train, data.tokenizer, options.examples_per_step, order, ranks
            )
            train_epoch(learner, batches, session)
            session.end_epoch(measure(run, learner, data, session))
    if not ranks.rank:
        save_record(run, session, dtype, data)
    return session.results


def visited(data: Data, options: TrainingOptions, epoch: int) -> list[int]:
    """Return the order of the training sentences in an epoch."""
    if options.randomness == NATIVE:
        return native_order(data.train, native_seed(options.seed, epoch))
    return epoch_order(len(data.train), options.seed, epoch)


def measure(run: Run, learner: Learner, data: Data, session: Session) -> Measured:
    """Return metrics and logits of every dev set."""
    measured, ranks = Measured(), session.ranks
    for name, examples in data.dev.items():
        size = settings.EVAL_BATCH_SIZE * ranks.world
        batches = session.watched(ShardLoader(examples, data.tokenizer, size, ranks=ranks))
        found = evaluate(learner.model, batches, session.options.device, ranks)
        measured.add(run.task, name, *found)
    return measured


def save_record(run: Run, session: Session, dtype: str, data: Data) -> None:
    """Record the best epoch's result; in float64 and native mode, every loss, metric and logit, too."""
    native = session.options.randomness == NATIVE
    path = native_record(run, "paddle") if native else run.output("train_align_paddle", dtype)
    record = Recorder(path)
    if native:
        for name, examples in data.dev.items():
            record.add(f"{name}labels", [example["labels"] for example in examples])
    if native or dtype == JUDGE:
        for name, values in session.curves.items():
            record.add(name, values)
    for name, value in session.best().items():
        record.add(name, value)
    record.save()


if __name__ == "__main__":
    start(main, __doc__, add_options)
