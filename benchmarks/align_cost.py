"""What `align` costs at bert-base shape: time over one forward and backward pass of both sides, and memory.

    python -m benchmarks.align_cost                       (--layers 12 --batch 2 --length 64 --rounds 3)

Each pair runs in a process of its own, on one thread. There passes and `align` alternate: the ratio is
that of the medians. A pass is the forward and backward pass of the PyTorch model and of the Paddle
model in float64. Memory is the peak of the process' anonymous memory beyond what it holds when both
models are built, in float32, and have run once; the slope over the parameters is fitted to several depths.
Times are of the processor, so that others on the machine count less.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FAULTS = ("none", "norm")
_DEPTHS = (2, 6, 12)  # layers to which the slope of memory is fitted
_POLL = 0.02  # seconds


def main() -> None:
    """Measure the pairs and print a table."""
    options = _parse()
    if options.child:
        print(json.dumps(measure(options)))
        return
    print(f"{'pair':8s} {'passes':>8s} {'align':>8s} {'ratio':>7s} {'runs of torch, paddle':>24s}")
    for fault in options.faults:
        found = _ask_child(options, fault, options.layers, options.rounds)
        runs = " ".join(str(number) for number in found["runs"].values())
        print(
            f"{fault:8s} {found['pass']:7.2f}s {found['align']:7.1f}s {found['ratio']:7.2f} {runs:>24s}"
        )
    for fault in options.faults if options.memory else ():
        points = [_ask_child(options, fault, depth, 1) for depth in _DEPTHS]
        sizes, peaks = ([point[name] for point in points] for name in ("parameters", "memory"))
        slope = np.polyfit(sizes, peaks, 1)[0]
        most = [f"{peak / size:.1f}" for size, peak in zip(sizes, peaks, strict=True)]
        print(
            f"{fault:8s} bytes for each parameter: {', '.join(most)} with {_DEPTHS} layers; slope {slope:.1f}"
        )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=FAULTS)
    parser.add_argument("--training", action="store_true", help="give a loss and AdamW too")
    parser.add_argument("--memory", action="store_true", help="fit the slope of memory too")
    parser.add_argument("--profile", help="write a profile of `align` to this file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _ask_child(options: argparse.Namespace, fault: str, layers: int, rounds: int) -> Any:
    words = [sys.executable, "-m", "benchmarks.align_cost", "--child", "--faults", fault,
             "--layers", str(layers), "--rounds", str(rounds), "--batch", str(options.batch),
             "--length", str(options.length), "--width", str(options.width)]  # fmt: skip
    words += ["--training"] if options.training else []
    words += ["--profile", options.profile] if options.profile else []
    one_thread = {
        name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    done = subprocess.run(words, env=os.environ | one_thread, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one pair, in this process."""
    from reprod_align import align
    from reprod_align.model.local import LocalSide

    import paddle
    import torch

    torch.set_num_threads(1)
    (fault,) = options.faults
    ours, theirs = _make_pair(options, fault)
    source = np.random.default_rng(0)
    ids = source.integers(1, 1000, (options.batch, options.length))
    labels = np.arange(options.batch) % 2
    parameters = sum(tensor.numel() for tensor in ours.parameters())
    functions = _make_training(labels) if options.training else {}

    def run_pass() -> None:
        logits = ours(torch.tensor(ids))
        torch.nn.functional.cross_entropy(logits, torch.tensor(labels)).backward()
        ours.zero_grad()
        scores = theirs(paddle.to_tensor(ids))
        paddle.nn.functional.cross_entropy(scores, paddle.to_tensor(labels)).backward()
        theirs.clear_gradients(set_to_zero=False)

    def run_align() -> None:
        report = align(ours, theirs, {"input_ids": ids}, **functions)
        assert report.passed == (fault == "none"), report.summary()

    runs = _count_runs(LocalSide)
    run_pass()  # in float32: afterwards the process holds what running takes
    passes, whole, before, peak = [], [], _read_memory(), 0
    for number in range(options.rounds):
        with _wide(ours, theirs):
            run_pass()
            passes.append(_time(run_pass))
        runs.update(torch=0, paddle=0)
        with _Peak() as memory:
            whole.append(_time(_profile(run_align, options.profile) if not number else run_align))
        peak = max(peak, memory.peak)
    middle = statistics.median(passes), statistics.median(whole)
    return {"pass": middle[0], "align": middle[1], "ratio": middle[1] / middle[0], "runs": runs,
            "parameters": parameters, "memory": peak - before}  # fmt: skip


def _make_pair(options: argparse.Namespace, fault: str) -> tuple[Any, Any]:
    """Return BERT in both frameworks, in float32; "norm": with another epsilon in one LayerNorm."""
    from models import pd_bert, pt_bert
    from models.bert_config import BertConfig

    import torch

    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=options.layers, hidden_size=options.width,
                        intermediate_size=4 * options.width)  # fmt: skip
    ours = pt_bert.BertForSequenceClassification(config).eval()
    theirs = pd_bert.BertForSequenceClassification(config)
    theirs.eval()
    if fault == "norm":
        theirs.bert.encoder.layer[options.layers // 2].output.LayerNorm._epsilon = 1e-5
    return ours, theirs


def _make_training(labels: np.ndarray) -> dict[str, Callable[..., Any]]:
    import paddle
    import torch

    return {
        "torch_loss": lambda logits: torch.nn.functional.cross_entropy(
            logits, torch.tensor(labels)
        ),
        "paddle_loss": lambda logits: paddle.nn.functional.cross_entropy(
            logits, paddle.to_tensor(labels)
        ),
        "torch_optimizer": lambda model: torch.optim.AdamW(model.parameters(), 1e-4),
        "paddle_optimizer": lambda model: paddle.optimizer.AdamW(
            1e-4, parameters=model.parameters(), weight_decay=0.01
        ),
    }


def _count_runs(side: Any) -> dict[str, int]:
    """Return a table that counts the runs of each side from now on."""
    runs, run = {"torch": 0, "paddle": 0}, side.run

    def count(self: Any, *args: Any, **kwargs: Any) -> Any:
        runs["torch" if self.name == "PyTorch" else "paddle"] += 1
        made = run(self, *args, **kwargs)
        return made

    side.run = count
    return runs


def _wide(*models: Any) -> Any:
    """Return the block in which the models are float64."""
    from contextlib import ExitStack

    from reprod_align.pair.sides import paddle_side, torch_side

    stack = ExitStack()
    for side in (torch_side(models[0]), paddle_side(models[1])):
        stack.enter_context(side.working("float64"))
    return stack


def _profile(run: Callable[[], None], path: str | None) -> Callable[[], None]:
    if not path:
        return run
    import cProfile

    profile = cProfile.Profile()

    def profiled() -> None:
        profile.runcall(run)
        profile.dump_stats(path)

    return profiled


def _time(run: Callable[[], None]) -> float:
    """Return the seconds of processor time that a function takes, of all threads."""
    began = time.process_time()
    run()
    return time.process_time() - began


def _read_memory() -> int:
    """Return the anonymous memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


class _Peak:
    """The largest anonymous memory of this process in a block, polled by a thread."""

    def __enter__(self) -> "_Peak":
        self.peak, self._over = _read_memory(), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_POLL):
            self.peak = max(self.peak, _read_memory())


if __name__ == "__main__":
    main()
