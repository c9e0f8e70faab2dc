"""Intermediate flow estimation for video frame interpolation with privileged distillation.

Predicts the frame at time t between two frames: coarse-to-fine flow blocks, backward warping, context
features, and a refinement U-Net.  A teacher block sees the ground-truth frame during training.
"""

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

backwarp_grid: Dict[Tuple, torch.Tensor] = {}


@dataclass
class VFIConfig:
    scales: Tuple[int, ...] = (4, 2, 1)
    flow_widths: Tuple[int, ...] = (240, 150, 90)
    flow_depth: int = 8
    context_width: int = 16
    context_levels: int = 4
    pyramid_levels: int = 5
    census_patch: int = 7
    lambda_tea: float = 1.0
    lambda_distill: float = 0.01
    lambda_census: float = 0.1
    lambda_smooth: float = 1e-3
    distill_margin: float = 0.01


def warp(img, flow):
    """Backward warping; `flow` is in pixels, channels (x, y)."""
    key = (str(flow.device), flow.dtype, tuple(flow.shape))
    if key not in backwarp_grid:
        n, _, h, w = flow.shape
        horizontal = (
            torch.linspace(-1.0, 1.0, w, device=flow.device, dtype=flow.dtype)
            .view(1, 1, 1, w)
            .expand(n, -1, h, -1)
        )
        vertical = (
            torch.linspace(-1.0, 1.0, h, device=flow.device, dtype=flow.dtype)
            .view(1, 1, h, 1)
            .expand(n, -1, -1, w)
        )
        backwarp_grid[key] = torch.cat([horizontal, vertical], 1)
    flow = torch.cat(
        [flow[:, 0:1] / ((img.shape[3] - 1.0) / 2.0), flow[:, 1:2] / ((img.shape[2] - 1.0) / 2.0)],
        1,
    )
    g = (backwarp_grid[key] + flow).permute(0, 2, 3, 1)
    return F.grid_sample(img, g, mode="bilinear", padding_mode="border", align_corners=True)


def resize(x, scale):
    if scale == 1:
        return x
    return F.interpolate(
        x, scale_factor=scale, mode="bilinear", align_corners=False, recompute_scale_factor=False
    )


def conv(in_planes, out_planes, kernel_size=3, stride=1, padding=1, dilation=1):
    return nn.Sequential(
        nn.Conv2d(
            in_planes, out_planes, kernel_size, stride, padding, dilation=dilation, bias=True
        ),
        nn.PReLU(out_planes),
    )


def deconv(in_planes, out_planes):
    return nn.Sequential(
        nn.ConvTranspose2d(in_planes, out_planes, kernel_size=4, stride=2, padding=1),
        nn.PReLU(out_planes),
    )


class ResConv(nn.Module):
    def __init__(self, c, dilation=1):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, 1, dilation, dilation=dilation)
        self.beta = nn.Parameter(torch.ones((1, c, 1, 1)))
        self.relu = nn.LeakyReLU(0.2, True)

    def forward(self, x):
        return self.relu(self.conv(x) * self.beta + x)


