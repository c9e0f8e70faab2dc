"""
Stacked hourglass network for 2D keypoint estimation.

Based on "Stacked Hourglass Networks for Human Pose Estimation" (Newell et al., ECCV 2016)
with intermediate supervision, SE attention in the bottlenecks and a soft-argmax head.
"""

import math
import argparse
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F

BN_MOMENTUM = 0.1

_BLOCKS = {}


def register_block(name):
    def deco(cls):
        _BLOCKS[name] = cls
        return cls

    return deco


class Conv(nn.Module):
    """conv -> bn -> relu, same padding"""

    def __init__(self, inp_dim, out_dim, kernel_size=3, stride=1, bn=False, relu=True):
        super(Conv, self).__init__()
        self.inp_dim = inp_dim
        self.conv = nn.Conv2d(
            inp_dim, out_dim, kernel_size, stride, padding=(kernel_size - 1) // 2, bias=True
        )
        self.relu = None
        self.bn = None
        if relu:
            self.relu = nn.ReLU(inplace=True)
        if bn:
            self.bn = nn.BatchNorm2d(out_dim, momentum=BN_MOMENTUM)

    def forward(self, x):
        assert x.size()[1] == self.inp_dim, "{} {}".format(x.size()[1], self.inp_dim)
        x = self.conv(x)
        if self.bn is not None:
            x = self.bn(x)
        if self.relu is not None:
            x = self.relu(x)
        return x


