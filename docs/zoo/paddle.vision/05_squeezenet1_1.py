"""squeezenet1_1: The first convolution pads."""
# pip install paddlepaddle==3.3.1
import paddle
from paddle.vision.models import squeezenet1_1

paddle.seed(0)
model = squeezenet1_1()
model.eval()
got = model._conv(paddle.zeros([1, 3, 224, 224])).shape[3]
expected = 111
print("width of the first convolution's output, of an image of 224")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
