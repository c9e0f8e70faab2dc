"""A pair for `pair --parallel tp=2`: LLaMA of PaddleNLP on two ranks, of transformers in one process.

With SP=1 for `--parallel tp=2,sp`. Both sides keep rotary tables in float32, each rounded in its own way;
here both take the same frequencies, and Paddle the tables in float64. OWN_TABLES=1 leaves them alone.
"""

import os

import numpy as np

SEQUENCE_PARALLEL, OWN_TABLES = bool(os.environ.get("SP")), bool(os.environ.get("OWN_TABLES"))
LENGTH = 40
SHAPE = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": LENGTH,
    "num_hidden_layers": 2,
}
FREQUENCIES = (1.0 / 10000.0 ** (np.arange(0, 8, 2) / 8)).astype("float32")
_source = np.random.default_rng(0)
inputs = {"input_ids": _source.integers(3, 96, (2, 10)), "labels": _source.integers(3, 96, (2, 10))}


def torch_model():
    import torch
    from torch import nn
    from torch.nn import functional
    from transformers import LlamaConfig, LlamaForCausalLM

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            made = {
                "use_cache": False,
                "tie_word_embeddings": False,
                "attn_implementation": "eager",
            }
            self.llama = LlamaForCausalLM(LlamaConfig(**SHAPE, **made))

        def forward(self, input_ids, labels):
            logits = self.llama(input_ids).logits  # (B, L, V)
            return logits, functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    torch.manual_seed(0)
    model = Model()
    if not OWN_TABLES:
        model.llama.model.rotary_emb.inv_freq = torch.from_numpy(FREQUENCIES.copy())
    return model


def paddle_model():
    from paddle import nn
    from paddle.distributed import fleet
    from paddle.distributed.fleet.utils.sequence_parallel_utils import (
        register_sequence_parallel_allreduce_hooks,
    )
    from paddlenlp.transformers import LlamaConfig, LlamaForCausalLM

    group = fleet.get_hybrid_communicate_group()

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.llama = LlamaForCausalLM(
                LlamaConfig(
                    **SHAPE, use_cache=False, use_flash_attention=False, tensor_parallel_output=False,
                    sequence_parallel=SEQUENCE_PARALLEL, seq_length=10,
                    tensor_parallel_degree=group.get_model_parallel_world_size(),
                    tensor_parallel_rank=group.get_model_parallel_rank(),
                )
            )  # fmt: skip
            self.loss = nn.CrossEntropyLoss()

        def forward(self, input_ids, labels):
            logits = self.llama(input_ids)[0]  # (B, L, V)
            return logits, self.loss(logits.flatten(0, 1), labels.flatten())

    model = Model()
    if not OWN_TABLES:
        write_tables(model)
    if SEQUENCE_PARALLEL:
        # as PaddleNLP's trainer does: without it the gradients of biases and norms are a rank's part
        register_sequence_parallel_allreduce_hooks(model, 1, False)
    return fleet.distributed_model(model)


def write_tables(model):
    """Give the rotary embeddings of PaddleNLP their tables in float64, (1, L, 1, D)."""
    import paddle

    angles = np.arange(LENGTH)[:, None] * np.tile(FREQUENCIES.astype("float64"), 2)  # (L, D)
    for layer in model.sublayers():
        if type(layer).__name__ == "LlamaRotaryEmbedding":
            layer.cos_cached = paddle.to_tensor(np.cos(angles)[None, :, None])
            layer.sin_cached = paddle.to_tensor(np.sin(angles)[None, :, None])


def torch_loss(output):
    return output[1]


def paddle_loss(output):
    return output[1]


def torch_optimizer(model):
    import torch

    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def paddle_optimizer(model):
    import paddle
    from paddle.distributed import fleet

    made = paddle.optimizer.AdamW(1e-3, parameters=model.parameters(), weight_decay=0.01)
    return fleet.distributed_optimizer(made)
