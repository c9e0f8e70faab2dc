"""Step 5: how long does a training step take, and which part of it?

reads   weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/strict/perf_SIDE.json        milliseconds of every phase of every step
pair    pt_perf.py and pd_perf.py: the same lines, SIDE is torch or paddle
"""

import argparse
from contextlib import nullcontext
from functools import partial

from pipeline.pt import SIDE
from pipeline.pt.loader import data_loader, load_tokenizer
from pipeline.pt.model import criterion, load_bert, peak_memory, use_device, wait_for
from pipeline.pt.optimizer import build_optimizer, fuse_updates
from pipeline.run import Run, start
from pipeline.timing.workload import (
    Stopwatch,
    add_options,
    draw_examples,
    read_workload,
    save_speed,
)

from datasets import Dataset


def main(run: Run) -> None:
    """Train on random sentences, dropout on, and time it; with --fast, in a faster way."""
    model = load_bert(run, "float32")
    device = use_device(run.options.device)
    model.to(device).train()
    data = Dataset.from_list(draw_examples(read_workload(run), model.config))
    batches = data_loader(data, load_tokenizer(run), run.options.batch_size)
    optimizer, schedule = build_optimizer(model, run.profile.learning_rate, len(batches))
    if run.options.fast:
        fuse_updates(optimizer)
    watch = Stopwatch(partial(wait_for, device))
    moved = ({name: rows.to(device) for name, rows in batch.items()} for batch in batches)
    with nullcontext():  # where the Paddle side keeps its tensors contiguous
        for batch in watch.data(moved):
            labels = batch.pop("labels")  # (B,)
            with watch.phase("forward"):
                loss = criterion(model(**batch), labels)
            with watch.phase("backward"):
                loss.backward()
            with watch.phase("optimizer"):
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    print(save_speed(run, f"perf_{SIDE}", watch, peak_memory(device)).line(SIDE))


def add_own_options(parser: argparse.ArgumentParser) -> None:
    """Add the workload's options, and the ways in which this side can be faster."""
    add_options(parser, ("fused",))


if __name__ == "__main__":
    start(main, __doc__, add_own_options)
