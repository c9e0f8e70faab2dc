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

from pipeline import settings
from pipeline.pd import SIDE
from pipeline.pd.fast_layers import contiguous_tensors, faster
from pipeline.pd.loader import data_loader, load_examples, load_tokenizer
from pipeline.pd.model import load_bert
from pipeline.pd.optimizer import find_decaying
from pipeline.run import Run
from pipeline.training.log import JsonLines
from pipeline.training.options import check_length
from pipeline.training.plain import start_plain
from reprod_align import Recorder
from reprod_align.backends.paddle.random import shared_random
from reprod_align.randomness import SharedRandom, epoch_order

import paddle
import paddle.nn.functional as F
from paddle.optimizer import AdamW
from paddlenlp.transformers import LinearDecayWithWarmup
from tqdm import tqdm


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks."""
    check_length(run)
    for dtype in run.dtypes:
        train(run, dtype)


@contiguous_tensors()  # strided views are slow on a CPU
def train(run: Run, dtype: str) -> None:
    """Train for all epochs, measure after each, and record what check_step5.py compares."""
    model = load_bert(run, dtype)
    faster(model)  # equal layers: a step takes two thirds of its time
    tokenizer = load_tokenizer(run)
    sentences = load_examples(run.corpus.train, tokenizer)
    dev = load_examples(run.corpus.dev, tokenizer)

    epochs = run.options.epochs or run.profile.epochs
    steps = epochs * math.ceil(len(sentences) / settings.TRAIN_BATCH_SIZE)
    warmup = int(settings.WARMUP_PROPORTION * steps)
    schedule = LinearDecayWithWarmup(run.profile.learning_rate, steps, warmup)
    optimizer = AdamW(
        learning_rate=schedule,
        beta1=settings.BETAS[0],
        beta2=settings.BETAS[1],
        epsilon=settings.EPSILON,
        parameters=model.parameters(),
        weight_decay=settings.WEIGHT_DECAY,
        apply_decay_param_fun=find_decaying(model).__contains__,
    )

    record = Recorder(run.output(f"train_align_{SIDE}", dtype))
    log = JsonLines(run.results / "training" / f"{SIDE}_{dtype}.jsonl")
    step, accuracies = 0, []
    for epoch in range(epochs):
        model.train()
        losses = []
        order = epoch_order(len(sentences), settings.SEED, epoch)
        batches = data_loader(sentences, tokenizer, settings.TRAIN_BATCH_SIZE, order)
        for number, batch in enumerate(tqdm(batches, desc=f"{SIDE} epoch {epoch}", disable=None)):
            labels = batch.pop("labels")  # (B,)
            with shared_random(SharedRandom(settings.SEED, epoch, number)):  # the dropout masks
                logits = model(**batch)  # (B, num_labels)
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            losses.append(loss.item())
            step += 1
            log.write(step, epoch, {"loss": losses[-1], "lr": optimizer.get_lr()})
            optimizer.step()
            schedule.step()
            optimizer.clear_grad()

        model.eval()
        scores, right = [], []
        for batch in data_loader(dev, tokenizer, settings.EVAL_BATCH_SIZE):
            labels = batch.pop("labels")  # (B,)
            with paddle.no_grad():
                logits = model(**batch)  # (B, num_labels)
            scores += logits.tolist()
            right += (logits.argmax(-1) == labels).tolist()
        accuracies.append(sum(right) / len(right))
        log.write(step, epoch, {"accuracy": accuracies[-1]})
        if dtype == settings.STRICT_DTYPE:
            record.add(f"epoch_{epoch}_losses", losses)
            record.add(f"epoch_{epoch}_logits", scores)
            record.add(f"epoch_{epoch}_accuracy", accuracies[-1])
    record.add("acc", max(accuracies))
    record.save()
    log.close()
    print(f"{SIDE} {dtype}: best accuracy {max(accuracies):.4f}")


if __name__ == "__main__":
    start_plain(main, __doc__, writes=f"train_align_{SIDE}")
