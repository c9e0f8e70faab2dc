"""squeezenet1_1: The pools drop an incomplete last window."""
# pip install paddlepaddle==3.3.1
import paddle
from paddle.vision.models import squeezenet1_1

paddle.seed(0)
model = squeezenet1_1()
model.eval()
got = model._pool(paddle.zeros([1, 1, 54, 54])).shape[3]
expected = 27
print("width of 54 after the pool: 27 with ceil_mode=True")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