class IFBlock(nn.Module):
    def __init__(self, in_planes, c=64, depth=8):
        super().__init__()
        self.conv0 = nn.Sequential(conv(in_planes, c // 2, 3, 2, 1), conv(c // 2, c, 3, 2, 1))
        self.convblock = nn.Sequential(*[ResConv(c) for _ in range(depth)])
        self.lastconv = nn.Sequential(nn.ConvTranspose2d(c, 4 * 5, 4, 2, 1), nn.PixelShuffle(2))

    def forward(self, x, flow, scale):
        x = resize(x, 1.0 / scale)
        if flow is not None:
            flow = resize(flow, 1.0 / scale) * (1.0 / scale)
            x = torch.cat((x, flow), 1)
        feat = self.convblock(self.conv0(x))
        tmp = resize(self.lastconv(feat), scale)
        return tmp[:, :4] * scale, tmp[:, 4:5]


class ContextNet(nn.Module):
    """Feature pyramid of one frame, each level warped by the flow of its resolution."""

    def __init__(self, c, levels):
        super().__init__()
        widths = [3] + [c * 2**i for i in range(levels)]
        self.levels = nn.ModuleList()
        for i, o in zip(widths[:-1], widths[1:]):
            self.levels.append(nn.Sequential(conv(i, o, 3, 2, 1), conv(o, o, 3, 1, 1)))

    def forward(self, x, flow) -> List[torch.Tensor]:
        out = []
        for level in self.levels:
            x = level(x)
            flow = F.interpolate(flow, scale_factor=0.5, mode="bilinear", align_corners=False) * 0.5
            out.append(warp(x, flow))
        return out


class RefineUNet(nn.Module):
    def __init__(self, c, levels):
        super().__init__()
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        ch, skips = 17, []
        for i in range(levels):
            o = 2 * c * 2**i
            self.down.append(
                nn.Sequential(
                    conv(ch if i == 0 else ch + 2 * c * 2 ** (i - 1), o, 3, 2, 1), conv(o, o)
                )
            )
            ch = o
            skips.append(o)
        ch = ch + 2 * c * 2 ** (levels - 1)
        for i in reversed(range(levels)):
            o = c * 2**i
            self.up.append(deconv(ch, o))
            ch = o + skips[i - 1] if i > 0 else o
        self.conv = nn.Conv2d(ch, 3, 3, 1, 1)

    def forward(self, x, ctx0, ctx1):
        skips = []
        for i, block in enumerate(self.down):
            if i > 0:
                x = torch.cat((x, ctx0[i - 1], ctx1[i - 1]), 1)
            x = block(x)
            skips.append(x)
        x = torch.cat((skips.pop(), ctx0[-1], ctx1[-1]), 1)
        for block in self.up:
            x = block(x)
            if skips:
                x = torch.cat((x, skips.pop()), 1)
        return torch.sigmoid(self.conv(x))


class LaplacianLoss(nn.Module):
    def __init__(self, max_levels=5):
        super().__init__()
        self.max_levels = max_levels
        k = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0])
        self.register_buffer("kernel", (k[:, None] * k[None, :] / 256.0).repeat(3, 1, 1, 1))

    def blur(self, img):
        return F.conv2d(F.pad(img, (2, 2, 2, 2), mode="reflect"), self.kernel, groups=img.shape[1])

    def upsample(self, x):
        b, c, h, w = x.shape
        up = x.new_zeros(b, c, 2 * h, 2 * w)
        up[:, :, ::2, ::2] = x
        return 4 * self.blur(up)

    def pyramid(self, img):
        current, pyr = img, []
        for _ in range(self.max_levels):
            down = self.blur(current)[:, :, ::2, ::2]
            pyr.append(current - self.upsample(down))
            current = down
        return pyr

    def forward(self, pred, target):
        return sum(F.l1_loss(a, b) for a, b in zip(self.pyramid(pred), self.pyramid(target)))


