"""AutoencoderTiny: cast("byte") is int8, as in NumPy, where PyTorch's byte() is uint8."""
# pip install paddlepaddle==3.3.1 ppdiffusers==0.29.0 aistudio-sdk==0.2.6 huggingface_hub==0.25.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from ppdiffusers import AutoencoderTiny

paddle.seed(0)
model = AutoencoderTiny()
model.eval()
seen = []
model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
model(paddle.rand([1, 3, 64, 64]))
got = bool((seen[0].abs() <= 3).all())
expected = True
print("every latent that reaches the decoder lies in [-3, 3]")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
