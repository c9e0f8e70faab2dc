"""ProphetNetNgramSelfAttention: The streams that predict lie as (ngram, batch, time) and are reshaped, not
transposed, to (ngram, time, batch)."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import ProphetNetConfig, ProphetNetModel

paddle.seed(0)
config = ProphetNetConfig(
    vocab_size=100, hidden_size=32, encoder_ffn_dim=64, decoder_ffn_dim=64, num_encoder_layers=2,
    num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4,
    max_position_embeddings=40, relative_max_distance=16, num_buckets=8
)
model = ProphetNetModel(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
first, second = [model(x, decoder_input_ids=x)[1][:1] for x in (ids, ids[:1])]
got = round(float((first - second).abs().max()), 3)
expected = 0.0
print("change of the first example's output when the second one is taken away")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
