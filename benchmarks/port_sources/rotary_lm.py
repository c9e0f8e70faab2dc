"""A decoder with complex rotary embeddings, grouped queries and RMS norm."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Args:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int | None = None
    vocab_size: int = 40
    multiple_of: int = 8
    norm_eps: float = 1e-5
    max_seq_len: int = 16


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(
            x
        ) * self.weight


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary(xq, xk, freqs_cis) -> tuple[torch.Tensor, torch.Tensor]:
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = freqs_cis.view(1, xq_.shape[1], 1, xq_.shape[3])
    out_q = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    out_k = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return out_q.type_as(xq), out_k.type_as(xk)


class Attention(nn.Module):
    def __init__(self, args: Args):
        super().__init__()
        self.n_kv = args.n_heads if args.n_kv_heads is None else args.n_kv_heads
        self.n_rep = args.n_heads // self.n_kv
        self.head_dim = args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(args.dim, self.n_kv * self.head_dim, bias=False)
        self.wv = nn.Linear(args.dim, self.n_kv * self.head_dim, bias=False)
        self.wo = nn.Linear(args.n_heads * self.head_dim, args.dim, bias=False)
        mask = torch.full((1, 1, args.max_seq_len, args.max_seq_len), float("-inf"))
        self.register_buffer("mask", torch.triu(mask, diagonal=1))

    def forward(self, x, freqs_cis):
        b, n, _ = x.shape
        q = self.wq(x).view(b, n, -1, self.head_dim)
        k = self.wk(x).view(b, n, self.n_kv, self.head_dim)
        v = self.wv(x).view(b, n, self.n_kv, self.head_dim)
        q, k = apply_rotary(q, k, freqs_cis=freqs_cis)
        k = (
            k[:, :, :, None, :]
            .expand(b, n, self.n_kv, self.n_rep, self.head_dim)
            .reshape(b, n, -1, self.head_dim)
        )
        v = torch.repeat_interleave(v, dim=2, repeats=self.n_rep)
        q, k, v = map(lambda z: z.transpose(1, 2), (q, k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) / self.head_dim**0.5
        scores = scores + self.mask[:, :, :n, :n].to(scores)
        scores = F.softmax(scores.float(), dim=-1).type_as(q)
        return self.wo(torch.matmul(scores, v).transpose(1, 2).contiguous().view(b, n, -1))


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden, multiple_of):
        super().__init__()
        hidden = multiple_of * ((int(2 * hidden / 3) + multiple_of - 1) // multiple_of)
        self.w1, self.w2, self.w3 = (
            nn.Linear(dim, hidden, bias=False),
            nn.Linear(hidden, dim, bias=False),
            nn.Linear(dim, hidden, bias=False),
        )

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class DecoderBlock(nn.Module):
    def __init__(self, layer_id: int, args: Args):
        super().__init__()
        self.attention, self.feed_forward = (
            Attention(args),
            SwiGLU(args.dim, 4 * args.dim, args.multiple_of),
        )
        self.attention_norm, self.ffn_norm = (
            RMSNorm(args.dim, eps=args.norm_eps),
            RMSNorm(args.dim, args.norm_eps),
        )

    def forward(self, x, freqs_cis):
        h = x + self.attention.forward(self.attention_norm(x), freqs_cis)
        return h + self.feed_forward.forward(self.ffn_norm(h))


class LanguageModel(nn.Module):
    last_loss: torch.Tensor | None

    def __init__(self, args: Args):
        super().__init__()
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim, padding_idx=0)
        self.layers = torch.nn.ModuleList()
        for i in range(args.n_layers):
            self.layers.append(DecoderBlock(i, args))
        self.norm = RMSNorm(args.dim, eps=args.norm_eps)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)
        self.tok_embeddings.weight = self.output.weight
        self.freqs_cis = precompute_freqs_cis(args.dim // args.n_heads, args.max_seq_len * 2)
        self.apply(self._init)
        self.last_loss = None

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.trunc_normal_(m.weight, std=0.02, a=-0.04, b=0.04)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor | None = None) -> torch.Tensor:
        h = self.tok_embeddings(tokens)
        freqs = self.freqs_cis[: tokens.shape[1]]
        for layer in self.layers:
            h = layer(h, freqs)
        logits = self.output(self.norm(h))
        if targets is not None:
            self.last_loss = F.cross_entropy(logits.transpose(1, 2), targets, label_smoothing=0.1)
        return logits
