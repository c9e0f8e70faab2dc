"""The reference: GPT2LMHeadModel of transformers, its weights random."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

CONFIG = dict(
    vocab_size=100,
    n_embd=32,
    n_layer=2,
    n_head=4,
    n_positions=40,
    pad_token_id=0,
    use_cache=False,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
)


def torch_model():
    """Return the model; every proof begins with the same weights."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**CONFIG))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter) * (0.1 if parameter.dim() < 2 else 0.02)
    return model
