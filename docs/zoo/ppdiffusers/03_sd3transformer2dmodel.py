"""JointAttnProcessor2_5: The attention calls F.scaled_dot_product_attention_, which ppdiffusers adds to
Paddle for a GPU or an NPU alone."""
# pip install paddlepaddle==3.3.1 ppdiffusers==0.29.0 aistudio-sdk==0.2.6 huggingface_hub==0.25.2 datasets==3.6.0 pyarrow==20.0.0
import paddle
from ppdiffusers import SD3Transformer2DModel

paddle.seed(0)
model = SD3Transformer2DModel(
    sample_size=8, in_channels=4, out_channels=4, num_layers=1, num_attention_heads=2, attention_head_dim=8,
    joint_attention_dim=8, caption_projection_dim=16, pooled_projection_dim=8, pos_embed_max_size=8
)
model.eval()
x, words, pooled = paddle.rand([2, 4, 8, 8]), paddle.rand([2, 5, 8]), paddle.rand([2, 8])
step = paddle.to_tensor([3, 7])
try:
    model(x, words, pooled, timestep=step)
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}".splitlines()[0]
got = error
expected = None
print("what model(x, words, pooled, timestep=step) raises")
print(f"expected: {expected}\ngot:      {got}")
raise SystemExit(got != expected)
