"""torchvision against paddle.vision: every network that both build from one name."""

from typing import Any

from examples.zoo.pair import Maker, Pair, image

NAMES = """
    alexnet densenet121 densenet169 googlenet inception_v3 mobilenet_v2 mobilenet_v3_large
    mobilenet_v3_small resnet18 resnet34 resnet50 resnet101 resnext50_32x4d shufflenet_v2_x0_5
    shufflenet_v2_x1_0 shufflenet_v2_x1_5 squeezenet1_0 squeezenet1_1 vgg11 vgg16 wide_resnet50_2
""".split()
SIZES = {"inception_v3": 96, "alexnet": 224, "googlenet": 224}
PLAIN = {"googlenet", "inception_v3"}  # without PyTorch's own initial values, which take minutes


def _make(name: str, **settings: Any) -> Maker:
    return lambda package: getattr(package, name)(num_classes=10, **settings)


def _pair(name: str) -> Pair:
    own = {"init_weights": False} if name in PLAIN else {}
    size = SIZES.get(name, 64)
    return Pair(name, _make(name, **own), _make(name), lambda: (image(size=size),))


PAIRS = tuple(_pair(name) for name in NAMES)
