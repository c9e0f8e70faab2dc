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
)
