"""The port: GPTForCausalLM of PaddleNLP."""

from paddlenlp.transformers import GPTConfig, GPTForCausalLM

CONFIG = dict(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    max_position_embeddings=40,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def paddle_model():
    """Return the model; its weights are replaced by the reference's."""
    return GPTForCausalLM(GPTConfig(**CONFIG))
