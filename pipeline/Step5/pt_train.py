"""Step 5, PyTorch side: fine-tune on real sentences, dropout on.

reads   pipeline/Step2/demo_sst2_sentence/          train.tsv and dev.tsv, or those of --data-dir
        weights/torch_weight.bin                    and the classifier's weights
writes  log_reprod/train_align_torch.npy            the best accuracy on dev.tsv, float32
        log_reprod/strict/train_align_torch.npy     the same in float64, every loss and accuracy
pair    pd_train.py                                 the same lines with Paddle's calls
"""

from pipeline import settings
from pipeline.pt_loader import data_loader, load_examples, load_tokenizer
from pipeline.pt_model import load_bert
from pipeline.pt_optimizer import build_optimizer
from pipeline.pt_train_loop import evaluate, train_epoch
from pipeline.run import JUDGE, Run, start
from reprod_align import Recorder
from reprod_align.randomness import epoch_order

from datasets import Dataset
from transformers import BertTokenizerFast


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks."""
    tokenizer = load_tokenizer(run)
    train = load_examples(run.corpus.train, tokenizer)
    dev = load_examples(run.corpus.dev, tokenizer)
    for dtype in run.dtypes:
        accuracies = fine_tune(run, dtype, tokenizer, train, dev)
        print(f"torch {dtype}: best accuracy {max(accuracies):.4f}")


def fine_tune(
    run: Run, dtype: str, tokenizer: BertTokenizerFast, train: Dataset, dev: Dataset
) -> list[float]:
    """Train for all epochs and record losses and accuracies; return the accuracy after each epoch."""
    record = Recorder(run.output("train_align_torch", dtype))
    model = load_bert(run, dtype)
    optimizer, schedule = build_optimizer(
        model, run.profile.learning_rate, *run.training_steps(len(train))
    )
    accuracies = []
    for epoch in range(run.epochs):
        order = epoch_order(len(train), settings.SEED, epoch)
        batches = data_loader(train, tokenizer, settings.TRAIN_BATCH_SIZE, order)
        losses = train_epoch(model, batches, optimizer, schedule, epoch)
        accuracy, logits = evaluate(model, data_loader(dev, tokenizer, settings.EVAL_BATCH_SIZE))
        accuracies.append(accuracy)
        if dtype == JUDGE:
            record.add(f"epoch_{epoch}_losses", losses)
            record.add(f"epoch_{epoch}_logits", logits)
            record.add(f"epoch_{epoch}_accuracy", accuracy)
    record.add("acc", max(accuracies))
    record.save()
    return accuracies


if __name__ == "__main__":
    start(main, __doc__, writes="train_align_torch")
