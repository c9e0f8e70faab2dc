"""Faults of ppdiffusers 0.29.0's models, each with its remedy."""

from examples.zoo.mending import Fault

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
    ),
    Fault(
        "AutoencoderTiny",
        "ppdiffusers.models.autoencoder_tiny",
        'cast("byte") is int8, as in NumPy, where PyTorch\'s byte() is uint8: each latent in the upper half '
        "wraps to a negative number",
        (('.round().cast("byte")', '.round().cast("uint8")'),),
        line=353,
    ),
    Fault(
        "SD3Transformer2DModel",
        "ppdiffusers.models.attention_processor",
        "The attention calls F.scaled_dot_product_attention_, which ppdiffusers adds to Paddle for a GPU or "
        "an NPU alone: elsewhere the model raises AttributeError on every input",
        (("F.scaled_dot_product_attention_(", "F.scaled_dot_product_attention("),),
        line=959,
        within="JointAttnProcessor2_5",
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
    ),
)
