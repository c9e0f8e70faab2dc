"""CSP-PAN detector with decoupled heads (YOLOX / YOLOv5 flavour)."""

import argparse
import math
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F


def autopad(k, p=None):
    return k // 2 if p is None else p


def make_divisible(x, divisor=8):
    return max(divisor, math.ceil(x / divisor) * divisor)


class Conv(nn.Module):
    # Standard convolution
    default_act = nn.SiLU(inplace=True)

    def __init__(self, c1, c2, k=1, s=1, p=None, g=1, act=True):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, autopad(k, p), groups=g, bias=False)
        self.bn = nn.BatchNorm2d(c2)
        self.act = (
            self.default_act
            if act is True
            else act
            if isinstance(act, nn.Module)
            else nn.Identity()
        )

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class DWConv(Conv):
    def __init__(self, c1, c2, k=1, s=1, act=True):
        super().__init__(c1, c2, k, s, g=math.gcd(c1, c2), act=act)


class Bottleneck(nn.Module):
    def __init__(self, c1, c2, shortcut=True, e=0.5, depthwise=False):
        super().__init__()
        c_ = int(c2 * e)
        self.cv1 = Conv(c1, c_, 1, 1)
        self.cv2 = DWConv(c_, c2, 3, 1) if depthwise else Conv(c_, c2, 3, 1)
        self.add = shortcut and c1 == c2

    def forward(self, x):
        return x + self.cv2(self.cv1(x)) if self.add else self.cv2(self.cv1(x))


class C3(nn.Module):
    # CSP bottleneck with 3 convolutions
    def __init__(self, c1, c2, n=1, shortcut=True, e=0.5):
        super().__init__()
        c_ = int(c2 * e)
        self.cv1 = Conv(c1, c_, 1, 1)
        self.cv2 = Conv(c1, c_, 1, 1)
        self.cv3 = Conv(2 * c_, c2, 1)
        self.m = nn.Sequential(*(Bottleneck(c_, c_, shortcut, e=1.0) for _ in range(n)))

    def forward(self, x):
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), dim=1))


class C2f(nn.Module):
    def __init__(self, c1, c2, n=1, shortcut=False, e=0.5):
        super().__init__()
        self.c = int(c2 * e)
        self.cv1 = Conv(c1, 2 * self.c, 1, 1)
        self.cv2 = Conv((2 + n) * self.c, c2, 1)
        self.m = nn.ModuleList(
            Bottleneck(self.c, self.c, shortcut, e=1.0, depthwise=True) for _ in range(n)
        )

    def forward(self, x):
        y = list(self.cv1(x).chunk(2, 1))
        y.extend(m(y[-1]) for m in self.m)
        return self.cv2(torch.cat(y, 1))


class SPPF(nn.Module):
    def __init__(self, c1, c2, k=5):
        super().__init__()
        c_ = c1 // 2
        self.cv1 = Conv(c1, c_, 1, 1)
        self.cv2 = Conv(c_ * 4, c2, 1, 1)
        self.m = nn.MaxPool2d(kernel_size=k, stride=1, padding=k // 2)

    def forward(self, x):
        x = self.cv1(x)
        y1 = self.m(x)
        y2 = self.m(y1)
        return self.cv2(torch.cat([x, y1, y2, self.m(y2)], 1))


class Focus(nn.Module):
    # space to depth, then conv
    def __init__(self, c1, c2, k=3):
        super().__init__()
        self.conv = Conv(c1 * 4, c2, k)

    def forward(self, x):
        return self.conv(
            torch.cat(
                (x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]), 1
            )
        )


