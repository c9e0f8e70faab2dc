"""Faults of paddle.nn's layers in Paddle 3.3.1: those in kernels are in docs/zoo/paddle.md."""

from examples.zoo.mending import Fault

FAULTS: tuple[Fault, ...] = ()

# Why a pair differs, by the end of its name.
NOTES = {
    "PReLU": "[Paddle's kernel](zoo/paddle.md#the-backward-pass-of-prelu-crashes)",
    "InstanceNorm1d": "[Paddle's kernel](zoo/paddle.md#the-backward-pass-of-instancenorm-raises)",
    "InstanceNorm2d": "[Paddle's kernel](zoo/paddle.md#the-backward-pass-of-instancenorm-raises)",
    "InstanceNorm3d": "[Paddle's kernel](zoo/paddle.md#the-backward-pass-of-instancenorm-raises)",
    "AvgPool2d": "by design: Paddle's exclusive=True leaves padding out of the mean",
}
