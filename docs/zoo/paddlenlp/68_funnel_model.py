"""FunnelModel: Without return_dict encoder and decoder return tuples, which are asked for names."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import FunnelConfig, FunnelModel

paddle.seed(0)
config = FunnelConfig(
    vocab_size=100, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64
)
model = FunnelModel(config)
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
