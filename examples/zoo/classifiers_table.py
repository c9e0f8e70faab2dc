"""timm and torchvision against PaddleClas, each side in an environment of its own."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from examples.zoo.pair import Maker, Pair, image

# PaddleClas: timm, or torchvision's after a dot
NAMES = dict(
    ResNet18=".resnet18", ResNet50=".resnet50", MobileNetV2=".mobilenet_v2",
    DenseNet121=".densenet121", SqueezeNet1_1=".squeezenet1_1",
    ShuffleNetV2_x0_5=".shufflenet_v2_x0_5", ResNeXt50_32x4d=".resnext50_32x4d",
    MobileNetV3_small_x1_0=".mobilenet_v3_small", EfficientNetB0="tf_efficientnet_b0",
    DeiT_tiny_patch16_224="deit_tiny_patch16_224", ConvNeXt_tiny="convnext_tiny",
    SwinTransformer="swin_tiny_patch4_window7_224",
    PVT_V2_B0="pvt_v2_b0", DLA34="dla34", RepVGG_A0="repvgg_a0", GhostNet_x1_0="ghostnet_100",
    Res2Net50_26w_4s="res2net50_26w_4s", TNT_small="tnt_s_patch16_224",
)  # fmt: skip
# A whole Swin takes more than 9 GB on Paddle's side: this one is narrow, and its windows are small.
_SWIN = dict(img_size=128, window_size=4, embed_dim=48, depths=(2, 2, 2, 2))
# What timm's defaults have otherwise (the paper's momentum, PaddleClas' own rates), and small images.
TORCH_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "EfficientNetB0": dict(bn_momentum=0.01, drop_rate=0.2, drop_path_rate=0.2),
    "SwinTransformer": _SWIN,
    "TNT_small": dict(img_size=64),
}
PADDLE_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "SwinTransformer": _SWIN,
    "TNT_small": dict(img_size=64),
}
# A class whose functions settle its width and depth, by its place in the package.
CLASSES = {"SwinTransformer": "legendary_models.swin_transformer.SwinTransformer"}
SIZES = {"DeiT_tiny_patch16_224": 224, "SwinTransformer": 128}


def _make_torch(name: str) -> Maker:
    def make(package: Any) -> Any:
        model = NAMES[name]
        if model.startswith("."):
            from examples.zoo import torchvision_models

            return getattr(torchvision_models, model[1:])(num_classes=10)
        return package.create_model(model, num_classes=10, **TORCH_SETTINGS.get(name, {}))

    return make


def _make_paddle(name: str) -> Maker:
    find = attrgetter(CLASSES.get(name, name))
    return lambda package: find(package)(class_num=10, **PADDLE_SETTINGS.get(name, {}))


def _pair(name: str) -> Pair:
    size = SIZES.get(name, 64)
    return Pair(name, _make_torch(name), _make_paddle(name), lambda: (image(size=size),))


PAIRS = tuple(_pair(name) for name in NAMES)
