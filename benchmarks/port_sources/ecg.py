"""
Arrhythmia classification from 12-lead ECG (PhysioNet/CinC 2020 style labels).

SE-ResNet over the leads, rhythm BiGRU, label-query attention decoder, and wide features (age, sex, RR intervals).
"""

import copy
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import weight_norm

DEFAULT_CONFIG = {
    "n_leads": 12,
    "n_classes": 24,
    "stem": {"channels": 64, "kernels": [15, 9, 5]},
    "stages": [
        {"channels": 64, "blocks": 2, "stride": 1},
        {"channels": 128, "blocks": 2, "stride": 2},
        {"channels": 256, "blocks": 2, "stride": 2},
        {"channels": 512, "blocks": 2, "stride": 2},
    ],
    "kernel_size": 7,
    "se_reduction": 16,
    "rnn_hidden": 128,
    "decoder_heads": 4,
    "wide": {"n_features": 6, "hidden": 32},
    "dropout": 0.2,
    "loss": {
        "gamma_pos": 0.0,
        "gamma_neg": 2.0,
        "clip": 0.05,
        "rank_weight": 0.1,
        "rank_margin": 1.0,
    },
    "normal_class": 0,
}


def update_config(base, updates):
    config = copy.deepcopy(base)
    for key, value in updates.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            config[key] = update_config(config[key], value)
        else:
            config[key] = value
    return config


def normalize_leads(signal, mask, eps=1e-6):
    """Z-score of each lead over the recorded samples only."""
    n = mask.sum(dim=-1, keepdim=True).clamp_min(1)
    mean = (signal * mask).sum(-1, keepdim=True) / n
    var = ((signal - mean).pow(2) * mask).sum(-1, keepdim=True) / n
    return (signal - mean) * mask / (var + eps).sqrt()


def downsample_mask(mask, length):
    return F.adaptive_max_pool1d(mask, length)


