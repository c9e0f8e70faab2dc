"""HiFi-GAN style vocoder: flow-free VITS decoder with speaker conditioning, MRF blocks, MPD."""

import math
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn import Conv1d, Conv2d, ConvTranspose1d
from torch.nn.utils import weight_norm, spectral_norm

LRELU_SLOPE = 0.1


@dataclass
class HParams:
    n_mels: int = 20
    inter_channels: int = 32
    hidden_channels: int = 32
    upsample_rates: List[int] = field(default_factory=lambda: [4, 4, 2])
    upsample_kernel_sizes: List[int] = field(default_factory=lambda: [8, 8, 4])
    upsample_initial_channel: int = 64
    resblock_kernel_sizes: List[int] = field(default_factory=lambda: [3, 7])
    resblock_dilation_sizes: List[Tuple[int, ...]] = field(
        default_factory=lambda: [(1, 3, 5), (1, 3, 5)]
    )
    n_speakers: int = 6
    gin_channels: int = 16
    periods: Tuple[int, ...] = (2, 3, 5)
    wn_layers: int = 3


def init_weights(m, mean=0.0, std=0.01):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        m.weight.data.normal_(mean, std)


def get_padding(kernel_size, dilation=1):
    return int((kernel_size * dilation - dilation) / 2)


def sequence_mask(length, max_length):
    x = torch.arange(max_length, dtype=length.dtype, device=length.device)
    return x.unsqueeze(0) < length.unsqueeze(1)


def fused_add_tanh_sigmoid_multiply(input_a, input_b, n_channels):
    in_act = input_a + input_b
    t_act = torch.tanh(in_act[:, :n_channels, :])
    s_act = torch.sigmoid(in_act[:, n_channels:, :])
    return t_act * s_act


class WN(torch.nn.Module):
    def __init__(
        self, hidden_channels, kernel_size, dilation_rate, n_layers, gin_channels=0, p_dropout=0.0
    ):
        super(WN, self).__init__()
        self.hidden_channels = hidden_channels
        self.n_layers = n_layers
        self.drop = nn.Dropout(p_dropout)
        self.in_layers = torch.nn.ModuleList()
        self.res_skip_layers = torch.nn.ModuleList()
        if gin_channels != 0:
            self.cond_layer = weight_norm(
                nn.Conv1d(gin_channels, 2 * hidden_channels * n_layers, 1), name="weight"
            )
        for i in range(n_layers):
            dilation = dilation_rate**i
            in_layer = nn.Conv1d(
                hidden_channels,
                2 * hidden_channels,
                kernel_size,
                dilation=dilation,
                padding=get_padding(kernel_size, dilation),
            )
            self.in_layers.append(weight_norm(in_layer, name="weight"))
            # last one is not necessary
            res_skip_channels = 2 * hidden_channels if i < n_layers - 1 else hidden_channels
            self.res_skip_layers.append(
                weight_norm(nn.Conv1d(hidden_channels, res_skip_channels, 1), name="weight")
            )

    def forward(self, x, x_mask, g=None):
        output = torch.zeros_like(x)
        if g is not None:
            g = self.cond_layer(g)
        for i in range(self.n_layers):
            x_in = self.in_layers[i](x)
            cond_offset = i * 2 * self.hidden_channels
            g_l = (
                g[:, cond_offset : cond_offset + 2 * self.hidden_channels, :]
                if g is not None
                else torch.zeros_like(x_in)
            )
            acts = self.drop(fused_add_tanh_sigmoid_multiply(x_in, g_l, self.hidden_channels))
            res_skip_acts = self.res_skip_layers[i](acts)
            if i < self.n_layers - 1:
                x = (x + res_skip_acts[:, : self.hidden_channels, :]) * x_mask
                output = output + res_skip_acts[:, self.hidden_channels :, :]
            else:
                output = output + res_skip_acts
        return output * x_mask


