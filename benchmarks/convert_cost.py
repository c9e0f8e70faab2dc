"""What `reprod-align convert` costs on a sharded checkpoint: time over `cp -r` and `sync`, and memory.

    python -m benchmarks.convert_cost                     (--gigabytes 5 --rounds 3 --folder DIR)

The checkpoint has LLaMA's tensors in TinyLlama's shapes, half of the bytes in bfloat16, half in float32.
In each round `cp -r` and a conversion by a map to each format alternate, everything being synced before;
the ratio is that of the medians. Memory is the most that the process held.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from reprod_align.conversion.rule import Rule
from reprod_align.conversion.weight_map import WeightMap, write_map
from reprod_align.weights.stored import DTYPES, Array
from reprod_align.weights.writing import write_checkpoint
from reprod_align.weights.writing.entry import Entry

import numpy as np

WIDTH, INNER, KEYS, WORDS = 2048, 5632, 256, 32000  # TinyLlama's
TARGETS = (
    "model.safetensors.index.json",
    "model_state.pdparams.index.json",
    "model_state.pdparams",
)
_SHARD = 10**9
_MATRICES = {
    "self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (KEYS, WIDTH),
    "self_attn.v_proj": (KEYS, WIDTH), "self_attn.o_proj": (WIDTH, WIDTH),
    "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER),
    "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,),
}  # fmt: skip


def main() -> None:
    """Write a checkpoint, measure, print a table, and take everything away again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        entries = list_entries(options.gigabytes * 1e9)
        prepare(Path(folder), entries)
        largest = max(entry.nbytes for entry in entries) / 1e6
        size = sum(entry.nbytes for entry in entries) / 1e9
        print(f"{size:.1f} GB in {len(entries)} tensors, the largest {largest:.0f} MB")
        print_table(measure(Path(folder), options.rounds))


def list_entries(size: float) -> list[Entry]:
    """Return tensors of about `size` bytes, half of it in each dtype."""
    found: list[Entry] = []
    for prefix, dtype in (("half", "bfloat16"), ("full", "float32")):
        left = size / 2
        for entry in _list_model(prefix, dtype):
            left -= entry.nbytes
            if left < 0:
                break
            found.append(entry)
    return found


def _list_model(prefix: str, dtype: str) -> Iterator[Entry]:
    yield Entry(f"{prefix}.embed_tokens.weight", dtype, (WORDS, WIDTH))
    yield Entry(f"{prefix}.lm_head.weight", dtype, (WORDS, WIDTH))
    for layer in range(1000):
        for name, shape in _MATRICES.items():
            yield Entry(f"{prefix}.layers.{layer}.{name}.weight", dtype, shape)


def prepare(folder: Path, entries: list[Entry]) -> None:
    """Write the checkpoint as PyTorch's, and the map that makes it Paddle's."""
    largest = max(entry.nbytes for entry in entries)
    bits = np.random.default_rng(0).integers(0, 256, largest, dtype=np.uint8)
    known = {entry.name: entry for entry in entries}

    def load(name: str) -> Array:
        entry = known[name]
        return bits[: entry.nbytes].view(DTYPES[entry.dtype]).reshape(entry.shape)

    with write_checkpoint(folder / "src" / TARGETS[0], "torch", entries, load, _SHARD):
        pass
    rules = [Rule((entry.name,), (entry.name,), (False,)) for entry in entries]
    turned = [replace(rule, transposed=(True,)) if _is_linear(entry) else rule
              for rule, entry in zip(rules, entries, strict=True)]  # fmt: skip
    write_map(folder / "map.json", WeightMap(tuple(turned)))


def _is_linear(entry: Entry) -> bool:
    return len(entry.shape) == 2 and "embed" not in entry.name


def measure(folder: Path, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return seconds and megabytes of each round, by what was done."""
    copy = f"cp -r {folder}/src {folder}/out && sync {folder}/out/*"
    work = {"cp -r and sync": ["sh", "-c", copy]}
    for target in TARGETS:
        words = [
            "convert",
            f"{folder}/src",
            f"{folder}/out/{target}",
            "--map",
            f"{folder}/map.json",
        ]
        work[target] = [sys.executable, "-m", "reprod_align", *words, "--no-check",
                        "--shard-size", str(_SHARD)]  # fmt: skip
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, command in work.items():
            os.sync()
            found[name].append(_run(command))
            shutil.rmtree(folder / "out")
    return found


def _run(command: list[str]) -> tuple[float, float]:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, used.ru_maxrss / 1024


def print_table(found: dict[str, list[tuple[float, float]]]) -> None:
    """Print the medians, and their ratios to the first row's."""
    first = statistics.median(seconds for seconds, _ in next(iter(found.values())))
    print(f"{'':34s} {'seconds':>8s} {'ratio':>6s} {'memory':>10s}")
    for name, rounds in found.items():
        seconds = statistics.median(one for one, _ in rounds)
        memory = max(most for _, most in rounds)
        print(f"{name:34s} {seconds:8.1f} {seconds / first:6.2f} {memory:7.0f} MB")


if __name__ == "__main__":
    main()
