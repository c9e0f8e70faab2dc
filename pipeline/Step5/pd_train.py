"""Step 5: fine-tune on real sentences, dropout on: the plain loop.

reads   pipeline/Step2/demo_sst2_sentence/          train.tsv and dev.tsv, or those of --data-dir
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/train_align_SIDE.npy             the best accuracy on dev.tsv, float32
        log_reprod/strict/train_align_SIDE.npy      the same in float64, every loss and accuracy
        log_reprod/training/SIDE_float32.jsonl      the loss of every step
pair    pt_train.py and pd_train.py: the same lines, SIDE is torch or paddle
more    pt_train_many.py and pd_train_many.py: other optimizer settings and tasks, checkpoints and resuming,
        accumulation, AMP, several processes. They also run what this script is asked for beyond its options.
"""

import math
from collections.abc import Iterable
from typing import Any

from pipeline import settings
from pipeline.pd import SIDE
from pipeline.pd.loader import data_loader, load_examples, load_tokenizer
from pipeline.pd.model import criterion, load_bert
from pipeline.pd.optimizer import build_optimizer, faster_training
from pipeline.run import Run, start_plain
from pipeline.training.log import JsonLines
from pipeline.training.options import check_length
from reprod_align import Recorder
from reprod_align.backends.paddle.random import shared_random
from reprod_align.randomness import SharedRandom, epoch_order

import paddle
from tqdm import tqdm


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks."""
    check_length(run)
    for dtype in run.dtypes:
        train(run, dtype)


def train(run: Run, dtype: str) -> None:
    """Train for all epochs, measure after each, and record what check_step5.py compares."""
    model = load_bert(run, dtype)
    tokenizer = load_tokenizer(run)
    sentences = load_examples(run.corpus.train, tokenizer)
    dev = load_examples(run.corpus.dev, tokenizer)

    epochs = run.options.epochs or run.profile.epochs
    steps = epochs * math.ceil(len(sentences) / settings.TRAIN_BATCH_SIZE)
    warmup = int(settings.WARMUP_PROPORTION * steps)
    optimizer, schedule = build_optimizer(model, run.profile.learning_rate, steps, warmup)

    record = Recorder(run.output(f"train_align_{SIDE}", dtype))
    log = JsonLines(run.results / "training" / f"{SIDE}_{dtype}.jsonl")
    step, accuracies = 0, []
    with faster_training(model, optimizer):  # the same numbers in less time
        for epoch in range(epochs):
            model.train()
            losses = []
            order = epoch_order(len(sentences), settings.SEED, epoch)
            batches = data_loader(sentences, tokenizer, settings.TRAIN_BATCH_SIZE, order)
            watched = tqdm(batches, desc=f"{SIDE} epoch {epoch}", disable=None)
            for number, batch in enumerate(watched):
                labels = batch.pop("labels")  # (B,)
                with shared_random(SharedRandom(settings.SEED, epoch, number)):  # the dropout masks
                    logits = model(**batch)  # (B, num_labels)
                loss = criterion(logits, labels)
                loss.backward()
                losses.append(loss.item())
                step += 1
                log.write(step, epoch, {"loss": losses[-1], "lr": optimizer.get_lr()})
                optimizer.step()
                schedule.step()
                optimizer.clear_grad()

            scores, accuracy = evaluate(
                model, data_loader(dev, tokenizer, settings.EVAL_BATCH_SIZE)
            )
            accuracies.append(accuracy)
            log.write(step, epoch, {"accuracy": accuracy})
            if dtype == settings.STRICT_DTYPE:
                record.add(f"epoch_{epoch}_losses", losses)
                record.add(f"epoch_{epoch}_logits", scores)
                record.add(f"epoch_{epoch}_accuracy", accuracy)
    record.add("acc", max(accuracies))
    record.save()
    log.close()
    print(f"{SIDE} {dtype}: best accuracy {max(accuracies):.4f}")


def evaluate(
    model: paddle.nn.Layer, batches: Iterable[dict[str, Any]]
) -> tuple[list[list[float]], float]:
    """Return the logits (N, num_labels) of all sentences, and the share that is classified right."""
    model.eval()
    scores, right = [], []
    for batch in batches:
        labels = batch.pop("labels")  # (B,)
        with paddle.no_grad():
            logits = model(**batch)  # (B, num_labels)
        scores += logits.tolist()
        right += (logits.argmax(-1) == labels).tolist()
    return scores, sum(right) / len(right)


if __name__ == "__main__":
    start_plain(main, __doc__, writes=f"train_align_{SIDE}")
