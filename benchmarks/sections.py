"""Judges a LLaMA of any size in sections, and says what it took: time, memory, sections.

    python -m benchmarks.sections FOLDER [--layers 22] [--fault 13] [--section-size 70000000] [--jobs 2]

FOLDER gets random weights as sharded safetensors in bfloat16, unless it has them; delete it
afterwards. The shape is TinyLlama's (1.1 B parameters, 2.2 GB); --hidden makes others.
--fault N makes layer N of the port divide by another constant in its second norm.
"""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

_WRONG = 1e-5  # in place of 1e-6
_EVERY = 0.05  # seconds


def main() -> None:
    """Make the weights, judge the pair, print the report and what it took."""
    options = parse_arguments()
    if not (options.folder / "model.safetensors.index.json").is_file():
        write_weights(options)
    from reprod_align.sections import align_sections

    ids = np.random.default_rng(0).integers(1, options.vocabulary, (2, options.length))
    began, peak, done = time.perf_counter(), [0], Event()
    Thread(target=watch_memory, args=(peak, done), daemon=True).start()
    report = align_sections(
        lambda: make_torch(options),
        lambda: make_paddle(options),
        {"input_ids": ids},
        options.folder,
        section_size=options.section_size,
        state=options.state,
        jobs=options.jobs,
    )
    done.set()
    print(report)
    wall, used = time.perf_counter() - began, time.process_time()
    print(f"\n{wall:.0f} s, {used:.0f} s of processor time, "
          f"at most {peak[0] / 2**30:.2f} GiB resident; without what workers took")  # fmt: skip


def parse_arguments() -> Namespace:
    """Return the command's arguments."""
    parser = ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--fault", type=int)
    parser.add_argument("--section-size", type=int, default=70_000_000)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


def configure(options: Namespace) -> dict[str, Any]:
    """Return what both configurations take. TinyLlama: hidden 2048, 32 heads of 64, 4 of keys and values."""
    return {
        "vocab_size": options.vocabulary,
        "hidden_size": options.hidden,
        "intermediate_size": options.hidden * 11 // 4,
        "num_hidden_layers": options.layers,
        "num_attention_heads": options.hidden // 64,
        "num_key_value_heads": max(1, options.hidden // 512),
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "use_cache": False,
        "pad_token_id": 0,
        "tie_word_embeddings": False,
    }


def make_torch(options: Namespace) -> Any:
    """Return transformers' model."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**configure(options), attn_implementation="eager"))


def make_paddle(options: Namespace) -> Any:
    """Return PaddleNLP's model, with a wrong constant if one is asked for."""
    from paddlenlp.transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**configure(options)))
    if options.fault is not None:
        model.llama.layers[options.fault].post_attention_layernorm.variance_epsilon = _WRONG
    return model


def write_weights(options: Namespace) -> None:
    """Write random weights, one shard for each layer and one for the rest."""
    import torch
    from safetensors.torch import save_file

    options.folder.mkdir(parents=True, exist_ok=True)
    index = {}
    for number, shard in enumerate(draw_shards(options)):
        name = f"model-{number:05}.safetensors"
        save_file({key: torch.from_numpy(values).bfloat16() for key, values in shard.items()},
                  options.folder / name, {"format": "pt"})  # fmt: skip
        index |= dict.fromkeys(shard, name)
    text = json.dumps({"metadata": {}, "weight_map": index})
    (options.folder / "model.safetensors.index.json").write_text(text)


def draw_shards(options: Namespace) -> Iterator[dict[str, Any]]:
    """Yield random values by name: matrices near 0, scales near 1."""
    from reprod_align.backends.torch import build_unfilled

    with build_unfilled():
        model = make_torch(options)
    source = np.random.default_rng(1)
    shards: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, parameter in model.named_parameters():
        key = ".".join(name.split(".")[:3])
        shards.setdefault(key, {})[name] = tuple(parameter.shape)
    for shard in shards.values():
        yield {
            name: source.standard_normal(shape, np.float32) * 0.02 + (len(shape) == 1)
            for name, shape in shard.items()
        }


def watch_memory(peak: list[int], done: Event) -> None:
    """Keep the largest resident size, which the system itself can forget."""
    while not done.wait(_EVERY):
        text = Path("/proc/self/status").read_text()
        known = next(line for line in text.splitlines() if line.startswith("VmRSS"))
        peak[0] = max(peak[0], int(known.split()[1]) * 1024)


if __name__ == "__main__":
    main()
