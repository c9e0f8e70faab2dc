"""FNetModel: The Fourier transform runs over the batch as well."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import FNetConfig, FNetModel

paddle.seed(0)
config = FNetConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, intermediate_size=64, max_position_embeddings=40,
    type_vocab_size=2
)
model = FNetModel(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
first, second = [model(x)[0][:1] for x in (ids, ids[:1])]
got = round(float((first - second).abs().max()), 3)
expected = 0.0
print("change of the first example's output when the second one is taken away")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
