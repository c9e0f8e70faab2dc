"""Lightweight image super-resolution with (shifted) window attention and channel attention."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.init import trunc_normal_


def window_partition(x, window_size):
    """(B, H, W, C) -> (num_windows * B, window_size, window_size, C)"""
    B, H, W, C = x.shape
    x = x.view(B, H // window_size, window_size, W // window_size, window_size, C)
    windows = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window_size, window_size, C)
    return windows


def window_reverse(windows, window_size, H, W):
    B = int(windows.shape[0] / (H * W / window_size / window_size))
    x = windows.view(B, H // window_size, W // window_size, window_size, window_size, -1)
    x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)
    return x


class DropPath(nn.Module):
    def __init__(self, drop_prob=0.0):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep_prob = 1 - self.drop_prob
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        random_tensor = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
        random_tensor.floor_()
        return x.div(keep_prob) * random_tensor


class GatedDconvFFN(nn.Module):
    """GELU gate over a depth-wise convolution."""

    def __init__(self, dim, expansion=2.0):
        super().__init__()
        hidden = int(dim * expansion)
        self.project_in = nn.Linear(dim, hidden * 2)
        self.dwconv = nn.Conv2d(hidden * 2, hidden * 2, 3, 1, 1, groups=hidden * 2)
        self.project_out = nn.Linear(hidden, dim)

    def forward(self, x, x_size):
        H, W = x_size
        B, L, _ = x.shape
        x = self.project_in(x)
        x = x.transpose(1, 2).view(B, -1, H, W)
        x1, x2 = self.dwconv(x).flatten(2).transpose(1, 2).chunk(2, dim=-1)
        return self.project_out(F.gelu(x1) * x2)


class WindowAttention(nn.Module):
    def __init__(self, dim, window_size, num_heads, qkv_bias=True):
        super().__init__()
        self.dim = dim
        self.window_size = window_size  # Wh, Ww
        self.num_heads = num_heads
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones((num_heads, 1, 1))))

        self.relative_position_bias_table = nn.Parameter(
            torch.zeros((2 * window_size[0] - 1) * (2 * window_size[1] - 1), num_heads)
        )
        coords_h = torch.arange(self.window_size[0])
        coords_w = torch.arange(self.window_size[1])
        coords = torch.stack(torch.meshgrid([coords_h, coords_w], indexing="ij"))
        coords_flatten = torch.flatten(coords, 1)
        relative_coords = coords_flatten[:, :, None] - coords_flatten[:, None, :]
        relative_coords = relative_coords.permute(1, 2, 0).contiguous()
        relative_coords[:, :, 0] += self.window_size[0] - 1
        relative_coords[:, :, 1] += self.window_size[1] - 1
        relative_coords[:, :, 0] *= 2 * self.window_size[1] - 1
        self.register_buffer("relative_position_index", relative_coords.sum(-1))

        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x, mask=None):
        B_, N, C = x.shape
        qkv = (
            self.qkv(x)
            .reshape(B_, N, 3, self.num_heads, C // self.num_heads)
            .permute(2, 0, 3, 1, 4)
        )
        q, k, v = qkv[0], qkv[1], qkv[2]

        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        attn = attn * torch.clamp(self.logit_scale, max=math.log(1.0 / 0.01)).exp()

        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)].view(
            self.window_size[0] * self.window_size[1], self.window_size[0] * self.window_size[1], -1
        )
        attn = attn + bias.permute(2, 0, 1).contiguous().unsqueeze(0)

        if mask is not None:
            nW = mask.shape[0]
            attn = attn.view(B_ // nW, nW, self.num_heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.num_heads, N, N)
        attn = self.softmax(attn)
        x = (attn @ v).transpose(1, 2).reshape(B_, N, C)
        return self.proj(x)


class SwinBlock(nn.Module):
    def __init__(
        self, dim, num_heads, window_size=8, shift_size=0, ffn_expansion=2.0, drop_path=0.0
    ):
        super().__init__()
        assert 0 <= shift_size < window_size, "shift_size must be in [0, window_size)"
        self.window_size = window_size
        self.shift_size = shift_size
        self.norm1 = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, (window_size, window_size), num_heads)
        self.drop_path = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()
        self.norm2 = nn.LayerNorm(dim)
        self.ffn = GatedDconvFFN(dim, ffn_expansion)

    def forward(self, x, x_size, attn_mask):
        H, W = x_size
        B, L, C = x.shape
        shortcut = x
        x = self.norm1(x).view(B, H, W, C)
        if self.shift_size > 0:
            x = torch.roll(x, shifts=(-self.shift_size, -self.shift_size), dims=(1, 2))
        windows = window_partition(x, self.window_size)
        windows = windows.view(-1, self.window_size * self.window_size, C)
        windows = self.attn(windows, mask=attn_mask if self.shift_size > 0 else None)
        windows = windows.view(-1, self.window_size, self.window_size, C)
        x = window_reverse(windows, self.window_size, H, W)
        if self.shift_size > 0:
            x = torch.roll(x, shifts=(self.shift_size, self.shift_size), dims=(1, 2))
        x = shortcut + self.drop_path(x.view(B, H * W, C))
        x = x + self.drop_path(self.ffn(self.norm2(x), x_size))
        return x


class ChannelAttention(nn.Module):
    def __init__(self, num_feat, squeeze_factor=8):
        super().__init__()
        self.attention = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(num_feat, max(num_feat // squeeze_factor, 4), 1, padding=0),
            nn.ReLU(inplace=True),
            nn.Conv2d(max(num_feat // squeeze_factor, 4), num_feat, 1, padding=0),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return x * self.attention(x)


class ResidualGroup(nn.Module):
    def __init__(self, dim, depth, num_heads, window_size, ffn_expansion, drop_path):
        super().__init__()
        self.blocks = nn.ModuleList(
            [
                SwinBlock(
                    dim,
                    num_heads,
                    window_size,
                    0 if (i % 2 == 0) else window_size // 2,
                    ffn_expansion,
                    drop_path[i],
                )
                for i in range(depth)
            ]
        )
        self.conv = nn.Sequential(nn.Conv2d(dim, dim, 3, 1, 1), nn.GELU(), ChannelAttention(dim))

    def forward(self, x, x_size, attn_mask):
        res = x
        for blk in self.blocks:
            x = blk(x, x_size, attn_mask)
        B, L, C = x.shape
        x = self.conv(x.transpose(1, 2).reshape(B, C, *x_size))
        return x.flatten(2).transpose(1, 2) + res


class Upsample(nn.Sequential):
    def __init__(self, scale, num_feat):
        m = []
        if (scale & (scale - 1)) == 0:  # scale = 2^n
            for _ in range(int(math.log(scale, 2))):
                m.append(nn.Conv2d(num_feat, 4 * num_feat, 3, 1, 1))
                m.append(nn.PixelShuffle(2))
        elif scale == 3:
            m.append(nn.Conv2d(num_feat, 9 * num_feat, 3, 1, 1))
            m.append(nn.PixelShuffle(3))
        else:
            raise ValueError(f"scale {scale} is not supported. Supported scales: 2^n and 3.")
        super(Upsample, self).__init__(*m)


class CharbonnierLoss(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, x, y):
        return torch.mean(torch.sqrt((x - y) ** 2 + self.eps))


class WinSR(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.opt = opt
        self.scale = opt["scale"]
        self.window_size = opt["window_size"]
        dim = opt["embed_dim"]
        self.img_range = opt.get("img_range", 1.0)
        self.register_buffer("mean", torch.Tensor((0.4488, 0.4371, 0.4040)).view(1, 3, 1, 1))

        self.conv_first = nn.Conv2d(3, dim, 3, 1, 1)
        dpr = [
            x.item() for x in torch.linspace(0, opt.get("drop_path_rate", 0.1), sum(opt["depths"]))
        ]
        self.layers = nn.ModuleList()
        for i, depth in enumerate(opt["depths"]):
            self.layers.append(
                ResidualGroup(
                    dim,
                    depth,
                    opt["num_heads"][i],
                    self.window_size,
                    opt.get("ffn_expansion", 2.0),
                    dpr[sum(opt["depths"][:i]) : sum(opt["depths"][: i + 1])],
                )
            )
        self.norm = nn.LayerNorm(dim)
        self.conv_after_body = nn.Conv2d(dim, dim, 3, 1, 1)
        self.conv_before_upsample = nn.Sequential(
            nn.Conv2d(dim, opt["num_feat"], 3, 1, 1), nn.LeakyReLU(inplace=True)
        )
        self.upsample = Upsample(self.scale, opt["num_feat"])
        self.conv_last = nn.Conv2d(opt["num_feat"], 3, 3, 1, 1)
        self.cri_pix = CharbonnierLoss()
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0)
        elif isinstance(m, nn.LayerNorm):
            nn.init.constant_(m.bias, 0)
            nn.init.constant_(m.weight, 1.0)

    def calculate_mask(self, x_size, x):
        H, W = x_size
        shift = self.window_size // 2
        img_mask = torch.zeros((1, H, W, 1), device=x.device, dtype=x.dtype)
        slices = (
            slice(0, -self.window_size),
            slice(-self.window_size, -shift),
            slice(-shift, None),
        )
        cnt = 0
        for h in slices:
            for w in slices:
                img_mask[:, h, w, :] = cnt
                cnt += 1
        mask_windows = window_partition(img_mask, self.window_size)
        mask_windows = mask_windows.view(-1, self.window_size * self.window_size)
        attn_mask = mask_windows.unsqueeze(1) - mask_windows.unsqueeze(2)
        return attn_mask.masked_fill(attn_mask != 0, float(-100.0)).masked_fill(
            attn_mask == 0, float(0.0)
        )

    def check_image_size(self, x):
        _, _, h, w = x.size()
        mod_pad_h = (self.window_size - h % self.window_size) % self.window_size
        mod_pad_w = (self.window_size - w % self.window_size) % self.window_size
        return F.pad(x, (0, mod_pad_w, 0, mod_pad_h), "reflect")

    def forward_features(self, x):
        x_size = (x.shape[2], x.shape[3])
        attn_mask = self.calculate_mask(x_size, x)
        x = x.flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x, x_size, attn_mask)
        x = self.norm(x)
        return x.transpose(1, 2).contiguous().view(x.shape[0], -1, *x_size)

    def get_losses(self, sr, hr):
        l_pix = self.cri_pix(sr, hr)
        fft_sr = torch.fft.rfft2(sr, norm="ortho")
        fft_hr = torch.fft.rfft2(hr, norm="ortho")
        l_fft = F.l1_loss(torch.view_as_real(fft_sr), torch.view_as_real(fft_hr))
        return l_pix, self.opt.get("fft_weight", 0.05) * l_fft

    def forward(self, lq, gt=None):
        H, W = lq.shape[2:]
        x = (self.check_image_size(lq) - self.mean) * self.img_range
        x = self.conv_first(x)
        x = self.conv_after_body(self.forward_features(x)) + x
        x = self.conv_last(self.upsample(self.conv_before_upsample(x)))
        x = x / self.img_range + self.mean
        x = x[:, :, : H * self.scale, : W * self.scale]
        x = x + F.interpolate(
            lq - self.mean, scale_factor=self.scale, mode="bicubic", align_corners=False
        )
        if gt is None:
            return x
        l_pix, l_fft = self.get_losses(x, gt)
        psnr = 10 * torch.log10(
            1.0 / F.mse_loss(x.detach().clamp(0, 1), gt, reduction="none").mean((1, 2, 3))
        )
        return x, l_pix + l_fft, {"l_pix": l_pix, "l_fft": l_fft, "psnr": psnr}
