"""The port: LlamaForCausalLM of PaddleNLP."""

from paddlenlp.transformers import LlamaConfig, LlamaForCausalLM

CONFIG = dict(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=40,
    num_key_value_heads=2,
    use_cache=False,
)


def paddle_model():
    """Return the model; its weights are replaced by the reference's."""
    return LlamaForCausalLM(LlamaConfig(**CONFIG))
