"""Faults of paddle.vision's models in Paddle 3.3.1, each with its remedy."""

from examples.zoo.mending import Fault

FAULTS: tuple[Fault, ...] = ()