def conv1d_same(in_ch, out_ch, kernel_size, stride=1, groups=1):
    return nn.Conv1d(
        in_ch,
        out_ch,
        kernel_size,
        stride,
        padding=(kernel_size - 1) // 2,
        groups=groups,
        bias=False,
    )


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction):
        super().__init__()
        hidden = max(channels // reduction, 4)
        self.fc = nn.Sequential(
            nn.Linear(channels, hidden, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, channels, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x, mask):
        pooled = (x * mask).sum(dim=2) / mask.sum(dim=2).clamp(min=1.0)
        return x * self.fc(pooled)[:, :, None]


class MultiScaleStem(nn.Module):
    """Parallel kernels see the QRS complex as well as the P and T waves."""

    def __init__(self, n_leads, channels, kernels):
        super().__init__()
        width = [channels // len(kernels)] * len(kernels)
        width[-1] += channels - sum(width)
        self.branches = nn.ModuleList(
            conv1d_same(n_leads, w, k, stride=2) for w, k in zip(width, kernels)
        )
        self.bn = nn.BatchNorm1d(channels)
        self.pool = nn.MaxPool1d(kernel_size=3, stride=2, padding=1)

    def forward(self, x):
        x = torch.cat([branch(x) for branch in self.branches], dim=1)
        return self.pool(F.relu(self.bn(x), inplace=True))


class SEBlock(nn.Module):
    expansion = 1

    def __init__(self, in_ch, out_ch, kernel_size, stride, reduction, dropout):
        super().__init__()
        self.bn1 = nn.BatchNorm1d(in_ch)
        self.conv1 = conv1d_same(in_ch, out_ch, kernel_size, stride)
        self.bn2 = nn.BatchNorm1d(out_ch)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = conv1d_same(out_ch, out_ch, kernel_size)
        self.se = SqueezeExcite(out_ch, reduction)
        self.act = Swish()
        self.shortcut = None
        if stride != 1 or in_ch != out_ch * self.expansion:
            self.shortcut = nn.Sequential(
                OrderedDict(
                    [
                        (
                            "pool",
                            nn.AvgPool1d(stride, stride, ceil_mode=True)
                            if stride > 1
                            else nn.Identity(),
                        ),
                        ("conv", nn.Conv1d(in_ch, out_ch, 1, bias=False)),
                        ("bn", nn.BatchNorm1d(out_ch)),
                    ]
                )
            )

    def forward(self, x, mask):
        identity = x if self.shortcut is None else self.shortcut(x)
        out = self.conv1(self.act(self.bn1(x)))
        mask = downsample_mask(mask, out.shape[-1])
        out = self.conv2(self.dropout(self.act(self.bn2(out))))
        out = self.se(out, mask)
        return (out + identity) * mask, mask


class RhythmEncoder(nn.Module):
    def __init__(self, in_dim, hidden, dropout):
        super().__init__()
        self.gru = nn.GRU(
            in_dim, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=dropout
        )
        self.norm = nn.LayerNorm(2 * hidden)
        self.residual = nn.Linear(in_dim, 2 * hidden) if in_dim != 2 * hidden else nn.Identity()

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        out, _ = self.gru(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
        return self.norm(out + self.residual(x))


class LabelQueryDecoder(nn.Module):
    """One learned query per diagnosis attends over the recording."""

    def __init__(self, dim, n_classes, n_heads, dropout):
        super().__init__()
        self.queries = nn.Embedding(n_classes, dim)
        self.self_attn = nn.MultiheadAttention(dim, n_heads, dropout=dropout, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(dim, n_heads, dropout=dropout, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(3)])
        self.ffn = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim)
        )

    def forward(self, memory, key_padding_mask):
        q = self.queries.weight.unsqueeze(0).repeat(memory.size(0), 1, 1)
        q = self.norms[0](q + self.self_attn(q, q, q, need_weights=False)[0])
        ctx, weights = self.cross_attn(q, memory, memory, key_padding_mask=key_padding_mask)
        q = self.norms[1](q + ctx)
        return self.norms[2](q + self.ffn(q)), weights


class GroupWiseLinear(nn.Module):
    def __init__(self, n_classes, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(n_classes, dim))
        self.bias = nn.Parameter(torch.Tensor(n_classes))
        self.reset_parameters()

    def reset_parameters(self):
        bound = self.weight.size(1) ** -0.5
        self.weight.data.uniform_(-bound, bound)
        self.bias.data.fill_(-2.0)

    def forward(self, x):
        return (self.weight * x).sum(-1) + self.bias


class AsymmetricLoss(nn.Module):
    def __init__(self, gamma_pos, gamma_neg, clip, rank_weight, rank_margin, eps=1e-8):
        super().__init__()
        self.gamma_pos, self.gamma_neg, self.clip, self.eps = gamma_pos, gamma_neg, clip, eps
        self.rank_weight, self.rank_margin = rank_weight, rank_margin

    def forward(self, logits, targets, class_weight, scored):
        p = torch.sigmoid(logits)
        p_neg = 1 - p
        if self.clip is not None and self.clip > 0:
            p_neg = (p_neg + self.clip).clamp(max=1)
        loss = targets * torch.log(p.clamp(min=self.eps)) + (1 - targets) * torch.log(
            p_neg.clamp(min=self.eps)
        )
        with torch.no_grad():
            pt = p * targets + p_neg * (1 - targets)
            focus = torch.pow(1 - pt, self.gamma_pos * targets + self.gamma_neg * (1 - targets))
        loss = -(loss * focus * class_weight * scored).sum() / scored.sum()
        # every present diagnosis should outrank every absent one
        diff = self.rank_margin - logits.unsqueeze(2) + logits.unsqueeze(1)
        pairs = (targets * scored).unsqueeze(2) * ((1 - targets) * scored).unsqueeze(1)
        rank = (F.relu(diff) * pairs).sum() / (pairs.sum() + self.eps)
        return loss + self.rank_weight * rank


class ECGNet(nn.Module):
    def __init__(self, config=None, class_counts=None):
        super().__init__()
        self.config = cfg = update_config(DEFAULT_CONFIG, config or {})
        self.stem = MultiScaleStem(cfg["n_leads"], **cfg["stem"])
        in_ch = cfg["stem"]["channels"]
        for i, stage in enumerate(cfg["stages"], start=1):
            layers = []
            for j in range(stage["blocks"]):
                layers.append(
                    SEBlock(
                        in_ch,
                        stage["channels"],
                        cfg["kernel_size"],
                        stage["stride"] if j == 0 else 1,
                        cfg["se_reduction"],
                        cfg["dropout"],
                    )
                )
                in_ch = stage["channels"]
            setattr(self, f"stage{i}", nn.ModuleList(layers))
        dim = 2 * cfg["rnn_hidden"]
        self.rhythm = RhythmEncoder(in_ch, cfg["rnn_hidden"], cfg["dropout"])
        self.decoder = LabelQueryDecoder(
            dim, cfg["n_classes"], cfg["decoder_heads"], cfg["dropout"]
        )
        self.wide = nn.Sequential(
            weight_norm(nn.Linear(cfg["wide"]["n_features"], cfg["wide"]["hidden"])),
            nn.LeakyReLU(0.1),
            nn.Dropout(cfg["dropout"]),
            nn.Linear(cfg["wide"]["hidden"], 2 * dim),
        )
        self.head = GroupWiseLinear(cfg["n_classes"], dim)
        self.criterion = AsymmetricLoss(**cfg["loss"])
        counts = torch.as_tensor(
            class_counts if class_counts is not None else [1.0] * cfg["n_classes"],
            dtype=torch.get_default_dtype(),
        )
        self.register_buffer("class_weight", (counts.mean() / counts).sqrt().clamp_(0.2, 5.0))
        self._initialize()

    def _initialize(self):
        for m in self.modules():
            if isinstance(m, nn.Conv1d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm1d):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.GRU):
                for name, p in m.named_parameters():
                    (nn.init.orthogonal_ if name.startswith("weight_hh") else nn.init.normal_)(
                        p, **({} if "weight_hh" in name else {"std": 0.05})
                    )

    def extract_features(self, signal, lengths):
        mask = (
            (torch.arange(signal.size(-1), device=signal.device)[None] < lengths[:, None])
            .unsqueeze(1)
            .type_as(signal)
        )
        x = self.stem(normalize_leads(signal, mask))
        mask = downsample_mask(mask, x.size(-1))
        for i in range(1, len(self.config["stages"]) + 1):
            for block in getattr(self, f"stage{i}"):
                x, mask = block(x, mask)
        steps = mask.squeeze(1).sum(-1).long()
        return self.rhythm(x.transpose(1, 2), steps), mask.squeeze(1) == 0

    @torch.no_grad()
    def postprocess(self, logits):
        """Normal sinus rhythm excludes all else; at least one diagnosis is reported."""
        probs = logits.sigmoid()
        labels = (probs > 0.5).long()
        empty = labels.sum(1) == 0
        labels[empty] = F.one_hot(probs[empty].argmax(1), probs.size(1))
        normal = self.config["normal_class"]
        abnormal = labels.sum(1) - labels[:, normal] > 0
        labels[:, normal] = labels[:, normal].masked_fill(abnormal, 0)
        return labels

    def forward(self, signal, lengths, demographics, labels=None, scored=None):
        memory, padding = self.extract_features(signal, lengths)
        queries, attention = self.decoder(memory, padding)
        gamma, beta = self.wide(torch.nan_to_num(demographics, nan=0.0)).chunk(2, dim=-1)
        logits = self.head(queries * (1 + gamma.unsqueeze(1)) + beta.unsqueeze(1))
        result = {"logits": logits, "attention": attention, "pred": self.postprocess(logits)}
        if labels is not None:
            scored = torch.ones_like(logits) if scored is None else scored.to(logits)
            result["loss"] = self.criterion(
                logits, labels.to(logits.dtype), self.class_weight, scored
            )
        return result
