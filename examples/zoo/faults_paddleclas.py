"""Faults of PaddleClas 2.6.0's models, each with its remedy, and its networks that are others by design."""

from examples.zoo.faults_vision import POOL, POOLED, SCALED, WIDTH, scale
from examples.zoo.mending import Fault
from examples.zoo.symptom import Symptom

_RESNET = "paddleclas.ppcls.arch.backbone.legendary_models.resnet"
_MOBILENET = "paddleclas.ppcls.arch.backbone.model_zoo.mobilenet_v2"
_SMALL = "paddleclas.ppcls.arch.backbone.legendary_models.mobilenet_v3"
_SQUEEZE = "paddleclas.ppcls.arch.backbone.model_zoo.squeezenet"
_GHOST = "paddleclas.ppcls.arch.backbone.model_zoo.ghostnet"
_RES2NET = "paddleclas.ppcls.arch.backbone.model_zoo.res2net"
_SWIN = "paddleclas.ppcls.arch.backbone.legendary_models.swin_transformer"
_TNT = "paddleclas.ppcls.arch.backbone.model_zoo.tnt"
_SMALL_PAIR = "MobileNetV3_small_x1_0"
_BLOCK = "block = next(each for each in model.sublayers() if hasattr(each, 'pool2d_avg'))"


def _build(module: str, name: str) -> str:
    """Return the lines that build a network."""
    return f"from {module} import {name}\n\nmodel = {name}(class_num=10)\nmodel.eval()"