class CensusLoss(nn.Module):
    def __init__(self, patch_size=7):
        super().__init__()
        self.patch_size = patch_size
        n = patch_size**2
        self.register_buffer("w", torch.eye(n).view(n, 1, patch_size, patch_size), persistent=False)

    def transform(self, img):
        gray = 0.2989 * img[:, 0:1] + 0.5870 * img[:, 1:2] + 0.1140 * img[:, 2:3]
        transf = F.conv2d(gray, self.w, padding=self.patch_size // 2) - gray
        return transf / torch.sqrt(0.81 + transf**2)

    def forward(self, img0, img1):
        diff = (self.transform(img0) - self.transform(img1)) ** 2
        dist = (diff / (0.1 + diff)).mean(1, keepdim=True)
        p = self.patch_size // 2
        valid = F.pad(torch.ones_like(dist)[:, :, p:-p, p:-p], [p] * 4)
        return torch.mean(torch.sqrt((dist * valid) ** 2 + 1e-6))


class FrameInterpolator(nn.Module):
    def __init__(self, cfg: VFIConfig = VFIConfig()):
        super().__init__()
        self.cfg = cfg
        self.blocks = nn.ModuleList(
            IFBlock(7 if i == 0 else 7 + 6 + 1 + 4, w, cfg.flow_depth)
            for i, w in enumerate(cfg.flow_widths)
        )
        self.teacher = IFBlock(7 + 6 + 1 + 4 + 3, cfg.flow_widths[-1], cfg.flow_depth)
        self.contextnet = ContextNet(cfg.context_width, cfg.context_levels)
        self.unet = RefineUNet(cfg.context_width, cfg.context_levels)
        self.lap = LaplacianLoss(cfg.pyramid_levels)
        self.census = CensusLoss(cfg.census_patch)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
                nn.init.kaiming_normal_(m.weight, a=0.25)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def estimate(self, img0, img1, time, gt: Optional[torch.Tensor]):
        flow, mask = None, None
        warped0, warped1 = img0, img1
        flows, merged, masks = [], [], []
        for block, scale in zip(self.blocks, self.cfg.scales):
            if flow is None:
                flow, mask = block(torch.cat((img0, img1, time), 1), None, scale)
            else:
                d, m = block(torch.cat((img0, img1, time, warped0, warped1, mask), 1), flow, scale)
                flow, mask = flow + d, mask + m
            warped0, warped1 = warp(img0, flow[:, :2]), warp(img1, flow[:, 2:4])
            w = torch.sigmoid(mask)
            flows.append(flow)
            masks.append(w)
            merged.append(warped0 * w + warped1 * (1 - w))
        teacher = None
        if gt is not None:
            d, m = self.teacher(
                torch.cat((img0, img1, time, warped0, warped1, mask, gt), 1), flow, 1
            )
            flow_t, w = flow + d, torch.sigmoid(mask + m)
            teacher = (flow_t, warp(img0, flow_t[:, :2]) * w + warp(img1, flow_t[:, 2:4]) * (1 - w))
        return flows, merged, masks, (warped0, warped1), teacher

    def distillation(self, flows, merged, teacher, gt):
        flow_t, merged_t = teacher
        loss = 0
        for flow, image in zip(flows, merged):
            better = (
                (
                    (image - gt).abs().mean(1, True)
                    > (merged_t - gt).abs().mean(1, True) + self.cfg.distill_margin
                )
                .to(gt.dtype)
                .detach()
            )
            loss += (((flow_t.detach() - flow) ** 2).mean(1, True) ** 0.5 * better).mean()
        return loss

    @staticmethod
    def edge_aware_smoothness(flow, img):
        dx, dy = (
            (flow[..., :, 1:] - flow[..., :, :-1]).abs(),
            (flow[..., 1:, :] - flow[..., :-1, :]).abs(),
        )
        wx = torch.exp(-10 * (img[..., :, 1:] - img[..., :, :-1]).abs().mean(1, keepdim=True))
        wy = torch.exp(-10 * (img[..., 1:, :] - img[..., :-1, :]).abs().mean(1, keepdim=True))
        return (dx * wx).mean() + (dy * wy).mean()

    def forward(self, img0, img1, timestep, gt=None):
        n, _, h, w = img0.shape
        unit = 4 * max(self.cfg.scales)
        pad = (0, (-w) % unit, 0, (-h) % unit)
        img0, img1 = F.pad(img0, pad, mode="replicate"), F.pad(img1, pad, mode="replicate")
        gt = F.pad(gt, pad, mode="replicate") if gt is not None else None
        time = timestep.view(-1, 1, 1, 1).expand(n, 1, *img0.shape[2:])

        flows, merged, masks, warped, teacher = self.estimate(img0, img1, time, gt)
        flow = flows[-1]
        ctx0, ctx1 = self.contextnet(img0, flow[:, :2]), self.contextnet(img1, flow[:, 2:4])
        res = self.unet(torch.cat((img0, img1, *warped, masks[-1], flow), 1), ctx0, ctx1) * 2 - 1
        pred = torch.clamp(merged[-1] + res, 0, 1)
        out = {"pred": pred[:, :, :h, :w], "flow": flow[:, :, :h, :w]}
        if gt is not None:
            cfg = self.cfg
            out["loss_l1"] = self.lap(pred, gt)
            out["loss_tea"] = cfg.lambda_tea * self.lap(teacher[1], gt)
            out["loss_distill"] = cfg.lambda_distill * self.distillation(flows, merged, teacher, gt)
            out["loss_census"] = cfg.lambda_census * self.census(pred, gt)
            out["loss_smooth"] = cfg.lambda_smooth * self.edge_aware_smoothness(flow, gt)
            out["loss"] = sum(v for k, v in out.items() if k.startswith("loss_"))
            with torch.no_grad():
                out["psnr"] = -10 * torch.log10(((out["pred"] - gt[:, :, :h, :w]) ** 2).mean())
        return out
