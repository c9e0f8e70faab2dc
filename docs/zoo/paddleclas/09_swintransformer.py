"""SwinTransformerBlock: Windows are shifted, and masked, where one window holds the whole image too, as in
the last stage of each published Swin."""
# pip install paddlepaddle==3.3.1 paddleclas==2.6.0
import paddle
from paddleclas.ppcls.arch.backbone.legendary_models.swin_transformer import SwinTransformerBlock

paddle.seed(0)
block = SwinTransformerBlock(8, (4, 4), num_heads=2, window_size=4, shift_size=2)
got = block.shift_size
expected = 0
print("shift of a block whose one window holds the whole image")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
