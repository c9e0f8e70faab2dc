"""AdaLayerNormContinuous: A LayerNorm without elementwise_affine has a bias nevertheless."""
# pip install paddlepaddle==3.3.1 ppdiffusers==0.29.0 aistudio-sdk==0.2.6 huggingface_hub==0.25.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from ppdiffusers.models.normalization import AdaLayerNormContinuous

paddle.seed(0)
layer = AdaLayerNormContinuous(8, 8, elementwise_affine=False)
got = layer.norm.bias is None
expected = True
print("a LayerNorm without elementwise_affine has no bias")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