class PosteriorEncoder(nn.Module):
    def __init__(self, h: HParams):
        super().__init__()
        self.out_channels = h.inter_channels
        self.pre = nn.Conv1d(h.n_mels, h.hidden_channels, 1)
        self.enc = WN(h.hidden_channels, 5, 2, h.wn_layers, gin_channels=h.gin_channels)
        self.proj = nn.Conv1d(h.hidden_channels, h.inter_channels * 2, 1)

    def forward(self, x, x_lengths, noise, g=None):
        x_mask = torch.unsqueeze(sequence_mask(x_lengths, x.size(2)), 1).to(x.dtype)
        x = self.pre(x) * x_mask
        x = self.enc(x, x_mask, g=g)
        stats = self.proj(x) * x_mask
        m, logs = torch.split(stats, self.out_channels, dim=1)
        z = (m + noise * torch.exp(logs)) * x_mask
        return z, m, logs, x_mask


class ResBlock1(torch.nn.Module):
    def __init__(self, channels, kernel_size=3, dilation=(1, 3, 5)):
        super().__init__()
        self.convs1 = nn.ModuleList(
            [
                weight_norm(
                    Conv1d(
                        channels,
                        channels,
                        kernel_size,
                        1,
                        dilation=d,
                        padding=get_padding(kernel_size, d),
                    )
                )
                for d in dilation
            ]
        )
        self.convs1.apply(init_weights)
        self.convs2 = nn.ModuleList(
            [
                weight_norm(
                    Conv1d(
                        channels,
                        channels,
                        kernel_size,
                        1,
                        dilation=1,
                        padding=get_padding(kernel_size, 1),
                    )
                )
                for _ in dilation
            ]
        )
        self.convs2.apply(init_weights)

    def forward(self, x):
        for c1, c2 in zip(self.convs1, self.convs2):
            xt = F.leaky_relu(x, LRELU_SLOPE)
            xt = c1(xt)
            xt = F.leaky_relu(xt, LRELU_SLOPE)
            xt = c2(xt)
            x = xt + x
        return x


class Generator(torch.nn.Module):
    def __init__(self, h: HParams):
        super(Generator, self).__init__()
        self.num_kernels = len(h.resblock_kernel_sizes)
        self.num_upsamples = len(h.upsample_rates)
        self.conv_pre = Conv1d(h.inter_channels, h.upsample_initial_channel, 7, 1, padding=3)
        self.ups = nn.ModuleList()
        for i, (u, k) in enumerate(zip(h.upsample_rates, h.upsample_kernel_sizes)):
            self.ups.append(
                weight_norm(
                    ConvTranspose1d(
                        h.upsample_initial_channel // (2**i),
                        h.upsample_initial_channel // (2 ** (i + 1)),
                        k,
                        u,
                        padding=(k - u) // 2,
                    )
                )
            )

        self.resblocks = nn.ModuleList()
        for i in range(len(self.ups)):
            ch = h.upsample_initial_channel // (2 ** (i + 1))
            for j, (k, d) in enumerate(zip(h.resblock_kernel_sizes, h.resblock_dilation_sizes)):
                self.resblocks.append(ResBlock1(ch, k, d))

        self.conv_post = Conv1d(ch, 1, 7, 1, padding=3, bias=False)
        self.ups.apply(init_weights)
        if h.gin_channels != 0:
            self.cond = nn.Conv1d(h.gin_channels, h.upsample_initial_channel, 1)

    def forward(self, x, g=None):
        x = self.conv_pre(x)
        if g is not None:
            x = x + self.cond(g)
        for i in range(self.num_upsamples):
            x = F.leaky_relu(x, LRELU_SLOPE)
            x = self.ups[i](x)
            xs = None
            for j in range(self.num_kernels):
                out = self.resblocks[i * self.num_kernels + j](x)
                xs = out if xs is None else xs + out
            x = xs / self.num_kernels
        x = F.leaky_relu(x)
        x = self.conv_post(x)
        return torch.tanh(x)


