# -*- coding: utf-8 -*-
"""Char-CNN + BiLSTM + self-attention + CRF tagger with an auxiliary sentence classifier."""

from argparse import Namespace
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD_ID = 0
ENCODERS = {}


def register_encoder(name):
    def wrapper(cls):
        if name in ENCODERS:
            raise ValueError(f"Cannot register duplicate encoder ({name})")
        ENCODERS[name] = cls
        return cls

    return wrapper


def lengths_to_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


class CharCNN(nn.Module):
    def __init__(self, n_chars, char_dim, n_filters, widths=(2, 3, 4)):
        super().__init__()
        self.embed = nn.Embedding(n_chars, char_dim, padding_idx=PAD_ID)
        self.convs = nn.ModuleDict(
            {"w%d" % w: nn.Conv1d(char_dim, n_filters, w, padding=w // 2) for w in widths}
        )
        self.out_dim = n_filters * len(widths)

    def forward(self, chars):
        bsz, n_word, n_char = chars.size()
        x = self.embed(chars.view(-1, n_char)).transpose(1, 2)
        feats = []
        for name, conv in self.convs.items():
            feats.append(F.relu(conv(x)).max(dim=-1)[0])
        return torch.cat(feats, dim=-1).view(bsz, n_word, self.out_dim)


class Highway(nn.Module):
    def __init__(self, dim, num_layers=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim * 2) for _ in range(num_layers)])
        for layer in self.layers:
            nn.init.constant_(layer.bias[dim:], 1)

    def forward(self, x):
        for layer in self.layers:
            proj, gate = layer(x).chunk(2, dim=-1)
            gate = torch.sigmoid(gate)
            x = gate * x + (1 - gate) * F.relu(proj)
        return x


@register_encoder("bilstm")
class BiLSTMEncoder(nn.Module):
    def __init__(self, args, in_dim):
        super().__init__()
        self.lstm = nn.LSTM(
            in_dim,
            args.hidden // 2,
            num_layers=args.layers,
            batch_first=True,
            bidirectional=True,
            dropout=args.dropout if args.layers > 1 else 0.0,
        )
        for name, p in self.lstm.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(p)
            elif "weight_ih" in name:
                nn.init.xavier_uniform_(p)
            elif "bias" in name:
                nn.init.zeros_(p)
                n = p.size(0)
                p.data[n // 4 : n // 2].fill_(1.0)  # forget gate

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, (h_n, _) = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return out, torch.cat([h_n[-2], h_n[-1]], dim=-1)


@register_encoder("bigru")
class BiGRUEncoder(nn.Module):
    def __init__(self, args, in_dim):
        super().__init__()
        self.fwd = nn.GRU(in_dim, args.hidden // 2, batch_first=True)
        self.bwd = nn.GRU(in_dim, args.hidden // 2, batch_first=True)

    @staticmethod
    def reverse(x, lengths):
        # reverse every sequence inside its own length, padding stays where it is
        T = x.size(1)
        idx = torch.arange(T, device=x.device).unsqueeze(0).expand(x.size(0), T)
        rev = lengths.unsqueeze(1) - 1 - idx
        idx = torch.where(rev >= 0, rev, idx)
        return x.gather(1, idx.unsqueeze(-1).expand_as(x))

    def forward(self, x, lengths):
        f, _ = self.fwd(x)
        b, _ = self.bwd(self.reverse(x, lengths))
        last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, f.size(-1))
        final = torch.cat([f.gather(1, last), b.gather(1, last)], -1).squeeze(1)
        out = torch.cat([f, self.reverse(b, lengths)], dim=-1)
        return out.masked_fill(~lengths_to_mask(lengths, x.size(1)).unsqueeze(-1), 0.0), final


class SelfAttention(nn.Module):
    """Multi-head attention with clipped relative position embeddings (Shaw et al.)."""

    def __init__(self, dim, heads, max_rel=4, dropout=0.1):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.max_rel = max_rel
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.rel_k = nn.Embedding(2 * max_rel + 1, self.d)
        self.fc = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, x, mask):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, self.d).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1)
        pos = torch.arange(T, device=x.device)
        rel = (pos[None, :] - pos[:, None]).clamp(-self.max_rel, self.max_rel) + self.max_rel
        scores = scores + torch.einsum("bhid,ijd->bhij", q, self.rel_k(rel))
        scores = scores / np.sqrt(self.d)
        scores.masked_fill_(~mask[:, None, None, :], -1e9)
        attn = self.dropout(scores.softmax(-1))
        out = (attn @ v).transpose(1, 2).reshape(B, T, C)
        return self.norm(x + self.dropout(self.fc(out)))


