"""AutoencoderTiny: x / 2 * m is (x / 2) * m, where the original divides by 2 * m."""
# pip install paddlepaddle==3.3.1 ppdiffusers==0.29.0 aistudio-sdk==0.2.6 huggingface_hub==0.25.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from ppdiffusers import AutoencoderTiny

paddle.seed(0)
model = AutoencoderTiny()
model.eval()
got = round(float(model.scale_latents(paddle.ones([]))), 4)
expected = 0.6667
print("a latent of 1 in [0, 1]: 1 / (2 * 3) + 0.5")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
