"""DebertaV2Model: XDropout.backward returns two gradients, and Paddle wants one for each tensor that
forward was given."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import DebertaV2Config, DebertaV2Model

paddle.seed(0)
config = DebertaV2Config(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=40, type_vocab_size=0, relative_attention=True, max_relative_positions=-1,
    pos_att_type=['c2p', 'p2c'], position_biased_input=False
)
model = DebertaV2Model(config)
model.eval()
ids = paddle.arange(3, 23).reshape([2, 10])
model.train()
try:
    model(ids)[0].sum().backward()
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}".splitlines()[0]
got = error
expected = None
print("what model(ids)[0].sum().backward() raises")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
