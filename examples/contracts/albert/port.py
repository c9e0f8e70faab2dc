"""The port: AlbertForQuestionAnswering of PaddleNLP."""

from paddlenlp.transformers import AlbertConfig, AlbertForQuestionAnswering

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


def paddle_model():
    """Return the model; its weights are replaced by the reference's."""
    return AlbertForQuestionAnswering(AlbertConfig(**CONFIG))
