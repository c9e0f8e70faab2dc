"""The reference: BloomForCausalLM of transformers, its weights random."""

import torch
from transformers import BloomConfig, BloomForCausalLM

CONFIG = dict(
    vocab_size=100,
    hidden_size=32,
    n_layer=2,
    n_head=4,
    use_cache=False,
)


def torch_model():
    """Return the model; every proof begins with the same weights."""
    torch.manual_seed(0)
    model = BloomForCausalLM(BloomConfig(**CONFIG))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter) * (0.1 if parameter.dim() < 2 else 0.02)
    return model
