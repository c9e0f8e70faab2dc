"""Faults of paddle.vision's models in Paddle 3.3.1, each with its remedy."""

from examples.zoo.mending import Fault

_SCALED = (
    "Dropout is built with mode='downscale_in_infer': in eval mode the values are multiplied by 1 - p, "
    "so that PyTorch's weights give other outputs"
)


def _scaled(name: str, module: str, *rates: str) -> Fault:
    """Return the fault that a network's dropouts scale in eval mode."""
    edits = [
        (f'Dropout(p={rate}, mode="downscale_in_infer")', f"Dropout(p={rate})") for rate in rates
    ]
    return Fault(name, f"paddle.vision.models.{module}", _SCALED, tuple(edits))


FAULTS = (
    Fault("alexnet", "paddle.vision.models.alexnet", _SCALED, tuple(
        (f'self._drop{number} = Dropout(p=0.5, mode="downscale_in_infer")',
         f"self._drop{number} = Dropout(p=0.5)") for number in (1, 2))),
    _scaled("squeezenet1_0, squeezenet1_1", "squeezenet", "0.5"),
    _scaled("inception_v3", "inceptionv3", "0.2"),
)  # fmt: skip
