"""alexnet: The adaptive pool before the classifier is missing."""
# pip install paddlepaddle==3.3.1
import paddle
from paddle.vision.models import alexnet

paddle.seed(0)
model = alexnet()
model.eval()
try:
    model(paddle.zeros([1, 3, 256, 256]))
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}".splitlines()[0]
got = error
expected = None
print("what model(paddle.zeros([1, 3, 256, 256])) raises")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
