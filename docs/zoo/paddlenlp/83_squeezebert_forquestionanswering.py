"""SqueezeBertForQuestionAnswering: forward takes no attention_mask."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import SqueezeBertConfig, SqueezeBertForQuestionAnswering

paddle.seed(0)
config = SqueezeBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, embedding_size=32, q_groups=2, k_groups=2, v_groups=2,
    post_attention_groups=1, intermediate_groups=2, output_groups=2
)
model = SqueezeBertForQuestionAnswering(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
try:
    model(ids, attention_mask=paddle.ones_like(ids))
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}".splitlines()[0]
got = error
expected = None
print("what model(ids, attention_mask=paddle.ones_like(ids)) raises")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
