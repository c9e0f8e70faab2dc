"""Res2Net50_26w_4s: The mean of the last split leaves padding out."""
# pip install paddlepaddle==3.3.1 paddleclas==2.6.0
import paddle
from paddleclas.ppcls.arch.backbone.model_zoo.res2net import Res2Net50_26w_4s

paddle.seed(0)
model = Res2Net50_26w_4s(class_num=10)
model.eval()
block = next(each for each in model.sublayers() if hasattr(each, 'pool2d_avg'))
ones = paddle.ones([1, 1, 4, 4])
got = round(float(block.pool2d_avg(ones)[0, 0, 0, 0]), 2)
expected = 0.44
print("corner of the mean of ones, padding counted: 4 / 9")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
