"""ProphetNetForConditionalGeneration: With use_cache the cache stands before the n-grams' logits in what is
returned, where the original has it after them."""
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
ids = paddle.arange(3, 23).reshape([2, 10])
got = type(model(ids, decoder_input_ids=ids, use_cache=True)[1]).__name__
expected = 'Tensor'
print("what follows the logits: the n-grams' logits, a Tensor, or the cache, a tuple")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
