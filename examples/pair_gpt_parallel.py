"""A pair for `pair --parallel tp=2`: GPT-2 of PaddleNLP on two ranks, of transformers in one process.

With SP=1 for `--parallel tp=2,sp`. EPSILON=1e-5 leaves LayerNorm its own, which Paddle's kernel rounds to
float32.
"""

import os

import numpy as np

V, H, LENGTH = 96, 32, 40
EPSILON = float(os.environ.get("EPSILON", 2.0**-17))  # 7.6e-06: float32 holds it exactly
SEQUENCE_PARALLEL = bool(os.environ.get("SP"))
_source = np.random.default_rng(0)
inputs = {"input_ids": _source.integers(3, V, (2, 10)), "labels": _source.integers(3, V, (2, 10))}


def torch_model():
    import torch
    from torch import nn
    from torch.nn import functional
    from transformers import GPT2Config, GPT2LMHeadModel

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.gpt = GPT2LMHeadModel(
                GPT2Config(
                    vocab_size=V, n_embd=H, n_layer=2, n_head=4, n_positions=LENGTH, use_cache=False,
                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager",
                )
            )  # fmt: skip

        def forward(self, input_ids, labels):
            logits = self.gpt(input_ids).logits  # (B, L, V)
            return logits, functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    torch.manual_seed(0)
    model = Model()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = EPSILON
    return model


def paddle_model():
    from paddle import nn
    from paddle.distributed import fleet
    from paddle.distributed.fleet.utils.sequence_parallel_utils import (
        register_sequence_parallel_allreduce_hooks,
    )
    from paddlenlp.transformers import GPTConfig, GPTForCausalLM

    group = fleet.get_hybrid_communicate_group()

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.gpt = GPTForCausalLM(
                GPTConfig(
                    vocab_size=V, hidden_size=H, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=4 * H, max_position_embeddings=LENGTH, hidden_activation="gelu",
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, tensor_parallel_output=False,
                    sequence_parallel=SEQUENCE_PARALLEL, seq_length=10,
                    tensor_parallel_degree=group.get_model_parallel_world_size(),
                    tensor_parallel_rank=group.get_model_parallel_rank(),
                )
            )  # fmt: skip
            self.loss = nn.CrossEntropyLoss()
            for layer in self.sublayers():
                if isinstance(layer, nn.LayerNorm):
                    layer._epsilon = EPSILON

        def forward(self, input_ids, labels):
            logits = self.gpt(input_ids)  # (B, L, V)
            return logits, self.loss(logits.flatten(0, 1), labels.flatten())

    model = Model()
    if SEQUENCE_PARALLEL:
        # as PaddleNLP's trainer does: without it the gradients of biases and norms are a rank's part
        register_sequence_parallel_allreduce_hooks(model, 1, False)
    return fleet.distributed_model(model)


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
