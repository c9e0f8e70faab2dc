"""LukeForMaskedLM: Without entities the head is given None, and raises ValueError."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import LukeConfig, LukeForMaskedLM

paddle.seed(0)
config = LukeConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=2, entity_vocab_size=20, entity_emb_size=16
)
model = LukeForMaskedLM(config)
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
