"""torchvision against paddle.vision: every network that both build from one name."""

from typing import Any

from examples.zoo.pair import Maker, Pair, image

NAMES = """
    resnet18 squeezenet1_0 squeezenet1_1 mobilenet_v2 mobilenet_v3_small shufflenet_v2_x0_5
    mobilenet_v3_large resnet50 resnext50_32x4d shufflenet_v2_x1_0 densenet121 alexnet googlenet
    inception_v3 vgg11
""".split()
SIZES = {"inception_v3": 160, "alexnet": 224, "googlenet": 224, "densenet121": 64}
PLAIN = {"googlenet", "inception_v3"}  # without PyTorch's own initial values, which take minutes


def _make(name: str, **settings: Any) -> Maker:
    return lambda package: getattr(package, name)(num_classes=10, **settings)


def _pair(name: str) -> Pair:
    own = {"init_weights": False} if name in PLAIN else {}
    size = SIZES.get(name, 32)
    return Pair(name, _make(name, **own), _make(name), lambda: (image(size=size),))


PAIRS = tuple(_pair(name) for name in NAMES)