class CRF(nn.Module):
    def __init__(self, num_tags: int):
        super().__init__()
        self.num_tags = num_tags
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self):
        for p in self.parameters():
            nn.init.uniform_(p, -0.1, 0.1)

    def score(self, emissions, tags, mask):
        seq_len, bsz = tags.shape
        ar = torch.arange(bsz, device=tags.device)
        score = self.start_transitions[tags[0]] + emissions[0, ar, tags[0]]
        for i in range(1, seq_len):
            score += self.transitions[tags[i - 1], tags[i]] * mask[i]
            score += emissions[i, ar, tags[i]] * mask[i]
        seq_ends = mask.long().sum(dim=0) - 1
        return score + self.end_transitions[tags[seq_ends, ar]]

    def normalizer(self, emissions, mask):
        score = self.start_transitions + emissions[0]
        for i in range(1, emissions.size(0)):
            nxt = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            nxt = torch.logsumexp(nxt, dim=1)
            score = torch.where(mask[i].unsqueeze(1), nxt, score)
        return torch.logsumexp(score + self.end_transitions, dim=1)

    def forward(self, emissions, tags, mask):
        emissions, tags, mask = (
            emissions.transpose(0, 1),
            tags.transpose(0, 1),
            mask.transpose(0, 1),
        )
        llh = self.score(emissions, tags, mask) - self.normalizer(emissions, mask)
        return -llh

    @torch.no_grad()
    def viterbi(self, emissions, mask):
        emissions, mask = emissions.transpose(0, 1), mask.transpose(0, 1)
        T, B, K = emissions.shape
        score = self.start_transitions + emissions[0]
        history: List[torch.Tensor] = []
        ident = torch.arange(K, device=score.device).expand(B, K)
        for i in range(1, T):
            nxt, idx = (score.unsqueeze(2) + self.transitions).max(dim=1)
            nxt = nxt + emissions[i]
            score = torch.where(mask[i].unsqueeze(1), nxt, score)
            history.append(torch.where(mask[i].unsqueeze(1), idx, ident))
        best, tag = (score + self.end_transitions).max(dim=1)
        path = [tag]
        for idx in reversed(history):
            tag = idx.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        path = torch.stack(path[::-1], dim=1)
        return best, path.masked_fill(~mask.transpose(0, 1), -1)


class Tagger(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.word_emb = nn.Embedding(args.vocab, args.word_dim, padding_idx=PAD_ID)
        self.char_cnn = CharCNN(args.chars, args.char_dim, args.filters)
        in_dim = args.word_dim + self.char_cnn.out_dim
        self.highway = Highway(in_dim)
        self.encoder = ENCODERS[args.encoder](args, in_dim)
        self.attn = nn.ModuleList(
            [
                SelfAttention(args.hidden, args.heads, dropout=args.dropout)
                for _ in range(args.attn_layers)
            ]
        )
        self.emit = nn.Linear(args.hidden, args.tags)
        self.crf = CRF(args.tags)
        self.pool_query = nn.Parameter(torch.randn(args.hidden) * 0.02)
        self.classifier = nn.Sequential(
            nn.Linear(args.hidden * 3, args.hidden),
            nn.Tanh(),
            nn.Dropout(args.dropout),
            nn.Linear(args.hidden, args.classes),
        )

    def forward(
        self, words, chars, lengths, tags: Optional[torch.Tensor] = None
    ) -> Dict[str, torch.Tensor]:
        mask = lengths_to_mask(lengths, words.size(1))
        x = torch.cat([self.word_emb(words), self.char_cnn(chars)], dim=-1)
        x = F.dropout(self.highway(x), p=self.args.dropout, training=self.training)
        h, final = self.encoder(x, lengths)
        for layer in self.attn:
            h = layer(h, mask)
        emissions = self.emit(h)

        alpha = torch.matmul(h, self.pool_query).masked_fill(~mask, float("-inf"))
        pooled = torch.einsum("bt,btd->bd", F.softmax(alpha, dim=1), h)
        hmax = h.masked_fill(~mask[..., None], float("-inf")).amax(1)
        logits = self.classifier(torch.cat((pooled, hmax, final), dim=-1))

        out = {"emissions": emissions, "log_probs": F.log_softmax(logits, -1)}
        if tags is not None:
            nll = self.crf(emissions, tags, mask)
            out["loss"] = (nll / lengths.to(nll.dtype)).mean()
        if not self.training:
            out["path_score"], out["path"] = self.crf.viterbi(emissions, mask)
        return out


def default_args(**overrides):
    args = Namespace(
        vocab=200,
        chars=40,
        word_dim=32,
        char_dim=12,
        filters=8,
        hidden=48,
        layers=2,
        heads=4,
        attn_layers=2,
        tags=7,
        classes=4,
        dropout=0.2,
        encoder="bilstm",
    )
    vars(args).update(overrides)
    return args


def build_tagger(**kw):
    return Tagger(default_args(**kw))


if __name__ == "__main__":
    for enc in ENCODERS:
        m = build_tagger(encoder=enc).eval()
        o = m(torch.randint(1, 200, (2, 6)), torch.randint(0, 40, (2, 6, 5)), torch.tensor([6, 4]))
        print(enc, o["path"])
