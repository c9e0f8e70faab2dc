"""Converting a sharded checkpoint by a map, beside `cp -r` and `sync`: 5 GB, half bfloat16, half float32.

The tensors are LLaMA's in TinyLlama's shapes, in shards of 1 GB; everything is synced before a turn.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.figures.rows import Curve, Row
from reprod_align.base.blocks import Array
from reprod_align.conversion import Conversion, convert
from reprod_align.conversion.weight_map import WeightMap, read_map, write_map
from reprod_align.match import TensorPair
from reprod_align.weights.stored import DTYPES, TensorEntry
from reprod_align.weights.writing import write_checkpoint

import numpy as np

TITLE = ("Converting a sharded checkpoint of 5 GB", "转换 5 GB 的分片 checkpoint")
_HERE = "benchmarks.figures.convert"
_SIZE = float(os.environ.get("BENCH_CONVERT_GB", 5.0)) * 1e9
_SHARD = 10**9
_SHARDED = "model.safetensors.index.json"
_MOST = 2 * 262 + 300
"""MB: the largest tensor twice, and 300"""

Work = Callable[[], object]

ROWS = (
    Row(("to sharded safetensors: `convert` / `cp -r` and `sync`",
         "写成分片 safetensors：`convert` / `cp -r` 加 `sync`"),
        f"{_HERE}:convert_to_safetensors", 2.0, f"{_HERE}:copy"),
    Row(("to sharded `.pdparams`: `convert` / `cp -r` and `sync`",
         "写成分片 `.pdparams`：`convert` / `cp -r` 加 `sync`"),
        f"{_HERE}:convert_to_pdparams", 2.0, f"{_HERE}:copy"),
    Row(("`convert`: memory, MB (largest tensor: 262 MB)", "`convert`：内存，MB（最大张量：262 MB）"),
        f"{_HERE}:convert_to_pdparams", _MOST, unit="MB", rounds=1),
    Row(("`convert`: read and written / `cp -r`", "`convert`：读写的总量 / `cp -r`"),
        f"{_HERE}:convert_to_pdparams", 1.01, f"{_HERE}:copy", "GB of I/O", 1),
)  # fmt: skip
CURVES: tuple[Curve, ...] = ()

WIDTH, INNER, KEYS, WORDS = 2048, 5632, 256, 32000  # TinyLlama's
_MATRICES = {
    "self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (KEYS, WIDTH),
    "self_attn.v_proj": (KEYS, WIDTH), "self_attn.o_proj": (WIDTH, WIDTH),
    "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER),
    "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,),
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Write the checkpoint and the map."""
    write_source(folder, list_entries(_SIZE))


def copy(folder: Path) -> Work:
    """Return the copying of the files, until they are on the disk."""
    out = _begin(folder)
    command = f"cp -r {folder}/src {out} && sync {out}/*"
    return lambda: subprocess.run(["sh", "-c", command], check=True)


def convert_to_safetensors(folder: Path) -> Work:
    """Return the conversion to the format that the source has."""
    return _convert(folder, _SHARDED)


def convert_to_pdparams(folder: Path) -> Work:
    """Return the conversion to Paddle's own format."""
    return _convert(folder, "model_state.pdparams.index.json")


def _convert(folder: Path, target: str) -> Work:
    out, found = _begin(folder), read_map(folder / "map.json")
    order = Conversion(folder / "src", out / target, check=False, shard_size=_SHARD)
    return lambda: convert(order, None, found)


def _begin(folder: Path) -> Path:
    """Return a folder that is missing, everything being on the disk."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    os.sync()
    return folder / "out"


def list_entries(size: float) -> list[TensorEntry]:
    """Return tensors of about `size` bytes, half of it in each dtype."""
    found: list[TensorEntry] = []
    for prefix, dtype in (("half", "bfloat16"), ("full", "float32")):
        left = size / 2
        for entry in _list_model(prefix, dtype):
            left -= entry.nbytes
            if left < 0:
                break
            found.append(entry)
    return found


def _list_model(prefix: str, dtype: str) -> Iterator[TensorEntry]:
    yield TensorEntry(f"{prefix}.embed_tokens.weight", dtype, (WORDS, WIDTH))
    yield TensorEntry(f"{prefix}.lm_head.weight", dtype, (WORDS, WIDTH))
    for layer in range(1000):
        for name, shape in _MATRICES.items():
            yield TensorEntry(f"{prefix}.layers.{layer}.{name}.weight", dtype, shape)


def write_source(folder: Path, entries: list[TensorEntry]) -> None:
    """Write the checkpoint as PyTorch's, and the map that makes it Paddle's."""
    largest = max(entry.nbytes for entry in entries)
    bits = np.random.default_rng(0).integers(0, 256, largest, dtype=np.uint8)
    known = {entry.name: entry for entry in entries}

    def load(name: str) -> Array:
        entry = known[name]
        return bits[: entry.nbytes].view(DTYPES[entry.dtype]).reshape(entry.shape)

    with write_checkpoint(folder / "src" / _SHARDED, "torch", entries, load, _SHARD):
        pass
    rules = [TensorPair((entry.name,), (entry.name,), (False,)) for entry in entries]
    turned = [replace(rule, transposed=(True,)) if _is_linear(entry) else rule
              for rule, entry in zip(rules, entries, strict=True)]  # fmt: skip
    write_map(folder / "map.json", WeightMap(tuple(turned)))


def _is_linear(entry: TensorEntry) -> bool:
    return len(entry.shape) == 2 and "embed" not in entry.name
