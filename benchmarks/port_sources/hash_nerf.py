"""Instant-NGP-like radiance field in pure PyTorch: multiresolution hash grid, SH directions,
coarse sampling + importance resampling, exclusive-transmittance compositing."""

import math
from functools import partial
from typing import NamedTuple, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange, repeat, reduce

PRIMES = (1, 2654435761, 805459861)


class RenderOutput(NamedTuple):
    rgb: torch.Tensor
    depth: torch.Tensor
    acc: torch.Tensor
    weights: torch.Tensor
    distortion: torch.Tensor


class TruncExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.exp(x.clamp(-15, 15))


trunc_exp = TruncExp.apply


class FrequencyEncoding(nn.Module):
    def __init__(self, in_dim, n_freqs, include_input=True):
        super().__init__()
        self.include_input = include_input
        self.register_buffer(
            "freqs", 2.0 ** torch.linspace(0.0, n_freqs - 1, n_freqs), persistent=False
        )
        self.out_dim = in_dim * (2 * n_freqs + int(include_input))

    def forward(self, x):
        xb = x[..., None, :] * self.freqs[:, None] * math.pi
        four = torch.sin(torch.stack([xb, xb + 0.5 * math.pi], dim=-2))
        four = rearrange(four, "... f t d -> ... (f t d)")
        return torch.cat([x, four], dim=-1) if self.include_input else four


class HashGrid(nn.Module):
    def __init__(self, n_levels=6, n_features=2, log2_size=10, base_res=4, max_res=64):
        super().__init__()
        self.n_levels, self.n_features, self.size = n_levels, n_features, 2**log2_size
        growth = math.exp((math.log(max_res) - math.log(base_res)) / (n_levels - 1))
        res = [int(math.floor(base_res * growth**l)) for l in range(n_levels)]
        self.register_buffer("resolutions", torch.tensor(res))
        corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), -1).reshape(-1, 3)
        self.register_buffer("corners", torch.from_numpy(corners).long())
        self.tables = nn.ParameterList()
        for r in res:
            n = min((r + 1) ** 3, self.size)
            self.tables.append(nn.Parameter(torch.empty(n, n_features).uniform_(-1e-1, 1e-1)))
        self.out_dim = n_levels * n_features

    def index(self, c, r, n):
        if (r + 1) ** 3 <= n:
            return c[..., 0] + c[..., 1] * (r + 1) + c[..., 2] * (r + 1) ** 2
        h = c[..., 0] * PRIMES[0]
        h = torch.bitwise_xor(h, c[..., 1] * PRIMES[1])
        h ^= c[..., 2] * PRIMES[2]
        return h % n

    def forward(self, x):
        feats = []
        for table, r in zip(self.tables, self.resolutions.tolist()):
            xs = x * r
            lo = torch.floor(xs.detach()).clamp(0, r - 1)
            frac = xs - lo
            frac = frac * frac * (3.0 - 2.0 * frac)
            vert = lo.long()[..., None, :] + self.corners  # (..., 8, 3)
            f = table[self.index(vert, r, table.shape[0])]  # (..., 8, F)
            w = torch.where(self.corners.bool(), frac[..., None, :], 1 - frac[..., None, :]).prod(
                -1
            )
            feats.append((w[..., None] * f).sum(-2))
        return torch.cat(feats, -1)


def spherical_harmonics(d):
    """Real SH basis up to degree 3 (9 coefficients)."""
    x, y, z = d.unbind(-1)
    out = d.new_empty(*d.shape[:-1], 9)
    out[..., 0] = 0.28209479177387814
    out[..., 1] = -0.48860251190291987 * y
    out[..., 2] = 0.48860251190291987 * z
    out[..., 3] = -0.48860251190291987 * x
    out[..., 4] = 1.0925484305920792 * x * y
    out[..., 5] = -1.0925484305920792 * y * z
    out[..., 6] = 0.94617469575755997 * z * z - 0.31539156525251999
    out[..., 7] = -1.0925484305920792 * x * z
    out[..., 8] = 0.54627421529603959 * (x * x - y * y)
    return out


def mlp(in_dim, hidden, out_dim, depth, act=partial(nn.ReLU, inplace=True), bias=False):
    dims = [in_dim] + [hidden] * depth
    layers = []
    for a, b in zip(dims, dims[1:]):
        layers += [nn.Linear(a, b, bias=bias), act()]
    return nn.Sequential(*layers, nn.Linear(dims[-1], out_dim, bias=bias))


