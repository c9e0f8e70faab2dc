"""CodeGenModel: paddle.where takes a condition of booleans, and the mask is a float buffer."""
# pip install paddlepaddle==3.3.1 paddlenlp==2.8.1 aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from paddlenlp.transformers import CodeGenConfig, CodeGenModel

paddle.seed(0)
config = CodeGenConfig(
    vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=40, pad_token_id=0, rotary_dim=4, n_ctx=40
)
model = CodeGenModel(config)
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
