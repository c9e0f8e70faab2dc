"""Step 5, PyTorch side: fine-tune on real sentences, dropout on.

reads   pipeline/Step2/demo_sst2_sentence/          train.tsv and dev.tsv, or those of --data-dir
        weights/torch_weight.bin                    and the classifier's weights
writes  log_reprod/train_align_torch.npy            the best accuracy on dev.tsv, float32
        log_reprod/strict/train_align_torch.npy     the same in float64, every loss and accuracy
        log_reprod/native/train_align_torch_seed42.npy    instead of both, with --randomness native
pair    pd_train.py                                 the same lines with Paddle's calls
"""

from pathlib import Path

from pipeline.pt.learner import build_learner
from pipeline.pt.loader import ShardLoader
from pipeline.pt.loop import measure, train_epoch
from pipeline.pt.model import load_bert
from pipeline.pt.ranks import joined
from pipeline.pt.sentences import Sentences, load_sentences
from pipeline.run import Run, start
from pipeline.training.native import remove_records
from pipeline.training.options import TrainingOptions, add_options, training_options
from pipeline.training.ranks import Ranks
from pipeline.training.record import save_training
from pipeline.training.session import Session


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks.

    With --randomness native each side shuffles and drops out by itself.
    """
    remove_records(run, "torch")
    with joined(run.options.device) as ranks:
        options = training_options(run)
        data = load_sentences(run, options, ranks)
        for dtype in options.dtypes:
            results = fine_tune(run, options, dtype, data, ranks)
            if not ranks.rank:
                print(f"torch {dtype}: best {run.task.main_metric} {max(results):.4f}")


def fine_tune(
    run: Run, options: TrainingOptions, dtype: str, data: Sentences, ranks: Ranks
) -> list[float]:
    """Train for all epochs and record losses and metrics; return the main metric after each epoch."""
    learner = build_learner(load_bert(run, dtype), options, options.steps(len(data.train)))
    with Session(run, options, Path("torch", dtype), learner, ranks) as session:
        learner.join(ranks)
        for epoch in session.epochs():
            order = data.order(options, epoch)[session.examples_done :]
            batches = ShardLoader(
                data.train, data.tokenizer, options.examples_per_step, order, ranks
            )
            train_epoch(learner, batches, session)
            session.end_epoch(measure(run, learner, data, session))
    if not ranks.rank:
        save_training(run, session, "torch", dtype, data.dev)
    return session.results


if __name__ == "__main__":
    start(main, __doc__, add_options)
