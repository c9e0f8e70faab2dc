"""Faults of paddle.vision's models in Paddle 3.3.1, each with its remedy."""

from examples.zoo.mending import Fault
from examples.zoo.symptom import Symptom, raise_error

SCALED = (
    "Dropout is built with mode='downscale_in_infer': in eval mode the values are multiplied by 1 - p, "
    "so that PyTorch's weights give other outputs"
)
VISION = "from paddle.vision.models import {0}\n\nmodel = {0}()\nmodel.eval()"
POOL = "width of 54 after the pool: 27 with ceil_mode=True"
POOLED = "model._pool(paddle.zeros([1, 1, 54, 54])).shape[3]"
WIDTH = "model._conv(paddle.zeros([1, 3, 224, 224])).shape[3]"


def scale(layers: str, make: str) -> Symptom:
    """Return the symptom that dropout scales in eval mode."""
    got = f"[round(float(each(paddle.ones([1, 9])).mean()), 2) for each in {layers}]"
    expected = str([1.0] * (layers.count(",") + 1))
    return Symptom("mean of ones after each dropout in eval mode", got, expected, make=make)


FAULTS = (
    Fault("alexnet", "paddle.vision.models.alexnet", SCALED, tuple(
        (f'self._drop{number} = Dropout(p=0.5, mode="downscale_in_infer")',
         f"self._drop{number} = Dropout(p=0.5)") for number in (1, 2)),
        symptom=scale("[model._drop1, model._drop2]", VISION.format("alexnet"))),
    Fault("squeezenet1_0, squeezenet1_1", "paddle.vision.models.squeezenet", SCALED,
          (('Dropout(p=0.5, mode="downscale_in_infer")', "Dropout(p=0.5)"),),
        symptom=scale("[model._drop]", VISION.format("squeezenet1_0"))),
    *(
        Fault(f"squeezenet{version}", "paddle.vision.models.squeezenet",
              "The pools drop an incomplete last window: torchvision's have ceil_mode=True",
              ((f"            self._pool = MaxPool2D(kernel_size=3, stride=2, padding=0)\n"
                f"            self._conv1 = MakeFire({width},",
                f"            self._pool = MaxPool2D(kernel_size=3, stride=2, padding=0, ceil_mode=True)\n"
                f"            self._conv1 = MakeFire({width},"),),
              symptom=Symptom(POOL, POOLED, "27", make=VISION.format(f"squeezenet{version}")))
        for version, width in (("1_0", 96), ("1_1", 64))
    ),
    Fault("squeezenet1_1", "paddle.vision.models.squeezenet",
          "The first convolution pads; torchvision's (and the original's) does not",
          (("                stride=2,\n                padding=1,\n", "                stride=2,\n"),),
        symptom=Symptom(
            "width of the first convolution's output, of an image of 224",
            WIDTH,
            "111",
            make=VISION.format("squeezenet1_1"),
        )),
    Fault("inception_v3", "paddle.vision.models.inceptionv3",
          f"{SCALED}; and p is 0.2 where torchvision has 0.5",
          (('Dropout(p=0.2, mode="downscale_in_infer")', "Dropout(p=0.5)"),),
        symptom=Symptom(
            "rate and mode of the dropout",
            "(model.dropout.p, model.dropout.mode)",
            "(0.5, 'upscale_in_train')",
            make=VISION.format("inception_v3"),
        )),
    Fault("alexnet", "paddle.vision.models.alexnet",
          "The adaptive pool before the classifier is missing: an image that is not 224 x 224 raises "
          "ValueError, where torchvision takes it",
          (("            x = paddle.flatten(x, start_axis=1, stop_axis=-1)\n",
            "            x = F.adaptive_avg_pool2d(x, 6)\n"
            "            x = paddle.flatten(x, start_axis=1, stop_axis=-1)\n"),),
        symptom=raise_error("model(paddle.zeros([1, 3, 256, 256]))", "", VISION.format("alexnet"))),
)  # fmt: skip

# Differences that are no mistake of the port, by the end of the pair's name.
NOTES = {"googlenet": "by design: the paper's network, without torchvision's batch norms"}
