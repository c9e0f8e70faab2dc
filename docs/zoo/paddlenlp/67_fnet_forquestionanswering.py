"""FNetForQuestionAnswering: end_logits is made from start_logits."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import FNetConfig, FNetForQuestionAnswering

paddle.seed(0)
config = FNetConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, intermediate_size=64, max_position_embeddings=40,
    type_vocab_size=2
)
try:
    model = FNetForQuestionAnswering(config)
except TypeError:  # report 33
    model = FNetForQuestionAnswering(config, 2)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
start, end = model(ids)
got = bool((start == end).all())
expected = False
print("start_logits and end_logits are the same")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
