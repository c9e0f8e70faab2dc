"""A denoiser whose blocks come from a registry, with sinusoidal time steps."""

import math

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

BLOCKS = {}


def register(name):
    def wrap(cls):
        BLOCKS[name] = cls
        return cls

    return wrap


def timestep_embedding(t: Tensor, dim: int, max_period: int = 10000) -> Tensor:
    half = dim // 2
    freqs = torch.exp(
        -math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half
    )
    args = t[:, None] * freqs[None].to(device=t.device)
    emb = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
    if dim % 2:
        emb = torch.cat([emb, torch.zeros_like(emb[:, :1])], dim=-1)
    return emb


def zero_module(module: nn.Module) -> nn.Module:
    for p in module.parameters():
        p.detach().zero_()
    return module


class GroupNorm32(nn.GroupNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).type(x.dtype)


@register("res")
class ResBlock(nn.Module):
    def __init__(
        self, cin: int, cout: int, emb: int, dropout: float = 0.0, use_checkpoint: bool = False
    ):
        super().__init__()
        self.in_layers = nn.Sequential(
            GroupNorm32(4, cin), nn.SiLU(), nn.Conv2d(cin, cout, 3, padding=1)
        )
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb, 2 * cout))
        self.out_norm = GroupNorm32(4, cout)
        self.out = nn.Sequential(
            nn.SiLU(), nn.Dropout(p=dropout), zero_module(nn.Conv2d(cout, cout, 3, padding=1))
        )
        self.skip = nn.Identity() if cin == cout else nn.Conv2d(cin, cout, 1)
        self.use_checkpoint = use_checkpoint

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        if self.use_checkpoint and x.requires_grad:
            return checkpoint(self._forward, x, emb, use_reentrant=False)
        return self._forward(x, emb)

    def _forward(self, x, emb):
        h = self.in_layers(x)
        scale, shift = self.emb_layers(emb).type(h.dtype)[..., None, None].chunk(2, dim=1)
        h = self.out_norm(h) * (1 + scale) + shift
        return self.skip(x) + self.out(h)


@register("attn")
class AttentionBlock(nn.Module):
    def __init__(self, channels: int, heads: int = 2):
        super().__init__()
        self.norm = GroupNorm32(4, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj = zero_module(nn.Conv1d(channels, channels, 1))
        self.heads = heads

    def forward(self, x: Tensor, emb: Tensor | None = None) -> Tensor:
        b, c, *spatial = x.shape
        x = x.reshape(b, c, -1)
        qkv = self.qkv(self.norm(x)).reshape(b * self.heads, -1, x.shape[-1])
        q, k, v = torch.split(qkv, c // self.heads, 1)
        scale = 1 / math.sqrt(math.sqrt(c // self.heads))
        w = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        w = torch.softmax(w.float(), dim=-1).type(w.dtype)
        a = torch.einsum("bts,bcs->bct", w, v).reshape(b, c, -1)
        return (x + self.proj(a)).reshape(b, c, *spatial)


class Denoiser(nn.Module):
    def __init__(self, cin=3, ch=8, mults=(1, 2), blocks=("res", "attn"), num_classes=None):
        super().__init__()
        self.ch = ch
        emb = ch * 4
        self.time_embed = nn.Sequential(nn.Linear(ch, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label_emb = nn.Embedding(num_classes, emb) if num_classes else None
        self.stem = nn.Conv2d(cin, ch, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        chans = [ch * m for m in mults]
        prev = ch
        for c in chans:
            self.down.append(
                nn.ModuleList([BLOCKS["res"](prev, c, emb), BLOCKS["attn"](c), nn.AvgPool2d(2)])
            )
            prev = c
        for c in reversed(chans):
            self.up.append(
                nn.ModuleList(
                    [
                        nn.Upsample(scale_factor=2, mode="nearest"),
                        BLOCKS["res"](prev + c, c, emb, 0.1),
                    ]
                )
            )
            prev = c
        self.out = nn.Sequential(
            GroupNorm32(4, prev), nn.SiLU(), nn.Conv2d(prev, cin, 3, padding=1)
        )

    def forward(self, x, t, y=None):
        emb = self.time_embed(timestep_embedding(t, self.ch).to(x.dtype))
        if self.label_emb is not None:
            emb = emb + self.label_emb(y)
        h, skips = self.stem(x), []
        for res, attn, pool in self.down:
            h = attn(res(h, emb))
            skips.append(h)
            h = pool(h)
        for upsample, res in self.up:
            h = res(torch.cat([upsample(h), skips.pop()], dim=1), emb)
        return self.out(h)


@torch.no_grad()
def sample(model, shape, betas, device="cpu"):
    x = torch.randn(*shape, device=device)
    alphas = torch.cumprod(1.0 - betas, dim=0)
    for i in range(len(betas))[::-1]:
        t = torch.full((shape[0],), i, device=device, dtype=torch.long)
        eps = model(x, t)
        x = (x - betas[i] / (1 - alphas[i]).sqrt() * eps) / (1 - betas[i]).sqrt()
        if i > 0:
            x += betas[i].sqrt() * torch.randn_like(x)
    return x
