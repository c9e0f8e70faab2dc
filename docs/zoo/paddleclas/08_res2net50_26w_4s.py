"""Res2Net50_26w_4s: The first block of the first stage is built as the ones after it."""
# pip install paddlepaddle==3.3.1 paddleclas==2.6.0
import paddle
from paddleclas.ppcls.arch.backbone.model_zoo.res2net import Res2Net50_26w_4s

paddle.seed(0)
model = Res2Net50_26w_4s(class_num=10)
model.eval()
block = next(each for each in model.sublayers() if hasattr(each, 'pool2d_avg'))
given = []
block.conv1_list[1].register_forward_pre_hook(lambda _, each: given.append(each[0]))
x = paddle.rand([1, 64, 8, 8])
block(x)
got = bool((given[0] == paddle.split(block.conv0(x), 4, 1)[1]).all())
expected = True
print("the first block's second convolution is given its own split alone")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
