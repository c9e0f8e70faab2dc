"""Step 5, Paddle side: fine-tune on real sentences, dropout on.

reads   pipeline/Step2/demo_sst2_sentence/          train.tsv and dev.tsv, or those of --data-dir
        weights/paddle_weight.pdparams              and the classifier's weights
writes  log_reprod/train_align_paddle.npy           the best accuracy on dev.tsv, float32
        log_reprod/strict/train_align_paddle.npy    the same in float64, every loss and accuracy
pair    pt_train.py                                 the same lines with PyTorch's calls
"""

from pipeline import settings
from pipeline.pd_loader import data_loader, load_examples, load_tokenizer
from pipeline.pd_model import load_bert
from pipeline.pd_optimizer import build_optimizer
from pipeline.pd_train_loop import evaluate, train_epoch
from pipeline.run import JUDGE, Run, start
from reprod_align import Recorder
from reprod_align.randomness import epoch_order

from paddlenlp.datasets import MapDataset
from paddlenlp.transformers import BertTokenizer


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks."""
    tokenizer = load_tokenizer(run)
    train = load_examples(run.corpus.train, tokenizer)
    dev = load_examples(run.corpus.dev, tokenizer)
    for dtype in run.dtypes:
        accuracies = fine_tune(run, dtype, tokenizer, train, dev)
        print(f"paddle {dtype}: best accuracy {max(accuracies):.4f}")


def fine_tune(
    run: Run, dtype: str, tokenizer: BertTokenizer, train: MapDataset, dev: MapDataset
) -> list[float]:
    """Train for all epochs and record losses and accuracies; return the accuracy after each epoch."""
    record = Recorder(run.output("train_align_paddle", dtype))
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
    start(main, __doc__, writes="train_align_paddle")