class DiscriminatorP(torch.nn.Module):
    def __init__(self, period, kernel_size=5, stride=3, use_spectral_norm=False):
        super(DiscriminatorP, self).__init__()
        self.period = period
        norm_f = weight_norm if use_spectral_norm == False else spectral_norm
        chans = [1, 8, 16, 32]
        self.convs = nn.ModuleList(
            [
                norm_f(Conv2d(i, o, (kernel_size, 1), (stride, 1), padding=(get_padding(5, 1), 0)))
                for i, o in zip(chans[:-1], chans[1:])
            ]
        )
        self.conv_post = norm_f(Conv2d(chans[-1], 1, (3, 1), 1, padding=(1, 0)))

    def forward(self, x):
        fmap = []
        b, c, t = x.shape
        if t % self.period != 0:  # pad first
            n_pad = self.period - (t % self.period)
            x = F.pad(x, (0, n_pad), "reflect")
            t = t + n_pad
        x = x.view(b, c, t // self.period, self.period)
        for l in self.convs:
            x = l(x)
            x = F.leaky_relu(x, LRELU_SLOPE)
            fmap.append(x)
        x = self.conv_post(x)
        return torch.flatten(x, 1, -1), fmap + [x]


class MultiPeriodDiscriminator(torch.nn.Module):
    def __init__(self, periods):
        super().__init__()
        self.discriminators = nn.ModuleList(
            [DiscriminatorP(p, use_spectral_norm=(i == 0)) for i, p in enumerate(periods)]
        )

    def forward(self, y, y_hat):
        res = []
        for d in self.discriminators:
            res.append((*d(y), *d(y_hat)))
        y_d_rs, fmap_rs, y_d_gs, fmap_gs = map(list, zip(*res))
        return y_d_rs, y_d_gs, fmap_rs, fmap_gs


def feature_loss(fmap_r, fmap_g):
    loss = 0
    for dr, dg in zip(fmap_r, fmap_g):
        for rl, gl in zip(dr, dg):
            loss += torch.mean(torch.abs(rl.detach() - gl))
    return loss * 2


def discriminator_loss(disc_real_outputs, disc_generated_outputs):
    loss = 0
    for dr, dg in zip(disc_real_outputs, disc_generated_outputs):
        loss += torch.mean((1 - dr) ** 2) + torch.mean(dg**2)
    return loss


class SynthesizerTrn(nn.Module):
    def __init__(self, h: HParams):
        super().__init__()
        self.h = h
        self.enc_q = PosteriorEncoder(h)
        self.dec = Generator(h)
        self.emb_g = nn.Embedding(h.n_speakers, h.gin_channels)
        self.disc = MultiPeriodDiscriminator(h.periods)

    def forward(self, spec, spec_lengths, noise, wav, sid: Optional[torch.Tensor] = None):
        g = self.emb_g(sid).unsqueeze(-1) if sid is not None else None
        z, m_q, logs_q, mask = self.enc_q(spec, spec_lengths, noise, g=g)
        y_hat = self.dec(z, g=g)
        y_d_rs, y_d_gs, fmap_rs, fmap_gs = self.disc(wav, y_hat)
        loss_kl = torch.sum(
            (-logs_q - 0.5 + 0.5 * (m_q**2 + torch.exp(2.0 * logs_q))) * mask
        ) / torch.sum(mask)
        return {
            "wav": y_hat,
            "fake": y_d_gs,
            "kl": loss_kl,
            "fm": feature_loss(fmap_rs, fmap_gs),
            "disc": discriminator_loss(y_d_rs, y_d_gs),
        }


if __name__ == "__main__":
    h = HParams()
    net = SynthesizerTrn(h)
    hop = math.prod(h.upsample_rates)
    o = net(
        torch.randn(2, 20, 8),
        torch.tensor([8, 6]),
        torch.randn(2, 32, 8),
        torch.randn(2, 1, 8 * hop),
        torch.tensor([0, 1]),
    )
    print({k: (v.shape if torch.is_tensor(v) else len(v)) for k, v in o.items()})