FAULTS = (
    Fault("SqueezeNet1_1", _SQUEEZE, SCALED,
          (('Dropout(p=0.5, mode="downscale_in_infer")', "Dropout(p=0.5)"),), line=129,
        symptom=scale("[model._drop]", _build(_SQUEEZE, "SqueezeNet1_1"))),
    Fault("SqueezeNet1_1", _SQUEEZE,
          "The pools drop an incomplete last window: torchvision's have ceil_mode=True",
          (("            self._pool = MaxPool2D(kernel_size=3, stride=2, padding=0)\n"
            "            self._conv1 = MakeFire(64,",
            "            self._pool = MaxPool2D(kernel_size=3, stride=2, padding=0, ceil_mode=True)\n"
            "            self._conv1 = MakeFire(64,"),), line=117,
        symptom=Symptom(POOL, POOLED, "27", make=_build(_SQUEEZE, "SqueezeNet1_1"))),
    Fault("SqueezeNet1_1", _SQUEEZE,
          "The first convolution pads; torchvision's (and the original's) does not",
          (("                stride=2,\n                padding=1,\n", "                stride=2,\n"),),
          line=114,
        symptom=Symptom(
            "width of the first convolution's output, of an image of 224",
            WIDTH,
            "111",
            make=_build(_SQUEEZE, "SqueezeNet1_1"),
        )),
    Fault("MobileNetV2", _MOBILENET,
          "The dropout before the classifier is missing: torchvision's and the original's has p = 0.2",
          (("        y = self.out(y)\n",
            "        y = self.out(F.dropout(y, 0.2, training=self.training))\n"),), line=260,
        symptom=Symptom(
            "two passes in train mode give the same",
            "bool((model(image) == model(image)).all())",
            "False",
            "image = paddle.ones([2, 3, 64, 64])\nmodel.train()",
            make=_build(_MOBILENET, "MobileNetV2"),
        )),
    Fault(_SMALL_PAIR, _SMALL, SCALED,
          (('Dropout(p=dropout_prob, mode="downscale_in_infer")', "Dropout(p=dropout_prob)"),),
          line=214,
        symptom=scale("[model.dropout]", _build(_SMALL, "MobileNetV3_small_x1_0"))),
    Fault(_SMALL_PAIR, _SMALL,
          "The gates' hard sigmoid has the slope 0.2; the paper's is 1/6",
          (("= Hardsigmoid(slope=0.2, offset=0.5)", "= Hardsigmoid(slope=1 / 6, offset=0.5)"),),
          line=359,
        symptom=Symptom(
            "the gate at 1: 1 / 6 + 0.5 in the paper",
            "round(float(gate(paddle.ones([]))), 4)",
            "0.6667",
            "gates = [each for each in model.sublayers() if type(each).__name__ == 'Hardsigmoid']\n"
            "gate = gates[0]",
            make=_build(_SMALL, "MobileNetV3_small_x1_0"),
        )),
    Fault("Res2Net50_26w_4s", _RES2NET,
          "The mean of the last split leaves padding out; the original's counts it",
          (("AvgPool2D(kernel_size=3, stride=stride, padding=1)",
            "AvgPool2D(kernel_size=3, stride=stride, padding=1, exclusive=False)"),), line=114,
        symptom=Symptom(
            "corner of the mean of ones, padding counted: 4 / 9",
            "round(float(block.pool2d_avg(ones)[0, 0, 0, 0]), 2)",
            "0.44",
            f"{_BLOCK}\nones = paddle.ones([1, 1, 4, 4])",
            make=_build(_RES2NET, "Res2Net50_26w_4s"),
        )),
    Fault("Res2Net50_26w_4s", _RES2NET,
          "The first block of the first stage is built as the ones after it: its splits are added up and the "
          "last one is not pooled, where the original's first block of each stage keeps them apart",
          (("if s == 0 or self.stride == 2:", "if s == 0 or not self.shortcut:"),
           ("        if self.stride == 1:\n", "        if self.shortcut:\n")), line=138,
        symptom=Symptom(
            "the first block's second convolution is given its own split alone",
            "bool((given[0] == paddle.split(block.conv0(x), 4, 1)[1]).all())",
            "True",
            f"{_BLOCK}\ngiven = []\n"
            "block.conv1_list[1].register_forward_pre_hook(lambda _, each: given.append(each[0]))\n"
            "x = paddle.rand([1, 64, 8, 8])\nblock(x)",
            make=_build(_RES2NET, "Res2Net50_26w_4s"),
        )),
    Fault("SwinTransformer", _SWIN,
          "Windows are shifted, and masked, where one window holds the whole image too, as in the last stage "
          "of each published Swin: the original has no shift there",
          (("        self.shift_size = shift_size\n        self.mlp_ratio = mlp_ratio\n",
            "        self.shift_size = shift_size\n"
            "        if min(input_resolution) <= window_size:\n"
            "            self.shift_size, self.window_size = 0, min(input_resolution)\n"
            "        self.mlp_ratio = mlp_ratio\n"),),
          line=352, within="SwinTransformerBlock",
        symptom=Symptom(
            "shift of a block whose one window holds the whole image",
            "block.shift_size",
            "0",
            "block = SwinTransformerBlock(8, (4, 4), num_heads=2, window_size=4, shift_size=2)",
            make=f"from {_SWIN} import SwinTransformerBlock\n",
        )),
    Fault("TNT_small", _TNT,
          "by design: pixel_pos lies as in the authors' code, (1, pixels, width), and timm's is "
          "(1, width, 4, 4)",
          (("shape=(1, patch_size, in_dim)", "shape=(1, in_dim, new_patch_size, new_patch_size)"),
           ("        x = x.reshape((-1, self.in_dim, self.patch_size)).transpose((0, 2, 1))\n"
            "        x = x + pixel_pos\n",
            "        x = x + pixel_pos\n"
            "        x = x.reshape((-1, self.in_dim, self.patch_size)).transpose((0, 2, 1))\n")),
          line=300, design=True),
    Fault("GhostNet_x1_0", _GHOST,
          "by design: the authors' first version, with gates that are clipped and squeeze to a quarter "
          "without rounding, and a batch norm in the head",
          (("        med_ch = num_channels // reduction_ratio\n",
            "        med_ch = (num_channels // reduction_ratio + 2) // 4 * 4\n"),
           ("paddle.clip(x=excitation, min=0, max=1)", "F.relu6(excitation + 3) / 6"),
           ("        self.fc_0 = ConvBNLayer(\n"
            "            in_channels=in_channels,\n"
            "            out_channels=self._fc0_output_channels,\n"
            "            kernel_size=1,\n"
            "            stride=1,\n"
            '            act="relu",\n'
            '            name="fc_0")\n',
            "        self.fc_0 = nn.Sequential(\n"
            "            Conv2D(in_channels, self._fc0_output_channels, 1), nn.ReLU())\n")),
          line=85, design=True),
    Fault("ResNet18", _RESNET,
          "by design: a convolution on the first shortcut, unless use_first_short_conv=False",
          (("use_first_short_conv=True", "use_first_short_conv=False"),), line=304, design=True),
    Fault("MobileNetV2", _MOBILENET,
          "by design: the first block expands too, as in the paper's table, by a factor of 1",
          (("        self._expand_conv = ConvBNLayer(\n",
            "        self._expand_conv = expansion_factor > 1 and ConvBNLayer(\n"),
           ("        y = self._expand_conv(inputs, if_act=True)\n",
            "        y = self._expand_conv(inputs, if_act=True) if self._expand_conv else inputs\n")),
          line=105, design=True),
    Fault(_SMALL_PAIR, _SMALL,
          "by design: the first block expands too, the gates squeeze to a quarter without rounding, the "
          "head is 1280 wide without a bias, and the batch norms keep Paddle's defaults",
          (("        self.expand_conv = ConvBNLayer(\n",
            "        self.expand_conv = in_c != mid_c and ConvBNLayer(\n"),
           ("        x = self.expand_conv(x)\n",
            "        x = self.expand_conv(x) if self.expand_conv else x\n"),
           ("            out_channels=channel // reduction,\n",
            "            out_channels=_make_divisible(channel // reduction),\n"),
           ("            in_channels=channel // reduction,\n",
            "            in_channels=_make_divisible(channel // reduction),\n"),
           ("LAST_CONV = 1280", "LAST_CONV = 1024"),
           ("            padding=0,\n            bias_attr=False)\n\n        self.hardswish",
            "            padding=0)\n\n        self.hardswish"),
           ("            act=None,\n            param_attr",
            "            act=None,\n            momentum=0.99,\n            epsilon=0.001,\n"
            "            param_attr")),
          line=290, design=True),
)  # fmt: skip
