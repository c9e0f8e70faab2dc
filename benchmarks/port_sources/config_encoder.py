"""Sequence encoders built from nested dataclasses: blocks and heads are found in a registry."""

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Type

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Registry:
    def __init__(self, name: str):
        self.name = name
        self._entries: Dict[str, Type[nn.Module]] = {}

    def register(self, key: str) -> Callable:
        def wrap(cls):
            self._entries[key] = cls
            return cls

        return wrap

    def build(self, key: str, *args: Any, **kwargs: Any) -> nn.Module:
        return self._entries[key](*args, **kwargs)


BLOCKS = Registry("block")
HEADS = Registry("head")


@dataclass
class BlockConfig:
    kind: str = "attention"
    expansion: float = 2.0
    num_heads: int = 4
    kernel_size: int = 5
    dropout: float = 0.1


@dataclass
class EncoderConfig:
    in_dim: int = 12
    dim: int = 16
    max_len: int = 64
    blocks: List[BlockConfig] = field(
        default_factory=lambda: [BlockConfig(), BlockConfig(kind="conv"), BlockConfig(kind="gru")]
    )


@dataclass
class HeadConfig:
    kind: str = "mean"
    num_classes: int = 10
    label_smoothing: float = 0.1


@dataclass
class ModelConfig:
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    init_std: Optional[float] = 0.02


@BLOCKS.register("attention")
class AttentionBlock(nn.Module):
    def __init__(self, dim: int, cfg: BlockConfig):
        super().__init__()
        hidden = int(dim * cfg.expansion)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, cfg.num_heads, dropout=cfg.dropout, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(cfg.dropout), nn.Linear(hidden, dim)
        )

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        h = self.norm1(x)
        x = x + self.attn(h, h, h, key_padding_mask=pad, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


@BLOCKS.register("conv")
class ConvBlock(nn.Module):
    def __init__(self, dim: int, cfg: BlockConfig):
        super().__init__()
        self.norm = nn.GroupNorm(1, dim)
        self.pw = nn.Conv1d(dim, 2 * dim, 1)
        self.dw = nn.Conv1d(dim, dim, cfg.kernel_size, padding="same", groups=dim)
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        h = self.norm(x.masked_fill(pad.unsqueeze(-1), 0.0).mT)
        h = F.glu(self.pw(h), dim=1)
        return x + self.drop(F.silu(self.dw(h))).transpose(-2, -1)


@BLOCKS.register("gru")
class GRUBlock(nn.Module):
    def __init__(self, dim: int, cfg: BlockConfig):
        super().__init__()
        self.rnn = nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        lengths = (~pad).sum(-1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        out, _ = self.rnn(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return x + out


@HEADS.register("mean")
class MeanHead(nn.Module):
    def __init__(self, dim: int, cfg: HeadConfig):
        super().__init__()
        self.fc = nn.Linear(dim, cfg.num_classes)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        keep = (~pad).to(x.dtype).unsqueeze(-1)
        return self.fc((x * keep).sum(1) / keep.sum(1).clamp(min=1))


@HEADS.register("attention")
class AttentionHead(MeanHead):
    def __init__(self, dim: int, cfg: HeadConfig):
        super().__init__(dim, cfg)
        self.query = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        score = (x @ self.query / math.sqrt(x.size(-1))).masked_fill(pad, float("-inf"))
        return self.fc(torch.einsum("bt,btd->bd", score.softmax(dim=-1), x))


class Model(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        enc = cfg.encoder
        self.cfg = cfg
        self.proj = nn.Linear(enc.in_dim, enc.dim)
        self.pos = nn.Embedding(enc.max_len, enc.dim)
        self.blocks = nn.ModuleList(BLOCKS.build(b.kind, enc.dim, b) for b in enc.blocks)
        self.norm = nn.LayerNorm(enc.dim)
        self.head = HEADS.build(cfg.head.kind, enc.dim, cfg.head)
        if cfg.init_std is not None:
            self.apply(self._init)

    def _init(self, m: nn.Module) -> None:
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.trunc_normal_(m.weight, std=self.cfg.init_std)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(
        self, feats: Tensor, lengths: Tensor, labels: Optional[Tensor] = None
    ) -> Dict[str, Tensor]:
        steps = torch.arange(feats.size(1), device=feats.device)
        pad = steps[None] >= lengths[:, None]
        x = self.proj(feats) + self.pos(steps)
        for block in self.blocks:
            x = block(x, pad)
        logits = self.head(self.norm(x), pad)
        out = {"logits": logits}
        if labels is not None:
            out["loss"] = F.cross_entropy(
                logits, labels, label_smoothing=self.cfg.head.label_smoothing
            )
        return out


def build_model(cfg: Optional[ModelConfig] = None) -> Model:
    return Model(cfg or ModelConfig())
