"""What a check compares, and what it says when the two sides differ."""

from typing import Literal

Stage = Literal[
    "forward", "loss", "training"
]  # how far `align` follows the models; each holds those before
