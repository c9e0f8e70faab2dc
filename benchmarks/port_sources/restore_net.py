"""Image restoration / super-resolution U-Net mixing NAF blocks, Restormer transposed attention and
shifted-window attention with relative position bias.  Tail: PixelShuffle."""

import argparse
import math
from collections import OrderedDict, namedtuple
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange
from einops.layers.torch import Rearrange

StageCfg = namedtuple("StageCfg", ["kind", "depth", "heads"])
BLOCKS = {}


def register(fn_or_cls):
    BLOCKS[fn_or_cls.__name__.replace("Block", "").lower()] = fn_or_cls
    return fn_or_cls


class LayerNorm2d(nn.Module):
    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.ones(channels)))
        self.register_parameter("bias", nn.Parameter(torch.zeros(channels)))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(1, keepdim=True)
        var = (x - mu).pow(2).mean(1, keepdim=True)
        y = (x - mu) / (var + self.eps).sqrt()
        return self.weight.view(1, -1, 1, 1) * y + self.bias.view(1, -1, 1, 1)


class SimpleGate(nn.Module):
    def forward(self, x):
        x1, x2 = x.chunk(2, dim=1)
        return x1 * x2


class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x.div(keep) * mask


@register
class NAFBlock(nn.Module):
    def __init__(self, c, heads=None, drop_path=0.0, DW_Expand=2, FFN_Expand=2):
        super().__init__()
        dw = c * DW_Expand
        self.body = nn.Sequential(
            OrderedDict(
                [
                    ("norm1", LayerNorm2d(c)),
                    ("conv1", nn.Conv2d(c, dw, 1)),
                    ("conv2", nn.Conv2d(dw, dw, 3, padding=1, groups=dw)),
                    ("sg", SimpleGate()),
                ]
            )
        )
        self.sca = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(dw // 2, dw // 2, 1))
        self.conv3 = nn.Conv2d(dw // 2, c, 1)
        self.ffn = nn.Sequential(
            LayerNorm2d(c),
            nn.Conv2d(c, c * FFN_Expand, 1),
            SimpleGate(),
            nn.Conv2d(c * FFN_Expand // 2, c, 1),
        )
        self.drop = DropPath(drop_path)
        self.beta = nn.Parameter(torch.full((1, c, 1, 1), 1e-2), requires_grad=True)
        self.gamma = nn.Parameter(torch.full((1, c, 1, 1), 1e-2), requires_grad=True)

    def forward(self, inp):
        x = self.body(inp)
        x = self.conv3(x * self.sca(x))
        y = inp + self.drop(x) * self.beta
        return y + self.drop(self.ffn(y)) * self.gamma


@register
class MDTABlock(nn.Module):
    """Restormer: multi-Dconv head transposed attention + gated-Dconv FFN."""

    def __init__(self, c, heads, drop_path=0.0, expansion=2.0, bias=False):
        super().__init__()
        self.heads = heads
        hid = int(c * expansion)
        self.norm1, self.norm2 = LayerNorm2d(c), LayerNorm2d(c)
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.qkv = nn.Conv2d(c, c * 3, 1, bias=bias)
        self.qkv_dwconv = nn.Conv2d(c * 3, c * 3, 3, padding=1, groups=c * 3, bias=bias)
        self.project_out = nn.Conv2d(c, c, 1, bias=bias)
        self.project_in = nn.Conv2d(c, hid * 2, 1, bias=bias)
        self.dwconv = nn.Conv2d(
            hid * 2, hid * 2, 3, padding=1, groups=hid * 2, bias=bias, padding_mode="reflect"
        )
        self.ffn_out = nn.Conv2d(hid, c, 1, bias=bias)
        self.drop_path = DropPath(drop_path)

    def attn(self, x):
        h, w = x.shape[-2:]
        q, k, v = self.qkv_dwconv(self.qkv(x)).chunk(3, dim=1)
        q, k, v = map(
            lambda t: rearrange(t, "b (head c) h w -> b head c (h w)", head=self.heads), (q, k, v)
        )
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        attn = (q @ k.transpose(-2, -1)) * self.temperature
        out = attn.softmax(dim=-1) @ v
        return self.project_out(rearrange(out, "b head c (h w) -> b (head c) h w", h=h, w=w))

    def forward(self, x):
        x = x + self.drop_path(self.attn(self.norm1(x)))
        x1, x2 = self.dwconv(self.project_in(self.norm2(x))).chunk(2, dim=1)
        return x + self.drop_path(self.ffn_out(F.gelu(x1) * x2))


def window_partition(x, ws):
    B, H, W, C = x.shape
    x = x.view(B, H // ws, ws, W // ws, ws, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, ws * ws, C)


def window_reverse(windows, ws, H, W):
    x = windows.view(-1, H // ws, W // ws, ws, ws, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, H, W, windows.shape[-1])


class SwinLayer(nn.Module):
    def __init__(self, dim, heads, ws=4, shift=0, drop_path=0.0, mlp_ratio=2.0):
        super().__init__()
        self.heads, self.ws, self.shift = heads, ws, shift
        self.scale = (dim // heads) ** -0.5
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * ws - 1) ** 2, heads))
        coords = torch.stack(
            torch.meshgrid([torch.arange(ws), torch.arange(ws)], indexing="ij")
        ).flatten(1)
        rel = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
        rel += ws - 1
        rel[:, :, 0] *= 2 * ws - 1
        self.register_buffer("relative_position_index", rel.sum(-1))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, int(dim * mlp_ratio)), nn.GELU(), nn.Linear(int(dim * mlp_ratio), dim)
        )
        self.drop_path = DropPath(drop_path)

    def calculate_mask(self, H, W, device):
        img_mask = torch.zeros((1, H, W, 1), device=device)
        slices = (slice(0, -self.ws), slice(-self.ws, -self.shift), slice(-self.shift, None))
        for i, h in enumerate(slices):
            for j, w in enumerate(slices):
                img_mask[:, h, w, :] = i * 3 + j
        m = window_partition(img_mask, self.ws).squeeze(-1)
        m = m.unsqueeze(1) - m.unsqueeze(2)
        return m.masked_fill(m != 0, float(-100.0)).masked_fill(m == 0, float(0.0))

    def forward(self, x):
        B, H, W, C = x.shape
        N = self.ws * self.ws
        y = self.norm1(x)
        if self.shift > 0:
            y = torch.roll(y, shifts=(-self.shift, -self.shift), dims=(1, 2))
        y = window_partition(y, self.ws)
        q, k, v = self.qkv(y).reshape(-1, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)].view(
            N, N, -1
        )
        attn = attn + bias.permute(2, 0, 1).contiguous().unsqueeze(0)
        if self.shift > 0:
            mask = self.calculate_mask(H, W, x.device).to(attn.dtype)
            nW = mask.shape[0]
            attn = attn.view(B, nW, self.heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.heads, N, N)
        y = self.proj((attn.softmax(-1) @ v).transpose(1, 2).reshape(-1, N, C))
        y = window_reverse(y, self.ws, H, W)
        if self.shift > 0:
            y = torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))
        x = x + self.drop_path(y)
        return x + self.drop_path(self.mlp(self.norm2(x)))


