"""ProphetNetForConditionalGeneration: The head is a parameter of its own although the configuration says
tie_word_embeddings=True."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import ProphetNetConfig, ProphetNetForConditionalGeneration

paddle.seed(0)
config = ProphetNetConfig(
    vocab_size=100, hidden_size=32, encoder_ffn_dim=64, decoder_ffn_dim=64, num_encoder_layers=2,
    num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4,
    max_position_embeddings=40, relative_max_distance=16, num_buckets=8
)
model = ProphetNetForConditionalGeneration(config)
model.eval()
got = sum(sorted(each.shape) == [32, 100] for each in model.parameters())
expected = 1
print("parameters of the tied table's size, 100 x 32")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
