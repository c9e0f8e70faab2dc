"""FNetForQuestionAnswering: The constructor asks for num_labels beside the configuration, so that
from_pretrained and every caller of the other heads' kind raise TypeError."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import FNetConfig, FNetForQuestionAnswering

paddle.seed(0)
config = FNetConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, intermediate_size=64, max_position_embeddings=40,
    type_vocab_size=2
)
try:
    FNetForQuestionAnswering(config)
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}".splitlines()[0]
got = error
expected = None
print("what FNetForQuestionAnswering(config) raises")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
