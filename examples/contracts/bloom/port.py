"""The port: BloomForCausalLM of PaddleNLP."""

from paddlenlp.transformers import BloomConfig, BloomForCausalLM

CONFIG = dict(
    vocab_size=100,
    hidden_size=32,
    n_layer=2,
    n_head=4,
    use_cache=False,
)


def paddle_model():
    """Return the model; its weights are replaced by the reference's."""
    return BloomForCausalLM(BloomConfig(**CONFIG))
