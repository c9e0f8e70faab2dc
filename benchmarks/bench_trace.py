"""What recording every module of a bert-base costs: time over plain forward and backward, memory, file.

    python benchmarks/bench_trace.py torch      (or paddle; --mode whole, --rounds 9)

Plain and recorded runs alternate; the figures are the median of the ratios of neighbours, so that a
machine that others use as well slows down both, and the ratio of the two fastest. Processor time of
the whole process, writing the file included. The loss and every gradient must be the same to the
last bit in both. Memory is the process' resident peak, in processes of their own.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from models.bert_config import BertConfig

import numpy as np

Run = Callable[[AbstractContextManager[None]], float]


def torch_run(layers: int, batch: int, length: int) -> tuple[Any, Run]:
    """Return a PyTorch model and the function that runs it forward and backward."""
    from models.pt_bert import BertForSequenceClassification

    import torch

    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(num_hidden_layers=layers)).eval()
    ids, labels = (torch.tensor(array) for array in _batch(batch, length))

    def run(block: AbstractContextManager[None]) -> float:
        model.zero_grad()
        with block:
            loss = torch.nn.functional.cross_entropy(model(ids), labels)
            loss.backward()
        return float(loss.item())

    return model, run


def paddle_run(layers: int, batch: int, length: int) -> tuple[Any, Run]:
    """Return a Paddle model and the function that runs it forward and backward."""
    from models.pd_bert import BertForSequenceClassification

    import paddle

    paddle.seed(0)
    model = BertForSequenceClassification(BertConfig(num_hidden_layers=layers))
    model.eval()
    ids, labels = (paddle.to_tensor(array) for array in _batch(batch, length))

    def run(block: AbstractContextManager[None]) -> float:
        model.clear_gradients(set_to_zero=False)
        with block:
            loss = paddle.nn.functional.cross_entropy(model(ids), labels)
            loss.backward()
        return float(loss.item())

    return model, run


def _batch(batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0)
    return source.integers(1, 30522, (batch, length)), np.arange(batch) % 2


def main() -> None:
    """Measure, and print the figures."""
    import pipeline  # noqa: F401

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=("torch", "paddle"))
    parser.add_argument("--mode", choices=("sketch", "whole"), default="sketch")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--peak", choices=("plain", "recorded"), help="one run; print its peak")
    options = parser.parse_args()
    build = torch_run if options.framework == "torch" else paddle_run
    model, run = build(options.layers, options.batch, options.length)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trace"
        if options.peak:
            _one_run(run, _recording(options, model, path) if options.peak == "recorded" else None)
        else:
            _compare(options, model, run, lambda: _recording(options, model, path), path)


def _recording(options: argparse.Namespace, model: Any, path: Path) -> AbstractContextManager[None]:
    if options.framework == "torch":
        from reprod_align.backends.torch.trace import record_trace
    else:
        from reprod_align.backends.paddle.trace import record_trace
    return record_trace(model, path, options.mode)


def _one_run(run: Run, recording: AbstractContextManager[None] | None) -> None:
    run(nullcontext())  # the frameworks' own buffers are there from here on
    run(nullcontext() if recording is None else recording)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _compare(
    options: argparse.Namespace,
    model: Any,
    run: Run,
    recording: Callable[[], AbstractContextManager[None]],
    path: Path,
) -> None:
    loss, gradients = run(nullcontext()), _gradients(model)
    again, recorded = run(recording()), _gradients(model)
    same = loss == again and all(map(np.array_equal, gradients, recorded))
    del recorded, gradients
    plain, during = [], []
    for _ in range(options.rounds):
        plain.append(_seconds(run, nullcontext()))
        during.append(_seconds(run, recording()))
    ratios = [b / a for a, b in zip(plain, during, strict=True)]
    print(
        f"{options.framework}, {options.mode}, {options.layers} layers, "
        f"{options.batch} x {options.length}"
    )
    print(f"forward and backward      {statistics.median(plain):8.2f} s")
    print(f"recorded, median ratio    {statistics.median(ratios):8.3f}  (least {min(ratios):.2f})")
    print(f"recorded, fastest         {min(during) / min(plain):8.3f}  ({min(during):.2f} s)")
    print(f"same loss and gradients   {same}")
    print(f"file                      {path.stat().st_size / 2**20:8.2f} MB")
    peaks = [_peak(options, what) for what in ("plain", "recorded")]
    print(f"peak memory               {peaks[0]:8.0f} MB plain, {peaks[1]:.0f} MB recorded")


def _gradients(model: Any) -> list[np.ndarray]:
    return [np.array(p.grad.numpy()) for p in model.parameters() if p.grad is not None]


def _seconds(run: Run, block: AbstractContextManager[None]) -> float:
    start = time.process_time()
    run(block)
    return time.process_time() - start


def _peak(options: argparse.Namespace, what: str) -> float:
    shape = {"layers": options.layers, "batch": options.batch, "length": options.length}
    words = [options.framework, "--mode", options.mode]
    words += [word for name, size in shape.items() for word in (f"--{name}", str(size))]
    command = [sys.executable, __file__, *words, "--peak", what]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
