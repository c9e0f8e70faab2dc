"""MobileNetV3_small_x1_0: The gates' hard sigmoid has the slope 0.2."""
# pip install paddlepaddle==3.3.1 paddleclas==2.6.0
import paddle
from paddleclas.ppcls.arch.backbone.legendary_models.mobilenet_v3 import MobileNetV3_small_x1_0

paddle.seed(0)
model = MobileNetV3_small_x1_0(class_num=10)
model.eval()
gates = [each for each in model.sublayers() if type(each).__name__ == 'Hardsigmoid']
gate = gates[0]
got = round(float(gate(paddle.ones([]))), 4)
expected = 0.6667
print("the gate at 1: 1 / 6 + 0.5 in the paper")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
