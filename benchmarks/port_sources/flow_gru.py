# Recurrent optical flow with a feature pyramid, local cost volume, backward warping and a
# separable ConvGRU update operator. Follows the structure of PWC-Net / RAFT, but small.
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def coords_grid(batch, ht, wd, device, dtype):
    coords = torch.meshgrid(
        torch.arange(ht, device=device, dtype=dtype),
        torch.arange(wd, device=device, dtype=dtype),
        indexing="ij",
    )
    coords = torch.stack(coords[::-1], dim=0)
    return coords[None].repeat(batch, 1, 1, 1)


def flow_warp(x, flow):
    """
    warp an image/tensor (im2) back to im1, according to the optical flow
        x: [B, C, H, W] (im2)
        flow: [B, 2, H, W]
    """
    B, C, H, W = x.size()
    vgrid = coords_grid(B, H, W, x.device, x.dtype) + flow
    # scale grid to [-1,1]
    vx = 2.0 * vgrid[:, 0] / max(W - 1, 1) - 1.0
    vy = 2.0 * vgrid[:, 1] / max(H - 1, 1) - 1.0
    grid = torch.stack([vx, vy], dim=-1)
    output = F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True)
    mask = (vx.abs() <= 1) & (vy.abs() <= 1)
    mask = mask.unsqueeze(1).to(x.dtype)
    return output * mask, mask


def local_correlation(f1, f2, radius):
    """Cost volume in a (2r+1)^2 window, computed with unfold."""
    b, c, h, w = f1.shape
    k = 2 * radius + 1
    win = F.unfold(f2, kernel_size=k, padding=radius).view(b, c, k * k, h, w)
    corr = (f1.unsqueeze(2) * win).sum(1) / math.sqrt(c)
    return F.leaky_relu(corr, 0.1)


def upflow(flow, factor=2, mode="bilinear"):
    new_size = (factor * flow.shape[2], factor * flow.shape[3])
    return factor * F.interpolate(flow, size=new_size, mode=mode, align_corners=True)


class ResidualBlock(nn.Module):
    def __init__(self, in_planes, planes, norm_fn="group", stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, padding=1, stride=stride)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        if norm_fn == "group":
            make = lambda: nn.GroupNorm(num_groups=planes // 8, num_channels=planes)
        elif norm_fn == "batch":
            make = lambda: nn.BatchNorm2d(planes)
        elif norm_fn == "instance":
            make = lambda: nn.InstanceNorm2d(planes)
        elif norm_fn == "none":
            make = lambda: nn.Sequential()
        else:
            raise ValueError(norm_fn)
        self.norm1, self.norm2 = make(), make()
        if stride == 1 and in_planes == planes:
            self.downsample = None
        else:
            self.norm3 = make()
            self.downsample = nn.Sequential(
                nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride), self.norm3
            )

    def forward(self, x):
        y = x
        y = self.relu(self.norm1(self.conv1(y)))
        y = self.relu(self.norm2(self.conv2(y)))
        if self.downsample is not None:
            x = self.downsample(x)
        return self.relu(x + y)


class PyramidEncoder(nn.Module):
    def __init__(self, chans=(16, 32, 48), norm_fn="instance"):
        super().__init__()
        self.stem = nn.Conv2d(3, chans[0], 7, padding=3)
        levels, prev = [], chans[0]
        for c in chans:
            levels.append(
                nn.Sequential(
                    ResidualBlock(prev, c, norm_fn, stride=2),
                    ResidualBlock(c, c, norm_fn, stride=1),
                )
            )
            prev = c
        self.levels = nn.ModuleList(levels)

    def forward(self, x):
        # if input is list, combine batch dimension
        is_list = isinstance(x, (tuple, list))
        if is_list:
            batch_dim = x[0].shape[0]
            x = torch.cat(x, dim=0)
        x = F.relu(self.stem(x))
        feats = []
        for lvl in self.levels:
            x = lvl(x)
            feats.append(x)
        if is_list:
            return zip(*[torch.split(f, [batch_dim, batch_dim], dim=0) for f in feats])
        return feats


class SepConvGRU(nn.Module):
    def __init__(self, hidden_dim=48, input_dim=96):
        super(SepConvGRU, self).__init__()
        for i, (ks, pad) in enumerate([((1, 5), (0, 2)), ((5, 1), (2, 0))], start=1):
            for gate in "zrq":
                setattr(
                    self,
                    f"conv{gate}{i}",
                    nn.Conv2d(hidden_dim + input_dim, hidden_dim, ks, padding=pad),
                )

    def forward(self, h, x):
        # horizontal then vertical
        for i in (1, 2):
            hx = torch.cat([h, x], dim=1)
            z = torch.sigmoid(getattr(self, f"convz{i}")(hx))
            r = torch.sigmoid(getattr(self, f"convr{i}")(hx))
            q = torch.tanh(getattr(self, f"convq{i}")(torch.cat([r * h, x], dim=1)))
            h = (1 - z) * h + z * q
        return h


