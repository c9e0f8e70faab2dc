"""timm and torchvision against PaddleClas, each side in an environment of its own."""

from collections.abc import Mapping
from typing import Any

from examples.zoo.pair import Maker, Pair, image

# PaddleClas: timm, or torchvision's after a dot
NAMES = dict(
    ResNet18=".resnet18", ResNet50=".resnet50", MobileNetV2=".mobilenet_v2",
    DenseNet121=".densenet121", SqueezeNet1_1=".squeezenet1_1",
    ShuffleNetV2_x0_5=".shufflenet_v2_x0_5", ResNeXt50_32x4d=".resnext50_32x4d",
    MobileNetV3_small_x1_0=".mobilenet_v3_small", EfficientNetB0="tf_efficientnet_b0",
    DeiT_tiny_patch16_224="deit_tiny_patch16_224", ConvNeXt_tiny="convnext_tiny",
    SwinTransformer_tiny_patch4_window7_224="swin_tiny_patch4_window7_224",
    PVT_V2_B0="pvt_v2_b0", DLA34="dla34", RepVGG_A0="repvgg_a0", GhostNet_x1_0="ghostnet_100",
    Res2Net50_26w_4s="res2net50_26w_4s", TNT_small="tnt_s_patch16_224",
)  # fmt: skip
# What timm's defaults have otherwise: the paper's momentum, and PaddleClas' own rates.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "tf_efficientnet_b0": dict(bn_momentum=0.01, drop_rate=0.2, drop_path_rate=0.2),
}
WHOLE = ("DeiT", "Swin", "TNT")  # their tables of positions ask for images of 224


def _make_torch(name: str) -> Maker:
    def make(package: Any) -> Any:
        if name.startswith("."):
            from examples.zoo import torchvision_models

            return getattr(torchvision_models, name[1:])(num_classes=10)
        return package.create_model(name, num_classes=10, **SETTINGS.get(name, {}))

    return make


def _make_paddle(name: str) -> Maker:
    return lambda package: getattr(package, name)(class_num=10)


def _pair(name: str) -> Pair:
    size = 224 if name.startswith(WHOLE) else 64
    return Pair(name, _make_torch(NAMES[name]), _make_paddle(name), lambda: (image(size=size),))


PAIRS = tuple(_pair(name) for name in NAMES)
