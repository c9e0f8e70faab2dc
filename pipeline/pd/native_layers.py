"""Layers for Paddle on a CPU that compute by operators of our own, in C++: beyond fast_layers.py.

    undo = native(model)                # builds the operators once a machine: half a minute, needs g++
    with contiguous_tensors():
        train(model)
    undo()

Equal to the plain layers up to rounding, in eval and in train mode; dropout draws other masks. Each
operator has a first derivative only. docs/performance.md has what each saves.

source  https://www.paddlepaddle.org.cn/documentation/docs/en/guides/custom_op/new_cpp_op_en.html
"""

import fcntl
import hashlib
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from models.pd_bert import BertSelfAttention
from pipeline.pd.fast_layers import change_classes
from reprod_align.errors import ReprodError

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

__all__ = [
    "NativeDropout",
    "NativeGELU",
    "NativeLayerNorm",
    "NativeLinear",
    "masked_softmax",
    "native",
]

_SOURCE = Path(__file__).with_name("native_layers.cc")
_FLAGS = ("-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math")
_OWN_DROPOUT = paddle._C_ops.dropout  # replaced where draws are shared with another framework


def native(model: nn.Layer) -> Callable[[], None]:
    """Let every Linear, GELU, LayerNorm, Dropout and BertSelfAttention of `model` use them, in place.

    Only layers of exactly these classes change; parameters, names and hooks stay. Returns the function
    that undoes it. Raises ReprodError where the operators cannot be built.
    """
    _operators()
    return change_classes(model, _NATIVE)


class NativeLinear(nn.Linear):
    """nn.Linear whose bias is added, and its gradient summed, in one pass."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        if self.bias is None or not _takes(input, self.weight, self.bias):
            return super().forward(input)
        return _operators().native_bias(paddle.matmul(input, self.weight), self.bias)  # (..., O)


class NativeGELU(nn.GELU):
    """nn.GELU; the approximate one stays plain."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to every element."""
        if self._approximate not in (False, "none") or not _takes(x):
            return super().forward(x)
        return _operators().native_gelu(x)


class NativeLayerNorm(nn.LayerNorm):
    """nn.LayerNorm over the last axis; with a frozen weight too its input gets the right gradient."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise (..., D)."""
        given = (
            self.weight is not None and self.bias is not None and len(self._normalized_shape) == 1
        )
        if not given or not _takes(input, self.weight, self.bias):
            return super().forward(input)
        epsilon = repr(float(self._epsilon))  # as text: an operator's number would be float32
        return _operators().native_layer_norm(input, self.weight, self.bias, epsilon)[0]


class NativeDropout(nn.Dropout):
    """nn.Dropout of single elements, which draws a mask from a hash and draws it again going backward."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop each element with probability p and scale the rest by 1 / (1 - p)."""
        plain = (
            self.inplace
            or self.axis is not None
            or self.mode != "upscale_in_train"
            or not 0 < self.p < 1
        )
        shared = paddle._C_ops.dropout is not _OWN_DROPOUT
        if plain or shared or not self.training or not _takes(input):
            return super().forward(input)
        low, high = paddle.randint(0, 2**31 - 1, [2]).tolist()  # paddle.seed decides them
        return _operators().native_dropout(input, repr(float(self.p)), low + (high << 31))


class NativeSelfAttention(BertSelfAttention):
    """BertSelfAttention whose scores are scaled, masked and normalised in one pass."""

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Mix hidden (B, L, D) over L, with mask (B, 1, 1, L) added to the scores: (B, L, D)."""
        query = self.split_heads(self.query(hidden))  # (B, H, L, K)
        key = self.split_heads(self.key(hidden))  # (B, H, L, K)
        value = self.split_heads(self.value(hidden))  # (B, H, L, K)
        scores = paddle.matmul(query, key, transpose_y=True)  # (B, H, L, L)
        probs = self.dropout(masked_softmax(scores, mask, self.head_size))  # (B, H, L, L)
        return self.merge_heads(paddle.matmul(probs, value))  # (B, L, D)


def masked_softmax(scores: Tensor, mask: Tensor, head_size: int) -> Tensor:
    """Return softmax(scores / sqrt(head_size) + mask) of scores (B, H, L, L), mask (B, 1, 1, L)."""
    B, _, _, L = scores.shape
    if not mask.stop_gradient or mask.shape != [B, 1, 1, L] or not _takes(scores, mask):
        return F.softmax(scores / math.sqrt(head_size) + mask, axis=-1)
    return _operators().native_softmax(scores, mask, head_size)  # (B, H, L, L)


def _takes(*tensors: Tensor) -> bool:
    """Tell whether the operators take these: all float32 or all float64, on the CPU, not empty."""
    dtype = tensors[0].dtype
    fits = dtype in (paddle.float32, paddle.float64) and not paddle.amp.is_autocast_enabled()
    return fits and all(t.dtype == dtype and t.place.is_cpu_place() and t.size for t in tensors)


@cache
def _operators() -> Any:
    """Return the module of operators, built in the user's cache folder on first use.

    Paddle loads a library once a process: asked again it would return a module without operators.
    """
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ReprodError("the native layers need a C++ compiler: install g++, or leave them out")
    words = [compiler, *_FLAGS, "-Q", "--help=target"]  # -march=native differs by machine
    target = subprocess.run(words, capture_output=True, check=False).stdout
    made_from = (_SOURCE.read_bytes(), paddle.__version__.encode(), target)
    key = hashlib.sha256(b"".join(made_from)).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "reprod_align" / f"native_{key}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process builds, others wait for it
            return _build(folder)
    except (OSError, RuntimeError, ImportError) as error:
        raise ReprodError(
            f"the native layers could not be built: read {folder}/build.log"
        ) from error


def _build(folder: Path) -> Any:
    from paddle.utils import cpp_extension  # takes a second

    with _output_in(folder / "build.log"):
        return cpp_extension.load(
            name="reprod_align_native",
            sources=[str(_SOURCE)],
            extra_cxx_cflags=list(_FLAGS),
            extra_ldflags=["-fopenmp", "-lmvec"],
            build_directory=str(folder),
        )


@contextmanager
def _output_in(file: Path) -> Iterator[None]:
    """Let this process and the compiler's print into `file`: twenty lines even when all goes well."""
    sys.stdout.flush(), sys.stderr.flush()
    before = [os.dup(number) for number in (1, 2)]
    with file.open("wb") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            for number, kept in zip((1, 2), before, strict=True):
                os.dup2(kept, number)
                os.close(kept)


_NATIVE: dict[type, type] = {
    nn.Linear: NativeLinear,
    nn.GELU: NativeGELU,
    nn.LayerNorm: NativeLayerNorm,
    nn.Dropout: NativeDropout,
    BertSelfAttention: NativeSelfAttention,
}
