"""RemBertModel: The attention's output layer is given the pair of values and probabilities."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import RemBertConfig, RemBertModel

paddle.seed(0)
config = RemBertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, input_embedding_size=16, output_embedding_size=16,
    classifier_dropout_prob=0.1
)
model = RemBertModel(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
try:
    model(ids)
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}".splitlines()[0]
got = error
expected = None
print("what model(ids) raises")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
