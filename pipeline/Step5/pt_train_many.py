"""Step 5: fine-tune as a user trains: the loop of pt_train.py and pd_train.py with everything beside it.

Other optimizer settings and tasks, checkpoints and resuming, gradient accumulation, AMP, several processes,
native randomness: docs/training.md has the options. Without any it is the plain training, bit for bit.

reads   pipeline/Step2/demo_sst2_sentence/          train.tsv and dev.tsv, or those of --data-dir
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/train_align_SIDE.npy             the best accuracy on dev.tsv, float32
        log_reprod/strict/train_align_SIDE.npy      the same in float64, every loss and accuracy
        log_reprod/training/SIDE_float32.jsonl      the loss of every step; with --output it is there
        log_reprod/native/train_align_SIDE_seed42.npy   instead of both, with --randomness native
pair    pt_train_many.py and pd_train_many.py: the same lines, SIDE is torch or paddle
"""

from pathlib import Path

from pipeline.pt import SIDE
from pipeline.pt.learner import build_learner
from pipeline.pt.model import criterion, load_bert
from pipeline.pt.optimizer import clip_gradients
from pipeline.pt.processes import join_processes
from pipeline.pt.sentences import Sentences, load_sentences
from pipeline.run import Run, start
from pipeline.training.options import TrainingOptions, add_options, read_options
from pipeline.training.processes import Processes
from pipeline.training.record import Measured, remove_training_records
from pipeline.training.session import Session, save_training
from pipeline.training.shards import restore_order

import torch
from torch import nn


def main(run: Run) -> None:
    """Train once in each precision: both sides see the same batches and the same dropout masks.

    With --randomness native each side shuffles and drops out by itself.
    """
    with join_processes(run.options.device) as processes:  # one, unless a launcher started more
        options = read_options(run)
        remove_training_records(run, SIDE)  # after what refuses a request
        data = load_sentences(run, options, processes)
        for dtype in options.dtypes:
            train(run, options, dtype, data, processes)


def train(
    run: Run, options: TrainingOptions, dtype: str, data: Sentences, processes: Processes
) -> None:
    """Train for all epochs, from the last checkpoint in --output on, and record the results."""
    steps = options.steps(len(data.train))
    learner = build_learner(load_bert(run, dtype), options, steps, processes)
    model, optimizer, schedule = learner.model, learner.optimizer, learner.schedule
    scaler = learner.scaler  # of the loss, for --amp fp16; otherwise it changes nothing
    with Session(run, options, Path(SIDE, dtype), learner, processes) as session:
        for epoch in session.epochs():
            model.train()
            for parts in session.steps(data.train_batches(epoch, session.examples_done)):
                total = 0.0
                for part in parts:  # one, unless --grad-accum asks for more
                    with learner.forward_pass(part) as forward:  # with this step's dropout masks
                        loss = criterion(forward(**part.inputs), part.labels)
                    weight = part.share * processes.world  # the processes' gradients are averaged
                    scaler.scale(loss * weight).backward()
                    total += loss.item() * part.share
                numbers = {"lr": float(schedule.get_last_lr()[0])}
                if options.clip is not None:
                    scaler.unscale_(optimizer)
                    numbers["grad_norm"] = clip_gradients(model, options.clip)
                scaler.step(optimizer)
                scaler.update()
                schedule.step()
                optimizer.zero_grad()
                session.end_step(total, **numbers)
            session.end_epoch(evaluate(model, data, session))
    save_training(session, data.dev)


def evaluate(model: nn.Module, data: Sentences, session: Session) -> Measured:
    """Return metrics and logits of every dev set."""
    model.eval()
    measured = Measured()
    for name in data.dev:
        found = []  # this process's rows of every batch
        for shard, batch in session.watch(data.dev_batches(name)):
            labels = batch.pop("labels")  # (B,)
            with torch.no_grad():
                logits = model(**batch)  # (B, num_labels)
            rows = zip(logits.tolist(), labels.tolist(), strict=True)
            found.append(list(rows) if shard.counts else [])
        scores, labels = zip(*restore_order(session.processes.gather(found)), strict=True)
        measured.add(session.run.task, name, list(scores), list(labels))
    return measured


if __name__ == "__main__":
    start(main, __doc__, add_options)