class Field(nn.Module):
    def __init__(self, bound=1.0, hidden=32, geo_dim=15, n_appearance=4, **grid_kw):
        super().__init__()
        self.bound = bound
        self.grid = HashGrid(**grid_kw)
        self.freq = FrequencyEncoding(3, 4)
        self.sigma_net = mlp(self.grid.out_dim + self.freq.out_dim, hidden, 1 + geo_dim, 1)
        self.appearance = nn.Embedding(n_appearance, 8)
        self.color_net = mlp(geo_dim + 9 + 8, hidden, 3, 2, bias=True)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.kaiming_uniform_(m.weight, a=math.sqrt(5))
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Embedding):
            nn.init.normal_(m.weight, std=0.05)

    def contract(self, x):
        # mip-NeRF 360 contraction into the unit cube
        mag = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-6)
        x = x / self.bound
        mag = mag / self.bound
        z = torch.where(mag <= 1, x, (2 - 1 / mag) * (x / mag))
        return (z + 2) / 4

    def density(self, x):
        u = self.contract(x)
        h = self.sigma_net(torch.cat([self.grid(u), self.freq(u * 2 - 1)], -1))
        sigma, geo = h[..., 0], h[..., 1:]
        return trunc_exp(sigma - 1.0), geo

    def forward(self, x, d, cam: Optional[torch.Tensor] = None):
        sigma, geo = self.density(x)
        sh = spherical_harmonics(d)
        if cam is not None and self.training:
            app = self.appearance(cam)
        else:
            app = self.appearance.weight.mean(0).expand(x.shape[0], -1)
        app = repeat(app, "r c -> r s c", s=x.shape[1])
        sh = repeat(sh, "r c -> r s c", s=x.shape[1])
        return sigma, torch.sigmoid(self.color_net(torch.cat([sh, geo, app], dim=-1)))


def sample_pdf(bins, weights, n, u=None, eps=1e-5):
    weights = weights + eps
    pdf = weights / reduce(weights, "r s -> r 1", "sum")
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    if u is None:
        u = torch.linspace(0.5 / n, 1 - 0.5 / n, n, device=bins.device, dtype=bins.dtype).expand(
            bins.shape[0], n
        )
    u = u.contiguous()
    inds = torch.searchsorted(cdf.detach(), u, right=True)
    below = torch.clamp_min(inds - 1, 0)
    above = torch.clamp_max(inds, cdf.shape[-1] - 1)
    inds_sampled = torch.stack([below, above], -1).view(bins.shape[0], 2 * n)
    cdf_g = rearrange(torch.gather(cdf, 1, inds_sampled), "r (n c) -> r n c", c=2)
    bins_g = rearrange(torch.gather(bins, 1, inds_sampled), "r (n c) -> r n c", c=2)
    denom = cdf_g[..., 1] - cdf_g[..., 0]
    denom = torch.where(denom < eps, torch.ones_like(denom), denom)
    t = (u - cdf_g[..., 0]) / denom
    return bins_g[..., 0] + t * (bins_g[..., 1] - bins_g[..., 0])


def composite(sigma, t_edges):
    delta = t_edges[..., 1:] - t_edges[..., :-1]
    alpha = 1.0 - torch.exp(-sigma * delta)
    trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1.0 - alpha + 1e-10], -1), -1)[
        :, :-1
    ]
    return alpha * trans


def distortion_loss(w, t_edges):
    mid = (t_edges[..., 1:] + t_edges[..., :-1]) / 2
    inter = (w[..., None] * w[..., None, :] * (mid[..., None] - mid[..., None, :]).abs()).sum(
        (-1, -2)
    )
    intra = (w**2 * torch.diff(t_edges, dim=-1)).sum(-1) / 3
    return inter + intra


class NGP(nn.Module):
    def __init__(self, n_coarse=12, n_fine=16, near=0.2, far=4.0, white_bg=True, **field_kw):
        super().__init__()
        self.n_coarse, self.n_fine = n_coarse, n_fine
        self.near, self.far = near, far
        self.white_bg = white_bg
        self.proposal = mlp(FrequencyEncoding(3, 3).out_dim, 16, 1, 2, act=nn.Softplus, bias=True)
        self.prop_enc = FrequencyEncoding(3, 3)
        self.field = Field(**field_kw)

    def forward(self, rays_o, rays_d, cam=None):
        d = F.normalize(rays_d, dim=-1)
        s = torch.linspace(0, 1, self.n_coarse + 1).to(rays_o)
        edges = 1.0 / (1.0 / self.near * (1 - s) + 1.0 / self.far * s)  # linear in disparity
        edges = edges.expand(rays_o.shape[0], -1)
        mid = 0.5 * (edges[:, 1:] + edges[:, :-1])
        pts = torch.addcmul(rays_o[:, None], d[:, None], mid[..., None])
        sig_c = F.softplus(self.proposal(self.prop_enc(self.field.contract(pts))).squeeze(-1))
        w_c = composite(sig_c, edges)

        t_fine, _ = torch.sort(sample_pdf(edges, w_c.detach(), self.n_fine + 1), dim=-1)
        mid = (t_fine[:, 1:] + t_fine[:, :-1]).mul(0.5)
        pts = rays_o.unsqueeze(1) + d.unsqueeze(1) * mid.unsqueeze(2)
        sigma, rgb = self.field(pts, d, cam)
        w = composite(sigma, t_fine)
        acc = w.sum(-1)
        color = torch.einsum("rs,rsc->rc", w, rgb)
        if self.white_bg:
            color = color + (1.0 - acc[:, None])
        depth = (w * mid).sum(-1) / acc.clamp_min(1e-6)
        out = RenderOutput(color, depth, acc, w, distortion_loss(w, t_fine))
        # proposal supervision, histogram upper bound is approximated by the coarse opacity
        return out._asdict() | {"acc_coarse": w_c.sum(-1)}


if __name__ == "__main__":
    net = NGP()
    print(sum(p.numel() for p in net.parameters()))
    print(net(torch.randn(5, 3) * 0.3, torch.randn(5, 3), torch.randint(0, 4, (5,)))["rgb"])