@register_block("residual")
class Residual(nn.Module):
    """Pre-activation bottleneck used in the original lua code."""

    def __init__(self, inp_dim, out_dim):
        super(Residual, self).__init__()
        mid = int(out_dim / 2)
        self.bn1 = nn.BatchNorm2d(inp_dim)
        self.conv1 = Conv(inp_dim, mid, 1, relu=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv2 = Conv(mid, mid, 3, relu=False)
        self.bn3 = nn.BatchNorm2d(mid)
        self.conv3 = Conv(mid, out_dim, 1, relu=False)
        self.skip_layer = Conv(inp_dim, out_dim, 1, relu=False)
        self.need_skip = inp_dim != out_dim

    def branch(self, x):
        out = self.conv1(F.relu(self.bn1(x)))
        out = self.conv2(F.relu(self.bn2(out)))
        return self.conv3(F.relu(self.bn3(out)))

    def forward(self, x):
        residual = self.skip_layer(x) if self.need_skip else x
        out = self.branch(x)
        out += residual
        return out


@register_block("se_residual")
class SEResidual(Residual):
    def __init__(self, inp_dim, out_dim, reduction=4):
        super(SEResidual, self).__init__(inp_dim, out_dim)
        self.se = nn.Sequential(
            OrderedDict(
                [
                    ("pool", nn.AdaptiveAvgPool2d(1)),
                    ("fc1", nn.Conv2d(out_dim, out_dim // reduction, 1)),
                    ("relu", nn.ReLU(inplace=True)),
                    ("fc2", nn.Conv2d(out_dim // reduction, out_dim, 1)),
                    ("gate", nn.Sigmoid()),
                ]
            )
        )

    def branch(self, x):
        out = super(SEResidual, self).branch(x)
        return out * self.se(out)


class Hourglass(nn.Module):
    def __init__(self, n, f, block, increase=0):
        super(Hourglass, self).__init__()
        nf = f + increase
        self.up1 = block(f, f)
        # Lower branch
        self.pool1 = nn.MaxPool2d(2, 2)
        self.low1 = block(f, nf)
        self.n = n
        # Recursive hourglass
        if self.n > 1:
            self.low2 = Hourglass(n - 1, nf, block, increase=increase)
        else:
            self.low2 = block(nf, nf)
        self.low3 = block(nf, f)

    def forward(self, x):
        up1 = self.up1(x)
        low1 = self.low1(self.pool1(x))
        low2 = self.low2(low1)
        low3 = self.low3(low2)
        up2 = F.interpolate(low3, size=up1.shape[-2:], mode="nearest")
        return up1 + up2


class Merge(nn.Module):
    def __init__(self, x_dim, y_dim):
        super(Merge, self).__init__()
        self.conv = Conv(x_dim, y_dim, 1, relu=False, bn=False)

    def forward(self, x):
        return self.conv(x)


class SoftArgmax2D(nn.Module):
    """Differentiable expectation of the coordinate grid, values in [-1, 1]."""

    def __init__(self, height, width, beta=10.0):
        super().__init__()
        ys, xs = torch.meshgrid(
            torch.linspace(-1.0, 1.0, height), torch.linspace(-1.0, 1.0, width), indexing="ij"
        )
        self.register_buffer("grid", torch.stack([xs, ys], dim=-1).view(-1, 2))
        self.log_beta = nn.Parameter(torch.tensor(math.log(beta)))

    def forward(self, heatmap):
        n, k, h, w = heatmap.shape
        prob = F.softmax(heatmap.reshape(n, k, -1) * self.log_beta.exp(), dim=-1)
        coords = torch.matmul(prob, self.grid)
        conf = prob.max(dim=-1)[0]
        return coords, conf


class PoseNet(nn.Module):
    def __init__(self, opt):
        super(PoseNet, self).__init__()
        self.nstack = opt.nstack
        block = _BLOCKS[opt.block]
        dim = opt.inp_dim
        self.pre = nn.Sequential(
            Conv(3, dim // 4, 7, 2, bn=True, relu=True),
            block(dim // 4, dim // 2),
            nn.MaxPool2d(2, 2),
            block(dim // 2, dim // 2),
            block(dim // 2, dim),
        )
        self.hgs = nn.ModuleList(
            [
                nn.Sequential(Hourglass(opt.depth, dim, block, opt.increase))
                for _ in range(opt.nstack)
            ]
        )
        self.features = nn.ModuleList(
            [
                nn.Sequential(block(dim, dim), Conv(dim, dim, 1, bn=True, relu=True))
                for _ in range(opt.nstack)
            ]
        )
        self.outs = nn.ModuleList(
            [Conv(dim, opt.num_joints, 1, relu=False) for _ in range(opt.nstack)]
        )
        self.merge_features = nn.ModuleList([Merge(dim, dim) for _ in range(opt.nstack - 1)])
        self.merge_preds = nn.ModuleList(
            [Merge(opt.num_joints, dim) for _ in range(opt.nstack - 1)]
        )
        self.readout = SoftArgmax2D(opt.input_res // 4, opt.input_res // 4)
        self.apply(self._init_weights)
        # residual branches start small, otherwise the activations grow with depth
        for m in self.modules():
            if isinstance(m, Residual):
                m.conv3.conv.weight.data.mul_(0.2)
        for out in self.outs:
            nn.init.normal_(out.conv.weight, std=0.02)

    @staticmethod
    def _init_weights(m):
        if isinstance(m, nn.Conv2d):
            fan_in = m.kernel_size[0] * m.kernel_size[1] * m.in_channels
            m.weight.data.normal_(0, math.sqrt(1.0 / fan_in))
            if m.bias is not None:
                m.bias.data.zero_()
        elif isinstance(m, nn.BatchNorm2d):
            m.weight.data.fill_(1)
            m.bias.data.zero_()

    def forward(self, imgs):
        x = imgs.permute(0, 3, 1, 2)  # NHWC -> NCHW
        x = self.pre(x)
        combined_hm_preds = []
        for i in range(self.nstack):
            hg = self.hgs[i](x)
            feature = self.features[i](hg)
            preds = self.outs[i](feature)
            combined_hm_preds.append(preds)
            if i < self.nstack - 1:
                x = x + self.merge_preds[i](preds) + self.merge_features[i](feature)
        coords, conf = self.readout(combined_hm_preds[-1])
        return torch.stack(combined_hm_preds, 1), coords, conf


def heatmap_loss(pred, gt):
    l = (pred - gt.unsqueeze(1)) ** 2
    return l.mean(dim=(2, 3, 4))


def default_opt(**kwargs):
    opt = argparse.Namespace(
        nstack=2, inp_dim=64, num_joints=16, depth=3, increase=16, input_res=64, block="se_residual"
    )
    for k, v in kwargs.items():
        setattr(opt, k, v)
    return opt


if __name__ == "__main__":
    net = PoseNet(default_opt())
    hms, xy, c = net(torch.randn(2, 64, 64, 3))
    print(hms.shape, xy.shape, c.shape, sum(p.numel() for p in net.parameters()) / 1e6, "M")
