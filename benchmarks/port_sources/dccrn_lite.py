"""DCCRN-style complex convolutional recurrent network for speech enhancement (lite version).

waveform -> STFT -> complex encoder -> (intra) LSTM -> complex decoder -> complex ratio mask -> iSTFT
"""

from dataclasses import dataclass, field
from typing import List, Tuple, Optional

import torch
from torch import nn, Tensor
import torch.nn.functional as F
from einops import rearrange


@dataclass
class EnhConfig:
    n_fft: int = 128
    hop: int = 32
    channels: List[int] = field(default_factory=lambda: [8, 16, 24])
    kernel: Tuple[int, int] = (5, 3)
    rnn_hidden: int = 48
    rnn_layers: int = 2
    masking_mode: str = "E"  # E | C | R
    eps: float = 1e-8


class ComplexConv2d(nn.Module):
    """(Wr + jWi) * (xr + jxi), real/imag parts stacked on the channel axis"""

    def __init__(self, cin, cout, kernel, stride=(2, 1), transpose=False, output_padding=(0, 0)):
        super().__init__()
        pad = ((kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
        if transpose:
            mk = lambda: nn.ConvTranspose2d(cin, cout, kernel, stride, pad, output_padding)
        else:
            mk = lambda: nn.Conv2d(cin, cout, kernel, stride, pad)
        self.real_conv = mk()
        self.imag_conv = mk()
        for conv in (self.real_conv, self.imag_conv):
            nn.init.normal_(conv.weight.data, std=0.05)
            nn.init.constant_(conv.bias, 0.0)

    def forward(self, x):
        real, imag = torch.chunk(x, 2, dim=1)
        rr, ri = self.real_conv(real), self.imag_conv(real)
        ir, ii = self.real_conv(imag), self.imag_conv(imag)
        return torch.cat([rr - ii, ri + ir], dim=1)


class ComplexBatchNorm(nn.Module):
    """Whitening batch-norm over the 2x2 covariance (Trabelsi et al. 2018), no momentum buffers
    for the off-diagonal in the first version -- we keep them all here."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.Wrr = nn.Parameter(torch.ones(num_features))
        self.Wri = nn.Parameter(torch.empty(num_features).uniform_(-0.1, 0.1))
        self.Wii = nn.Parameter(torch.ones(num_features))
        self.Br = nn.Parameter(torch.zeros(num_features))
        self.Bi = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("RM", torch.zeros(2, num_features))
        self.register_buffer(
            "RV",
            torch.stack(
                [torch.ones(num_features), torch.zeros(num_features), torch.ones(num_features)]
            ),
        )

    def forward(self, x):
        xr, xi = torch.chunk(x, 2, dim=1)
        red = [0, 2, 3]
        vdim = [1, xr.size(1), 1, 1]
        if self.training:
            mr, mi = xr.mean(red), xi.mean(red)
            with torch.no_grad():
                self.RM.lerp_(torch.stack([mr, mi]), self.momentum)
        else:
            mr, mi = self.RM.unbind(0)
        xr, xi = xr - mr.view(vdim), xi - mi.view(vdim)
        if self.training:
            vrr = (xr * xr).mean(red)
            vri = (xr * xi).mean(red)
            vii = (xi * xi).mean(red)
            with torch.no_grad():
                self.RV.lerp_(torch.stack([vrr, vri, vii]), self.momentum)
        else:
            vrr, vri, vii = self.RV.unbind(0)
        vrr = vrr + self.eps
        vii = vii + self.eps

        # inverse square root of a 2x2 matrix
        tau = vrr + vii
        delta = torch.addcmul(vrr * vii, vri, vri, value=-1)
        s = delta.sqrt()
        t = (tau + 2 * s).sqrt()
        rst = (s * t).reciprocal()
        urr, uii, uri = (s + vii) * rst, (s + vrr) * rst, -vri * rst
        zrr = self.Wrr * urr + self.Wri * uri
        zri = self.Wrr * uri + self.Wri * uii
        zir = self.Wri * urr + self.Wii * uri
        zii = self.Wri * uri + self.Wii * uii
        yr = zrr.view(vdim) * xr + zri.view(vdim) * xi + self.Br.view(vdim)
        yi = zir.view(vdim) * xr + zii.view(vdim) * xi + self.Bi.view(vdim)
        return torch.cat([yr, yi], dim=1)


class ComplexLSTM(nn.Module):
    def __init__(self, input_size, hidden, num_layers=1, bidirectional=False):
        super().__init__()
        self.lstm_re = nn.LSTM(
            input_size, hidden, num_layers=num_layers, bidirectional=bidirectional, batch_first=True
        )
        self.lstm_im = nn.LSTM(
            input_size, hidden, num_layers=num_layers, bidirectional=bidirectional, batch_first=True
        )
        out = hidden * (2 if bidirectional else 1)
        self.proj = nn.Linear(out, input_size)

    def forward(self, re: Tensor, im: Tensor) -> Tuple[Tensor, Tensor]:
        self.lstm_re.flatten_parameters()
        self.lstm_im.flatten_parameters()
        rr, _ = self.lstm_re(re)
        ri, _ = self.lstm_re(im)
        ir, _ = self.lstm_im(re)
        ii, _ = self.lstm_im(im)
        return self.proj(rr - ii), self.proj(ri + ir)


class DCCRNLite(nn.Module):
    def __init__(self, cfg: Optional[EnhConfig] = None):
        super().__init__()
        cfg = cfg or EnhConfig()
        self.cfg = cfg
        self.register_buffer("window", torch.hann_window(cfg.n_fft))
        chs = [1] + list(cfg.channels)
        self.encoder = nn.ModuleList()
        self.decoder = nn.ModuleList()
        for i in range(len(chs) - 1):
            self.encoder.append(
                nn.Sequential(
                    ComplexConv2d(chs[i], chs[i + 1], cfg.kernel),
                    ComplexBatchNorm(chs[i + 1]),
                    nn.PReLU(),
                )
            )
        for i in range(len(chs) - 1, 0, -1):
            block = [
                ComplexConv2d(
                    chs[i] * 2, chs[i - 1], cfg.kernel, transpose=True, output_padding=(1, 0)
                )
            ]
            if i != 1:
                block += [ComplexBatchNorm(chs[i - 1]), nn.PReLU()]
            self.decoder.append(nn.Sequential(*block))
        n_bins = (cfg.n_fft // 2) // 2 ** len(cfg.channels)
        self.enhance = ComplexLSTM(n_bins * chs[-1], cfg.rnn_hidden, cfg.rnn_layers)

    def stft(self, wav):
        return torch.stft(
            wav, self.cfg.n_fft, self.cfg.hop, window=self.window, center=True, return_complex=True
        )

    def istft(self, spec, length):
        return torch.istft(
            spec, self.cfg.n_fft, self.cfg.hop, window=self.window, center=True, length=length
        )

    def _apply_mask(self, spec, mask):
        mask_real, mask_imag = mask[:, 0], mask[:, 1]
        # DC 分量不参与估计, 用 0 补齐
        mask_real = F.pad(mask_real, [0, 0, 1, 0])
        mask_imag = F.pad(mask_imag, [0, 0, 1, 0])
        mode = self.cfg.masking_mode
        if mode == "E":
            eps = self.cfg.eps
            mags = torch.sqrt(spec.real**2 + spec.imag**2 + eps)
            phase = torch.atan2(spec.imag + eps, spec.real + eps)
            mask_mags = (mask_real**2 + mask_imag**2 + eps) ** 0.5
            mask_phase = torch.atan2(mask_imag / mask_mags + eps, mask_real / mask_mags + eps)
            mask_mags = torch.tanh(mask_mags)
            est_mags = mask_mags * mags
            return torch.polar(est_mags, phase + mask_phase)
        elif mode == "C":
            return spec * torch.complex(mask_real, mask_imag)
        elif mode == "R":
            return torch.complex(spec.real * mask_real, spec.imag * mask_imag)
        raise NotImplementedError(mode)

    def forward(self, wav):
        spec = self.stft(wav)  # B, F, T (complex)
        out = torch.view_as_real(spec).permute(0, 3, 1, 2)  # B, 2, F, T
        out = out[:, :, 1:]
        skips = []
        for layer in self.encoder:
            out = layer(out)
            skips.append(out)

        f = out.shape[2]
        re, im = rearrange(out, "b (z c) f t -> z b t (c f)", z=2)
        re_, im_ = self.enhance(re, im)
        out = rearrange([re + re_, im + im_], "z b t (c f) -> b (z c) f t", f=f)

        for layer in self.decoder:
            skip = skips.pop()
            (a, b), (c, d) = out.chunk(2, 1), skip.chunk(2, 1)
            out = layer(torch.cat([a, c, b, d], 1))
            out = out[..., : spec.shape[-1]]
        est = self._apply_mask(spec, out)
        wav_out = self.istft(est, wav.shape[-1])
        return wav_out.clamp_(-1, 1), est.abs()


def si_snr(s1, s2, eps=1e-8):
    s2_norm = (s2 * s2).sum(-1, keepdim=True)
    target = (s1 * s2).sum(-1, keepdim=True) / (s2_norm + eps) * s2
    noise = s1 - target
    snr = 10 * torch.log10(target.pow(2).sum(-1) / (noise.pow(2).sum(-1) + eps) + eps)
    return snr.mean()


if __name__ == "__main__":
    net = DCCRNLite()
    x = torch.randn(2, 1600) * 0.1
    y, mag = net(x)
    print(y.shape, mag.shape, -si_snr(y, x).item())
