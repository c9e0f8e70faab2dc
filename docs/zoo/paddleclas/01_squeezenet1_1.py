"""SqueezeNet1_1: Dropout is built with mode='downscale_in_infer'."""
# pip install paddlepaddle==3.3.1 paddleclas==2.6.0
import paddle
from paddleclas.ppcls.arch.backbone.model_zoo.squeezenet import SqueezeNet1_1

paddle.seed(0)
model = SqueezeNet1_1(class_num=10)
model.eval()
got = [round(float(each(paddle.ones([1, 9])).mean()), 2) for each in [model._drop]]
expected = [1.0]
print("mean of ones after each dropout in eval mode")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
