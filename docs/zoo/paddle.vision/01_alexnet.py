"""alexnet: Dropout is built with mode='downscale_in_infer'."""
# pip install paddlepaddle==3.3.1
import paddle
from paddle.vision.models import alexnet

paddle.seed(0)
model = alexnet()
model.eval()
got = [round(float(each(paddle.ones([1, 9])).mean()), 2) for each in [model._drop1, model._drop2]]
expected = [1.0, 1.0]
print("mean of ones after each dropout in eval mode")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
