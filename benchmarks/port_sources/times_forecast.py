"""Long-term forecasting: RevIN + {Autoformer, TimesNet} backbones behind one registry."""

import math
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Configs:
    model: str = "Autoformer"
    seq_len: int = 48
    label_len: int = 24
    pred_len: int = 24
    enc_in: int = 5
    d_model: int = 32
    n_heads: int = 4
    d_ff: int = 48
    e_layers: int = 2
    d_layers: int = 1
    moving_avg: int = 13
    factor: float = 1.0
    top_k: int = 3
    num_kernels: int = 3
    dropout: float = 0.1
    activation: str = "gelu"


class RevIN(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.affine_weight = nn.Parameter(torch.ones(num_features))
        self.affine_bias = nn.Parameter(torch.zeros(num_features))

    def forward(self, x, mode):
        if mode == "norm":
            self.mean = torch.mean(x, dim=1, keepdim=True).detach()
            self.stdev = torch.sqrt(
                torch.var(x, dim=1, keepdim=True, unbiased=False) + self.eps
            ).detach()
            return (x - self.mean) / self.stdev * self.affine_weight + self.affine_bias
        x = (x - self.affine_bias) / (self.affine_weight + self.eps * self.eps)
        return x * self.stdev + self.mean


class series_decomp(nn.Module):
    def __init__(self, kernel_size):
        super().__init__()
        self.kernel_size = kernel_size

    def forward(self, x):
        front = x[:, 0:1, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        end = x[:, -1:, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        trend = torch.cat([front, x, end], dim=1).unfold(1, self.kernel_size, 1).mean(-1)
        return x - trend, trend


class my_Layernorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layernorm = nn.LayerNorm(channels)

    def forward(self, x):
        x_hat = self.layernorm(x)
        return x_hat - torch.mean(x_hat, dim=1).unsqueeze(1).repeat(1, x.shape[1], 1)


class DataEmbedding(nn.Module):
    def __init__(self, c_in, d_model, dropout=0.1, use_pos=True):
        super().__init__()
        self.tokenConv = nn.Conv1d(c_in, d_model, 3, padding=1, padding_mode="circular", bias=False)
        self.temporal = nn.ModuleDict(
            {"hour": nn.Embedding(24, d_model), "weekday": nn.Embedding(7, d_model)}
        )
        self.use_pos = use_pos
        if use_pos:
            pe = torch.zeros(500, d_model).float()
            position = torch.arange(0, 500).float().unsqueeze(1)
            div_term = (torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model)).exp()
            pe[:, 0::2] = torch.sin(position * div_term)
            pe[:, 1::2] = torch.cos(position * div_term)
            self.register_buffer("pe", pe.unsqueeze(0))
        self.dropout = nn.Dropout(p=dropout)
        nn.init.kaiming_normal_(self.tokenConv.weight, mode="fan_in", nonlinearity="leaky_relu")

    def forward(self, x, mark):
        out = self.tokenConv(x.permute(0, 2, 1)).transpose(1, 2)
        out = out + self.temporal["hour"](mark[..., 0]) + self.temporal["weekday"](mark[..., 1])
        if self.use_pos:
            out = out + self.pe[:, : x.size(1)]
        return self.dropout(out)


class AutoCorrelation(nn.Module):
    def __init__(self, d_model, n_heads, factor=1):
        super().__init__()
        self.factor, self.n_heads = factor, n_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def time_delay_agg(self, values, corr):
        B, H, E, L = values.shape
        init_index = torch.arange(L, device=values.device).view(1, 1, 1, L).repeat(B, H, E, 1)
        top_k = int(self.factor * math.log(L))
        weights, delay = torch.topk(corr.mean(dim=(1, 2)), top_k, dim=-1)
        tmp_corr = torch.softmax(weights, dim=-1)
        tmp_values = values.repeat(1, 1, 1, 2)
        delays_agg = torch.zeros_like(values)
        for i in range(top_k):
            pattern = torch.gather(
                tmp_values, dim=-1, index=init_index + delay[:, i].reshape(-1, 1, 1, 1)
            )
            delays_agg += pattern * tmp_corr[:, i].reshape(-1, 1, 1, 1)
        return delays_agg

    def forward(self, x, cross):
        B, L, _ = x.shape
        S, H = cross.shape[1], self.n_heads
        q, k, v = (
            self.q(x).view(B, L, H, -1),
            self.k(cross).view(B, S, H, -1),
            self.v(cross).view(B, S, H, -1),
        )
        v, k = v[:, :L, :, :], k[:, :L, :, :]
        q_fft = torch.fft.rfft(q.permute(0, 2, 3, 1).contiguous(), dim=-1)
        k_fft = torch.fft.rfft(k.permute(0, 2, 3, 1).contiguous(), dim=-1)
        corr = torch.fft.irfft(q_fft * torch.conj(k_fft), n=L, dim=-1)
        V = self.time_delay_agg(v.permute(0, 2, 3, 1).contiguous(), corr).permute(0, 3, 1, 2)
        return self.out(V.reshape(B, L, -1))


class AutoformerLayer(nn.Module):
    def __init__(self, c, cross=False):
        super().__init__()
        attn = partial(AutoCorrelation, c.d_model, c.n_heads, factor=c.factor)
        self.self_attn = attn()
        self.cross_attn = attn() if cross else None
        self.conv1 = nn.Conv1d(c.d_model, c.d_ff, kernel_size=1, bias=False)
        self.conv2 = nn.Conv1d(c.d_ff, c.d_model, kernel_size=1, bias=False)
        self.decomp = nn.ModuleList([series_decomp(c.moving_avg) for _ in range(3 if cross else 2)])
        self.projection = (
            nn.Conv1d(c.d_model, c.enc_in, 3, padding=1, padding_mode="circular", bias=False)
            if cross
            else None
        )
        self.dropout = nn.Dropout(c.dropout)
        self.activation = getattr(F, c.activation)

    def forward(self, x, cross=None):
        x, trend = self.decomp[0](x + self.dropout(self.self_attn(x, x)))
        if self.cross_attn is not None:
            x, t = self.decomp[1](x + self.dropout(self.cross_attn(x, cross)))
            trend = trend + t
        y = self.dropout(self.activation(self.conv1(x.transpose(-1, 1))))
        y = self.dropout(self.conv2(y).transpose(-1, 1))
        x, t = self.decomp[-1](x + y)
        if self.projection is None:
            return x
        return x, self.projection((trend + t).permute(0, 2, 1)).transpose(1, 2)


class Autoformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.decomp = series_decomp(c.moving_avg)
        self.enc_embedding = DataEmbedding(c.enc_in, c.d_model, c.dropout, use_pos=False)
        self.dec_embedding = DataEmbedding(c.enc_in, c.d_model, c.dropout, use_pos=False)
        self.encoder = nn.ModuleList(AutoformerLayer(c) for _ in range(c.e_layers))
        self.decoder = nn.ModuleList(AutoformerLayer(c, cross=True) for _ in range(c.d_layers))
        self.enc_norm, self.dec_norm = my_Layernorm(c.d_model), my_Layernorm(c.d_model)
        self.projection = nn.Linear(c.d_model, c.enc_in, bias=True)

    def forward(self, x, mark):
        c = self.c
        mean = torch.mean(x, dim=1).unsqueeze(1).repeat(1, c.pred_len, 1)
        seasonal, trend = self.decomp(x)
        trend = torch.cat([trend[:, -c.label_len :, :], mean], dim=1)
        seasonal = F.pad(seasonal[:, -c.label_len :, :], (0, 0, 0, c.pred_len))
        enc = self.enc_embedding(x, mark[:, : c.seq_len])
        for layer in self.encoder:
            enc = layer(enc)
        enc = self.enc_norm(enc)
        dec = self.dec_embedding(seasonal, mark[:, -(c.label_len + c.pred_len) :])
        for layer in self.decoder:
            dec, residual_trend = layer(dec, enc)
            trend = trend + residual_trend
        return trend + self.projection(self.dec_norm(dec))


def FFT_for_Period(x, k=2):
    xf = torch.fft.rfft(x, dim=1)
    frequency_list = abs(xf).mean(0).mean(-1)
    frequency_list[0] = 0
    top_list = torch.topk(frequency_list, k)[1].detach().cpu().numpy()
    return x.shape[1] // top_list, abs(xf).mean(-1)[:, top_list]


class Inception_Block_V1(nn.Module):
    def __init__(self, in_channels, out_channels, num_kernels=3):
        super().__init__()
        self.kernels = nn.ModuleList(
            [
                nn.Conv2d(in_channels, out_channels, kernel_size=2 * i + 1, padding=i)
                for i in range(num_kernels)
            ]
        )
        for k in self.kernels:
            nn.init.kaiming_normal_(k.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(k.bias)

    def forward(self, x):
        return torch.stack([k(x) for k in self.kernels], dim=-1).mean(-1)


class TimesBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.total, self.k = c.seq_len + c.pred_len, c.top_k
        self.conv = nn.Sequential(
            Inception_Block_V1(c.d_model, c.d_ff, c.num_kernels),
            nn.GELU(),
            Inception_Block_V1(c.d_ff, c.d_model, c.num_kernels),
        )

    def forward(self, x):
        B, T, N = x.size()
        period_list, period_weight = FFT_for_Period(x, self.k)
        res = []
        for i in range(self.k):
            period = int(period_list[i])
            length = math.ceil(self.total / period) * period
            out = F.pad(x, (0, 0, 0, length - self.total)) if length != self.total else x
            out = out.reshape(B, length // period, period, N).permute(0, 3, 1, 2).contiguous()
            res.append(self.conv(out).permute(0, 2, 3, 1).reshape(B, -1, N)[:, : self.total, :])
        res = torch.stack(res, dim=-1)
        period_weight = F.softmax(period_weight, dim=1).unsqueeze(1).unsqueeze(1).repeat(1, T, N, 1)
        return torch.sum(res * period_weight, -1) + x


class TimesNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.enc_embedding = DataEmbedding(c.enc_in, c.d_model, c.dropout)
        self.predict_linear = nn.Linear(c.seq_len, c.pred_len + c.seq_len)
        self.model = nn.ModuleList([TimesBlock(c) for _ in range(c.e_layers)])
        self.layer_norm = nn.LayerNorm(c.d_model)
        self.projection = nn.Linear(c.d_model, c.enc_in, bias=True)

    def forward(self, x, mark):
        enc = self.enc_embedding(x, mark[:, : x.size(1)])
        enc = self.predict_linear(enc.permute(0, 2, 1)).permute(0, 2, 1)
        for block in self.model:
            enc = self.layer_norm(block(enc))
        return self.projection(enc)


model_dict = {m.__name__: m for m in (Autoformer, TimesNet)}


class Model(nn.Module):
    def __init__(self, configs: Configs):
        super().__init__()
        self.pred_len = configs.pred_len
        self.revin = RevIN(configs.enc_in)
        self.backbone = model_dict[configs.model](configs).float()

    def forward(self, batch_x, batch_mark, batch_y=None):
        x = self.revin(batch_x, "norm")
        pred = self.revin(self.backbone(x, batch_mark)[:, -self.pred_len :, :], "denorm")
        return (
            pred if batch_y is None else (pred, F.mse_loss(pred, batch_y), F.l1_loss(pred, batch_y))
        )
