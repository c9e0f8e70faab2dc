"""Step 5, PyTorch side: fine-tune on real sentences, dropout on.

reads   pipeline/Step2/demo_sst2_sentence/          train.tsv and dev.tsv, or those of --data-dir
        weights/torch_weight.bin                    and the classifier's weights
writes  log_reprod/train_align_torch.npy            the best accuracy on dev.tsv, float32
        log_reprod/strict/train_align_torch.npy     the same in float64, every loss and accuracy
pair    pd_train.py                                 the same lines with Paddle's calls
"""

from pathlib import Path

from pipeline import settings
from pipeline.pt_checkpoint import build_learner
from pipeline.pt_loader import data_loader, load_examples, load_tokenizer
from pipeline.pt_model import load_bert
from pipeline.pt_train_loop import evaluate, train_epoch
from pipeline.run import JUDGE, Run, start
from pipeline.training_options import TrainingOptions, add_options, training_options
from pipeline.training_session import Session
from reprod_align import Recorder
from reprod_align.randomness import epoch_order

from datasets import Dataset
from transformers import BertTokenizerFast


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks."""
    options = training_options(run)
    settings.MAX_LENGTH = options.max_length  # where the loader looks for it
    tokenizer = load_tokenizer(run)
    train = load_examples(run.corpus.train, tokenizer)
    dev = load_examples(run.corpus.dev, tokenizer)
    for dtype in options.dtypes:
        accuracies = fine_tune(run, options, dtype, tokenizer, train, dev)
        print(f"torch {dtype}: best accuracy {max(accuracies):.4f}")


def fine_tune(
    run: Run,
    options: TrainingOptions,
    dtype: str,
    tokenizer: BertTokenizerFast,
    train: Dataset,
    dev: Dataset,
) -> list[float]:
    """Train for all epochs and record losses and accuracies; return the accuracy after each epoch."""
    learner = build_learner(load_bert(run, dtype), options, options.steps(len(train)))
    with Session(run, options, Path("torch", dtype), learner) as session:
        for epoch in session.epochs():
            order = epoch_order(len(train), options.seed, epoch)[session.examples_done :]
            train_epoch(
                learner, data_loader(train, tokenizer, options.examples_per_step, order), session
            )
            batches = session.watched(data_loader(dev, tokenizer, settings.EVAL_BATCH_SIZE))
            session.end_epoch(*evaluate(learner.model, batches, options.device))
    record = Recorder(run.output("train_align_torch", dtype))
    if dtype == JUDGE:
        for name, values in session.curves.items():
            record.add(name, values)
    record.add("acc", max(session.accuracies))
    record.save()
    return session.accuracies


if __name__ == "__main__":
    start(main, __doc__, add_options, writes="train_align_torch")
