"""Recording a sketch trace of every module of a bert-base, 8 x 128 tokens, forward and backward."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from benchmarks.bench_trace import paddle_run, torch_run
from benchmarks.figures.rows import Curve, Row

TITLE = ("Recording a sketch trace", "录制 sketch trace")
_SHAPE = (12, 8, 128)  # layers, sentences, tokens
_HERE = "benchmarks.figures.recording"

Work = Callable[[], object]

ROWS = tuple(
    Row(
        (f"{name}: recorded step / plain step", f"{name}：录制的一步 / 普通的一步"),
        f"{_HERE}:record_{name.lower()}",
        1.15,
        f"{_HERE}:run_{name.lower()}",
        unit="s of work",
    )
    for name in ("PyTorch", "Paddle")
)
CURVES: tuple[Curve, ...] = ()


def prepare(folder: Path) -> None:
    """Nothing is needed: the model is drawn."""


def run_pytorch(folder: Path) -> Work:
    """Return a plain step; one has run before."""
    _, run = torch_run(*_SHAPE)
    run(nullcontext())
    return lambda: run(nullcontext())


def record_pytorch(folder: Path) -> Work:
    """Return a recorded step."""
    from reprod_align.backends.torch.trace import record_trace

    model, run = torch_run(*_SHAPE)
    run(record_trace(model, folder / "torch.trace", "sketch"))
    return lambda: run(record_trace(model, folder / "torch.trace", "sketch"))


def run_paddle(folder: Path) -> Work:
    """Return a plain step; one has run before."""
    _, run = paddle_run(*_SHAPE)
    run(nullcontext())
    return lambda: run(nullcontext())


def record_paddle(folder: Path) -> Work:
    """Return a recorded step."""
    from reprod_align.backends.paddle.trace import record_trace

    model, run = paddle_run(*_SHAPE)
    run(record_trace(model, folder / "paddle.trace", "sketch"))
    return lambda: run(record_trace(model, folder / "paddle.trace", "sketch"))