@register
def SwinBlock(c, heads, drop_path=0.0, ws=4):
    return nn.Sequential(
        Rearrange("b c h w -> b h w c"),
        SwinLayer(c, heads, ws, 0, drop_path),
        SwinLayer(c, heads, ws, ws // 2, drop_path),
        Rearrange("b h w c -> b c h w"),
    )


class RestoreNet(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.scale = args.scale
        stages = [StageCfg(*s) for s in args.stages]
        n = sum(s.depth for s in stages)
        rates = iter(torch.linspace(0, args.drop_path, n).tolist())
        dim = args.dim
        self.intro = nn.Conv2d(3, dim, 3, padding=1)
        self.encoders, self.downs = nn.ModuleList(), nn.ModuleList()
        self.decoders, self.ups, self.fuse = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        chans = [dim * 2**i for i in range(len(stages))]
        for i, (cfg, c) in enumerate(zip(stages, chans)):
            make = partial(BLOCKS[cfg.kind], c, cfg.heads)
            self.encoders.append(
                nn.Sequential(*[make(drop_path=next(rates)) for _ in range(cfg.depth)])
            )
            if i < len(stages) - 1:
                self.downs.append(
                    nn.Sequential(
                        nn.Conv2d(c, c // 2, 3, padding=1, bias=False), nn.PixelUnshuffle(2)
                    )
                )
                self.ups.insert(
                    0, nn.Sequential(nn.Conv2d(c * 2, c * 4, 1, bias=False), nn.PixelShuffle(2))
                )
                self.fuse.insert(0, nn.Conv2d(c * 2, c, 1))
                self.decoders.insert(0, make())
        self.gn = nn.GroupNorm(4, dim)
        tail = []
        for _ in range(int(math.log2(self.scale))):
            tail += [nn.Conv2d(dim, 4 * dim, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(dim)]
        self.tail = nn.Sequential(*tail, nn.Conv2d(dim, 3, 3, padding=1))
        self.padder = 4 * 2 ** (len(stages) - 1)
        self.register_buffer("mean", torch.tensor(args.rgb_mean).view(1, 3, 1, 1))
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            nn.init.zeros_(m.bias)

    def check_image_size(self, x):
        _, _, h, w = x.size()
        ph, pw = (
            (self.padder - h % self.padder) % self.padder,
            (self.padder - w % self.padder) % self.padder,
        )
        return F.pad(x, (0, pw, 0, ph), "reflect")

    def forward(self, lq):
        H, W = lq.shape[-2:]
        x = first = self.intro(self.check_image_size(lq - self.mean))
        skips = []
        for i, enc in enumerate(self.encoders):
            x = enc(x)
            if i < len(self.downs):
                skips.append(x)
                x = self.downs[i](x)
        for up, fuse, dec, skip in zip(self.ups, self.fuse, self.decoders, skips[::-1]):
            x = dec(fuse(torch.cat([up(x), skip], dim=1)))
        x = self.tail(self.gn(x) + first)[:, :, : H * self.scale, : W * self.scale]
        base = F.interpolate(lq, scale_factor=self.scale, mode="bicubic", align_corners=False)
        return base + x if self.training else (base + x).clamp(0, 1)


def parse_args(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=16)
    p.add_argument("--scale", type=int, default=2)
    p.add_argument("--drop_path", type=float, default=0.1)
    args = p.parse_args(argv)
    args.stages = [("naf", 2, None), ("mdta", 2, 2), ("swin", 1, 4)]
    args.rgb_mean = (0.4488, 0.4371, 0.4040)
    return args


if __name__ == "__main__":
    net = RestoreNet(parse_args())
    print(sum(p.numel() for p in net.parameters()), net(torch.rand(1, 3, 22, 30)).shape)
