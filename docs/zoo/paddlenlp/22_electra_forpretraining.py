"""ElectraDiscriminator: squeeze() without an axis also takes the batch away where it has one example, and
the sequence where it has one token."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import ElectraConfig, ElectraDiscriminator

paddle.seed(0)
config = ElectraConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, embedding_size=16
)
model = ElectraDiscriminator(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
got = list(model(ids[:1]).shape)
expected = [1, 10]
print("list(model(ids[:1]).shape)")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
