"""MobileNetV2: The dropout before the classifier is missing."""
# pip install paddlepaddle==3.3.1 paddleclas==2.6.0
import paddle
from paddleclas.ppcls.arch.backbone.model_zoo.mobilenet_v2 import MobileNetV2

paddle.seed(0)
model = MobileNetV2(class_num=10)
model.eval()
image = paddle.ones([2, 3, 64, 64])
model.train()
got = bool((model(image) == model(image)).all())
expected = False
print("two passes in train mode give the same")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
