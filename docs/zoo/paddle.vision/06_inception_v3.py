"""inception_v3: Dropout is built with mode='downscale_in_infer'."""
# pip install paddlepaddle==3.3.1
import paddle
from paddle.vision.models import inception_v3

paddle.seed(0)
model = inception_v3()
model.eval()
got = (model.dropout.p, model.dropout.mode)
expected = (0.5, 'upscale_in_train')
print("rate and mode of the dropout")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
