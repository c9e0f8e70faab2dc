"""Faults of paddle.nn's layers in Paddle 3.3.1, each with its remedy."""

from examples.zoo.mending import Fault

FAULTS: tuple[Fault, ...] = ()