class CSPDarknet(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        w = [make_divisible(c * width) for c in (64, 128, 256, 512, 1024)]
        d = [max(round(n * depth), 1) for n in (3, 6, 9, 3)]
        self.out_channels = w[2:]
        self.stem = Focus(3, w[0])
        for i in range(4):
            block = (
                C3(w[i + 1], w[i + 1], d[i])
                if i < 3
                else nn.Sequential(SPPF(w[4], w[4]), C3(w[4], w[4], d[3], shortcut=False))
            )
            stage = nn.Sequential(
                OrderedDict([("down", Conv(w[i], w[i + 1], 3, 2)), ("block", block)])
            )
            self.add_module("dark%d" % (i + 2), stage)

    def forward(self, x):
        outputs = {}
        x = self.stem(x)
        for i in range(2, 6):
            x = getattr(self, f"dark{i}")(x)
            outputs[f"dark{i}"] = x
        return [outputs[k] for k in ("dark3", "dark4", "dark5")]


class PAN(nn.Module):
    def __init__(self, chs, n=1):
        super().__init__()
        c3, c4, c5 = chs
        self.lateral5 = Conv(c5, c4)
        self.lateral4 = Conv(c4, c3)
        self.td4 = C2f(c4 * 2, c4, n)
        self.td3 = C2f(c3 * 2, c3, n)
        self.down3 = Conv(c3, c3, 3, 2)
        self.down4 = Conv(c4, c4, 3, 2)
        self.bu4 = C2f(c3 * 2, c4, n)
        self.bu5 = C2f(c4 * 2, c5, n)

    def forward(self, feats):
        p3, p4, p5 = feats
        l5 = self.lateral5(p5)
        x = F.interpolate(l5, scale_factor=2, mode="nearest")
        l4 = self.lateral4(self.td4(torch.cat([x, p4], 1)))
        x = F.interpolate(l4, size=p3.shape[-2:], mode="nearest")
        n3 = self.td3(torch.cat([x, p3], 1))
        n4 = self.bu4(torch.cat([self.down3(n3), l4], 1))
        n5 = self.bu5(torch.cat([self.down4(n4), l5], 1))
        return n3, n4, n5


class Detect(nn.Module):
    stride = None

    def __init__(self, nc, anchors, ch, hidden):
        super().__init__()
        self.nc, self.nl, self.na = nc, len(anchors), len(anchors[0]) // 2
        self.no = nc + 5
        self.register_buffer("anchors", torch.tensor(anchors).float().view(self.nl, -1, 2))
        self.stems, self.cls_convs, self.reg_convs = (
            nn.ModuleList(),
            nn.ModuleList(),
            nn.ModuleList(),
        )
        self.cls_preds, self.reg_preds, self.obj_preds = (
            nn.ModuleList(),
            nn.ModuleList(),
            nn.ModuleList(),
        )
        for c in ch:
            self.stems.append(Conv(c, hidden, 1))
            self.cls_convs.append(nn.Sequential(Conv(hidden, hidden, 3), Conv(hidden, hidden, 3)))
            self.reg_convs.append(nn.Sequential(Conv(hidden, hidden, 3), Conv(hidden, hidden, 3)))
            self.cls_preds.append(nn.Conv2d(hidden, self.na * nc, 1))
            self.reg_preds.append(nn.Conv2d(hidden, self.na * 4, 1))
            self.obj_preds.append(nn.Conv2d(hidden, self.na, 1))

    def initialize_biases(self, prior=1e-2):
        for conv in [*self.cls_preds, *self.obj_preds]:
            b = conv.bias.view(self.na, -1)
            b.data.fill_(-math.log((1 - prior) / prior))
            conv.bias = nn.Parameter(b.view(-1), requires_grad=True)

    def _make_grid(self, nx, ny, i, like):
        yv, xv = torch.meshgrid(
            torch.arange(ny, device=like.device),
            torch.arange(nx, device=like.device),
            indexing="ij",
        )
        grid = torch.stack((xv, yv), 2).expand(1, self.na, ny, nx, 2).to(like.dtype) - 0.5
        anchor_grid = self.anchors[i].view(1, self.na, 1, 1, 2).expand(1, self.na, ny, nx, 2)
        return grid, anchor_grid

    def forward(self, xs):
        raw, z = [], []
        for i, x in enumerate(xs):
            x = self.stems[i](x)
            cls_feat, reg_feat = self.cls_convs[i](x), self.reg_convs[i](x)
            bs, _, ny, nx = x.shape
            outs = [
                self.reg_preds[i](reg_feat),
                self.obj_preds[i](reg_feat),
                self.cls_preds[i](cls_feat),
            ]
            outs = [o.view(bs, self.na, -1, ny, nx).permute(0, 1, 3, 4, 2) for o in outs]
            p = torch.cat(outs, -1).contiguous()
            raw.append(p)
            if not self.training:  # inference
                grid, anchor_grid = self._make_grid(nx, ny, i, p)
                y = p.sigmoid()
                xy, wh, conf = y.split((2, 2, self.nc + 1), 4)
                xy = (xy * 2 + grid) * self.stride[i]
                wh = (wh * 2) ** 2 * anchor_grid
                z.append(torch.cat((xy, wh, conf), 4).view(bs, -1, self.no))
        return raw if self.training else (torch.cat(z, 1), raw)


def xywh2xyxy(x):
    y = x.clone()
    y[..., 0] = x[..., 0] - x[..., 2] / 2
    y[..., 1] = x[..., 1] - x[..., 3] / 2
    y[..., 2] = x[..., 0] + x[..., 2] / 2
    y[..., 3] = x[..., 1] + x[..., 3] / 2
    return y


class Model(nn.Module):
    def __init__(self, args, anchors=((10, 13, 16, 30), (30, 61, 62, 45), (116, 90, 156, 198))):
        super().__init__()
        self.args = args
        self.backbone = CSPDarknet(args.depth, args.width)
        self.neck = PAN(self.backbone.out_channels, n=max(round(3 * args.depth), 1))
        self.head = Detect(
            args.nc, anchors, self.backbone.out_channels, make_divisible(256 * args.width)
        )
        self.head.stride = [8, 16, 32]
        self.head.initialize_biases()
        for m in self.modules():
            t = type(m)
            if t is nn.BatchNorm2d:
                m.eps = 1e-3
                m.momentum = 0.03

    def forward(self, x):
        out = self.head(self.neck(self.backbone(x)))
        if self.training:
            return out
        pred, raw = out
        scores, labels = (pred[..., 5:] * pred[..., 4:5]).max(-1)
        top, idx = scores.topk(self.args.max_det, dim=1)
        boxes = xywh2xyxy(pred[..., :4]).gather(1, idx.unsqueeze(-1).expand(-1, -1, 4))
        boxes[..., 0::2].clamp_(0, x.shape[3])
        boxes[..., 1::2].clamp_(0, x.shape[2])
        return {"boxes": boxes, "scores": top, "labels": labels.gather(1, idx), "raw": raw}


def get_args(argv=None):
    parser = argparse.ArgumentParser("CSP-PAN")
    parser.add_argument("--nc", type=int, default=7)
    parser.add_argument("--depth", type=float, default=0.33)
    parser.add_argument("--width", type=float, default=0.125)
    parser.add_argument("--max-det", type=int, default=20)
    return parser.parse_args(argv)


if __name__ == "__main__":
    model = Model(get_args()).eval()
    print(sum(p.numel() for p in model.parameters()) / 1e6, "M")
    print(model(torch.rand(1, 3, 64, 96))["boxes"].shape)
