"""Faults of ppdiffusers 0.29.0's models, each with its remedy."""

from examples.zoo.mending import Fault
from examples.zoo.symptom import Symptom, raise_error

_TINY = "from ppdiffusers import AutoencoderTiny\n\nmodel = AutoencoderTiny()\nmodel.eval()"
_SD3 = """\
from ppdiffusers import SD3Transformer2DModel

model = SD3Transformer2DModel(
    sample_size=8, in_channels=4, out_channels=4, num_layers=1, num_attention_heads=2, attention_head_dim=8,
    joint_attention_dim=8, caption_projection_dim=16, pooled_projection_dim=8, pos_embed_max_size=8
)
model.eval()"""

FAULTS = (
    Fault(
        "AutoencoderTiny",
        "ppdiffusers.models.autoencoder_tiny",
        "x / 2 * m is (x / 2) * m, where the original divides by 2 * m: with a magnitude of 3 the latents "
        "are nine times as large, and clipped",
        (
            (
                "((x / 2 * self.latent_magnitude) + self.latent_shift)",
                "(x / (2 * self.latent_magnitude) + self.latent_shift)",
            ),
        ),
        line=160,
        symptom=Symptom(
            "a latent of 1 in [0, 1]: 1 / (2 * 3) + 0.5",
            "round(float(model.scale_latents(paddle.ones([]))), 4)",
            "0.6667",
            make=_TINY,
        ),
    ),
    Fault(
        "AutoencoderTiny",
        "ppdiffusers.models.autoencoder_tiny",
        'cast("byte") is int8, as in NumPy, where PyTorch\'s byte() is uint8: each latent in the upper half '
        "wraps to a negative number",
        (('.round().cast("byte")', '.round().cast("uint8")'),),
        line=353,
        symptom=Symptom(
            "every latent that reaches the decoder lies in [-3, 3]",
            "bool((seen[0].abs() <= 3).all())",
            "True",
            "seen = []\n"
            "model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))\n"
            "model(paddle.rand([1, 3, 64, 64]))",
            make=_TINY,
        ),
    ),
    Fault(
        "SD3Transformer2DModel",
        "ppdiffusers.models.attention_processor",
        "The attention calls F.scaled_dot_product_attention_, which ppdiffusers adds to Paddle for a GPU or "
        "an NPU alone: elsewhere the model raises AttributeError on every input",
        (("F.scaled_dot_product_attention_(", "F.scaled_dot_product_attention("),),
        line=959,
        within="JointAttnProcessor2_5",
        symptom=raise_error(
            "model(x, words, pooled, timestep=step)",
            "x, words, pooled = paddle.rand([2, 4, 8, 8]), paddle.rand([2, 5, 8]), paddle.rand([2, 8])\n"
            "step = paddle.to_tensor([3, 7])",
            _SD3,
        ),
    ),
    Fault(
        "SD3Transformer2DModel",
        "ppdiffusers.models.normalization",
        "A LayerNorm without elementwise_affine has a bias nevertheless: no checkpoint holds it, and "
        "training moves it",
        (
            (
                "weight_attr=elementwise_affine, bias_attr=bias)",
                "weight_attr=elementwise_affine, bias_attr=elementwise_affine and bias)",
            ),
        ),
        line=184,
        within="AdaLayerNormContinuous",
        symptom=Symptom(
            "a LayerNorm without elementwise_affine has no bias",
            "layer.norm.bias is None",
            "True",
            "layer = AdaLayerNormContinuous(8, 8, elementwise_affine=False)",
            make="from ppdiffusers.models.normalization import AdaLayerNormContinuous\n",
        ),
    ),
)
