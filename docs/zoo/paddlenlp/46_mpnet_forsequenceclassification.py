"""MPNetForSequenceClassification: The head lacks the dropout before its dense layer."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import MPNetConfig, MPNetForSequenceClassification

paddle.seed(0)
config = MPNetConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, layer_norm_eps=1e-12
)
model = MPNetForSequenceClassification(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
calls = []
model.dropout.register_forward_post_hook(lambda *_: calls.append(1))
model(ids)
got = len(calls)
expected = 2
print("times that dropout runs in one forward pass")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
