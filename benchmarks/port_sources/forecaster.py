"""Series forecasting: decomposition, Fourier features, a TCN with weight norm and a nested input."""

import copy
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import weight_norm


class Chomp1d(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x[:, :, : -self.size].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, cin, cout, k, dilation, dropout=0.2):
        super().__init__()
        pad = (k - 1) * dilation
        make = lambda a, b: weight_norm(
            nn.Conv1d(a, b, k, stride=1, padding=pad, dilation=dilation)
        )
        self.net = nn.Sequential(
            OrderedDict(
                [
                    ("conv1", make(cin, cout)),
                    ("chomp1", Chomp1d(pad)),
                    ("relu1", nn.ReLU()),
                    ("drop1", nn.Dropout(dropout)),
                    ("conv2", make(cout, cout)),
                    ("chomp2", Chomp1d(pad)),
                    ("relu2", nn.ReLU()),
                ]
            )
        )
        self.down = nn.Conv1d(cin, cout, 1) if cin != cout else None

    def forward(self, x):
        return F.relu(self.net(x) + (x if self.down is None else self.down(x)))


class MovingAverage(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.avg = nn.AvgPool1d(kernel_size=k, stride=1, padding=0)

    def forward(self, x):
        front = x[:, 0:1, :].repeat(1, (self.k - 1) // 2, 1)
        end = x[:, -1:, :].repeat(1, self.k // 2, 1)
        return self.avg(torch.cat([front, x, end], dim=1).permute(0, 2, 1)).permute(0, 2, 1)


class FourierBlock(nn.Module):
    def __init__(self, dim, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.rand(modes, dim, dim, 2) / dim)

    def forward(self, x):
        L = x.size(1)
        ft = torch.fft.rfft(x, dim=1, norm="ortho")
        w = torch.view_as_complex(self.weight)
        out = torch.zeros_like(ft)
        out[:, : self.modes] = torch.einsum("bmi,mio->bmo", ft[:, : self.modes], w.to(ft.dtype))
        return torch.fft.irfft(out, n=L, dim=1, norm="ortho")


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


class Forecaster(nn.Module):
    def __init__(self, n_series=3, dim=8, horizon=4, length=16):
        super().__init__()
        self.embed = nn.Linear(n_series + 2, dim)
        self.decomp = MovingAverage(5)
        self.tcn = nn.Sequential(*[TemporalBlock(dim, dim, 3, 2**i) for i in range(2)])
        self.fourier = clones(FourierBlock(dim, 4), 2)
        self.lstm = nn.LSTM(dim, dim, num_layers=2, dropout=0.1, batch_first=True)
        self.heads = nn.ModuleDict(
            {"trend": nn.Linear(length, horizon), "season": nn.Linear(length, horizon)}
        )
        self.quantiles = nn.Bilinear(dim, n_series, 3)

    def forward(self, past, marks):
        values, (scale, lags) = past["values"], past["extra"]
        mean = values.mean(1, keepdim=True).detach()
        std = torch.sqrt(torch.var(values - mean, dim=1, keepdim=True, unbiased=False) + 1e-5)
        x = self.embed(torch.cat([(values - mean).div_(std), marks], -1))
        trend = self.decomp(x)
        season = x - trend
        for block in self.fourier:
            season = season + block(season)
        season = self.tcn(season.transpose(1, 2)).transpose(1, 2)
        out, (h, c) = self.lstm(season)
        rolled = torch.roll(out, shifts=lags, dims=1).cumsum(1) / torch.arange(
            1, out.size(1) + 1
        ).view(1, -1, 1)
        y = self.heads["trend"](trend.mT) + self.heads["season"](rolled.mT)
        q = self.quantiles(h[-1], std.squeeze(1) * scale.unsqueeze(-1))
        return {"forecast": y.transpose(1, 2), "quantiles": q.sort(-1)[0]}