class MotionEncoder(nn.Module):
    def __init__(self, cor_planes, out=40):
        super().__init__()
        self.convc1 = nn.Conv2d(cor_planes, 48, 1)
        self.convf1 = nn.Conv2d(2, 24, 7, padding=3)
        self.convf2 = nn.Conv2d(24, 16, 3, padding=1)
        self.conv = nn.Conv2d(48 + 16 + 1, out - 2, 3, padding=1)

    def forward(self, flow, corr, occ):
        cor = F.relu(self.convc1(corr))
        flo = F.relu(self.convf2(F.relu(self.convf1(flow))))
        out = F.relu(self.conv(torch.cat([cor, flo, occ], dim=1)))
        return torch.cat([out, flow], dim=1)


class FlowGRU(nn.Module):
    def __init__(self, chans=(16, 32, 48), hidden=32, radius=3, iters=3):
        super().__init__()
        self.hidden, self.radius, self.iters = hidden, radius, iters
        self.fnet = PyramidEncoder(chans, "instance")
        self.cnet = PyramidEncoder(chans, "batch")
        k = (2 * radius + 1) ** 2
        self.ctx = nn.ModuleDict(
            {f"lvl{i}": nn.Conv2d(c, 2 * hidden, 1) for i, c in enumerate(chans)}
        )
        self.encoder = MotionEncoder(k, out=40)
        self.gru = SepConvGRU(hidden, 40 + hidden)
        self.flow_head = nn.Sequential(
            nn.Conv2d(hidden, 64, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(64, 2, 3, padding=1),
        )
        self.mask = nn.Sequential(
            nn.Conv2d(hidden, 64, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(64, 2 * 2 * 9, 1)
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)) and m.weight is not None:
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
        nn.init.normal_(self.flow_head[-1].weight, std=0.01)

    def upsample_flow(self, flow, mask):
        """Upsample flow field [H, W, 2] -> [2H, 2W, 2] using convex combination"""
        N, _, H, W = flow.shape
        mask = mask.view(N, 1, 9, 2, 2, H, W)
        mask = torch.softmax(mask, dim=2)
        up_flow = F.unfold(2 * flow, [3, 3], padding=1)
        up_flow = up_flow.view(N, 2, 9, 1, 1, H, W)
        up_flow = torch.sum(mask * up_flow, dim=2)
        up_flow = up_flow.permute(0, 1, 4, 2, 5, 3)
        return up_flow.reshape(N, 2, 2 * H, 2 * W)

    def forward(self, image1, image2):
        image1 = 2 * (image1 / 255.0) - 1.0
        image2 = 2 * (image2 / 255.0) - 1.0
        fmap1, fmap2 = self.fnet([image1, image2])
        cfeat = self.cnet(image1)

        flow = None
        predictions = []
        for lvl in reversed(range(len(cfeat))):
            f1, f2 = fmap1[lvl], fmap2[lvl]
            net, inp = torch.split(self.ctx[f"lvl{lvl}"](cfeat[lvl]), self.hidden, dim=1)
            net, inp = torch.tanh(net), torch.relu(inp)
            if flow is None:
                flow = f1.new_zeros(f1.shape[0], 2, *f1.shape[-2:])
            else:
                flow = upflow(flow)
            for _ in range(self.iters):
                flow = flow.detach()
                warped, valid = flow_warp(f2, flow)
                corr = local_correlation(f1, warped, self.radius)
                net = self.gru(net, torch.cat([inp, self.encoder(flow, corr, valid)], dim=1))
                flow = flow + self.flow_head(net)
            predictions.append(self.upsample_flow(flow, 0.25 * self.mask(net)))
        return predictions


def sequence_loss(preds, gt, gamma=0.8):
    loss = 0.0
    for i, p in enumerate(preds):
        scale = gt.shape[-1] // p.shape[-1]
        target = F.avg_pool2d(gt, scale) / scale
        epe = torch.norm(p - target, p=2, dim=1)
        loss = loss + gamma ** (len(preds) - i - 1) * epe.mean()
    return loss


if __name__ == "__main__":
    m = FlowGRU()
    print(sum(np.prod(p.shape) for p in m.parameters()))
    print([p.shape for p in m(torch.rand(1, 3, 48, 64) * 255, torch.rand(1, 3, 48, 64) * 255)])
