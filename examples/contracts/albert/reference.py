"""The reference: AlbertForQuestionAnswering of transformers, its weights random."""

import torch
from transformers import AlbertConfig, AlbertForQuestionAnswering

CONFIG = dict(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=40,
    type_vocab_size=2,
    embedding_size=16,
    hidden_act="gelu",
)


def torch_model():
    """Return the model; every proof begins with the same weights."""
    torch.manual_seed(0)
    model = AlbertForQuestionAnswering(AlbertConfig(**CONFIG))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter) * (0.1 if parameter.dim() < 2 else 0.02)
    return model
