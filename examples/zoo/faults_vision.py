"""Faults of paddle.vision's models in Paddle 3.3.1, each with its remedy."""

from examples.zoo.mending import Fault

SCALED = (
    "Dropout is built with mode='downscale_in_infer': in eval mode the values are multiplied by 1 - p, "
    "so that PyTorch's weights give other outputs"
)


FAULTS = (
    Fault("alexnet", "paddle.vision.models.alexnet", SCALED, tuple(
        (f'self._drop{number} = Dropout(p=0.5, mode="downscale_in_infer")',
         f"self._drop{number} = Dropout(p=0.5)") for number in (1, 2))),
    Fault("squeezenet1_0, squeezenet1_1", "paddle.vision.models.squeezenet", SCALED,
          (('Dropout(p=0.5, mode="downscale_in_infer")', "Dropout(p=0.5)"),)),
    *(
        Fault(f"squeezenet{version}", "paddle.vision.models.squeezenet",
              "The pools drop an incomplete last window: torchvision's have ceil_mode=True",
              ((f"            self._pool = MaxPool2D(kernel_size=3, stride=2, padding=0)\n"
                f"            self._conv1 = MakeFire({width},",
                f"            self._pool = MaxPool2D(kernel_size=3, stride=2, padding=0, ceil_mode=True)\n"
                f"            self._conv1 = MakeFire({width},"),))
        for version, width in (("1_0", 96), ("1_1", 64))
    ),
    Fault("squeezenet1_1", "paddle.vision.models.squeezenet",
          "The first convolution pads; torchvision's (and the original's) does not",
          (("                stride=2,\n                padding=1,\n", "                stride=2,\n"),)),
    Fault("inception_v3", "paddle.vision.models.inceptionv3",
          f"{SCALED}; and p is 0.2 where torchvision has 0.5",
          (('Dropout(p=0.2, mode="downscale_in_infer")', "Dropout(p=0.5)"),)),
    Fault("alexnet", "paddle.vision.models.alexnet",
          "The adaptive pool before the classifier is missing: an image that is not 224 x 224 raises "
          "ValueError, where torchvision takes it",
          (("            x = paddle.flatten(x, start_axis=1, stop_axis=-1)\n",
            "            x = F.adaptive_avg_pool2d(x, 6)\n"
            "            x = paddle.flatten(x, start_axis=1, stop_axis=-1)\n"),)),
)  # fmt: skip

# Differences that are no mistake of the port, by the end of the pair's name.
NOTES = {"googlenet": "by design: the paper's network, without torchvision's batch norms"}
