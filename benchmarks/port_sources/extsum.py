"""
Extractive summarization with a hierarchical encoder.

Words are encoded by convolutions and a bidirectional GRU, pooled to sentence vectors with
attention; sentences are encoded by a transformer. A sequential scorer in the manner of
SummaRuNNer (content, salience, novelty, position) gives the probability of each sentence, and a
matching loss pulls the document vector towards that of the reference summary.
"""

import copy
import math
from dataclasses import dataclass, field
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@dataclass
class SumConfig:
    vocab_size: int = 50000
    embed_dim: int = 128
    kernel_sizes: List[int] = field(default_factory=lambda: [3, 4, 5])
    n_kernels: int = 100
    word_hidden: int = 150
    hidden_size: int = 256
    n_heads: int = 8
    ff_size: int = 512
    n_layers: int = 2
    dropout: float = 0.1
    max_sents: int = 100
    n_segments: int = 10
    pos_dim: int = 50
    pad_id: int = 0
    margin: float = 0.1
    match_weight: float = 0.2


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


class PositionalEncoding(nn.Module):
    def __init__(self, dropout, dim, max_len=5000):
        pe = torch.zeros(max_len, dim)
        position = torch.arange(0, max_len).unsqueeze(1)
        div_term = torch.exp(
            (torch.arange(0, dim, 2, dtype=torch.float) * -(math.log(10000.0) / dim))
        )
        pe[:, 0::2] = torch.sin(position.float() * div_term)
        pe[:, 1::2] = torch.cos(position.float() * div_term)
        pe = pe.unsqueeze(0)
        super(PositionalEncoding, self).__init__()
        self.register_buffer("pe", pe)
        self.dropout = nn.Dropout(p=dropout)
        self.dim = dim

    def forward(self, emb):
        emb = emb * math.sqrt(self.dim)
        emb = emb + self.pe[:, : emb.size(1)]
        return self.dropout(emb)


class MultiHeadedAttention(nn.Module):
    def __init__(self, head_count, model_dim, dropout=0.1):
        assert model_dim % head_count == 0
        self.dim_per_head = model_dim // head_count
        self.model_dim = model_dim
        super(MultiHeadedAttention, self).__init__()
        self.head_count = head_count
        self.linears = clones(nn.Linear(model_dim, model_dim), 4)
        self.softmax = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(dropout)
        self.attn = None

    def forward(self, query, key, value, mask=None):
        batch_size = query.size(0)
        query, key, value = [
            lin(x).view(batch_size, -1, self.head_count, self.dim_per_head).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        query = query / math.sqrt(self.dim_per_head)
        scores = torch.matmul(query, key.transpose(2, 3))
        if mask is not None:
            mask = mask.unsqueeze(1).expand_as(scores)
            scores = scores.masked_fill(mask, -1e18)
        attn = self.softmax(scores)
        self.attn = attn.detach()
        context = torch.matmul(self.dropout(attn), value)
        context = context.transpose(1, 2).contiguous().view(batch_size, -1, self.model_dim)
        return self.linears[-1](context)


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super(PositionwiseFeedForward, self).__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)
        self.dropout_1 = nn.Dropout(dropout)
        self.dropout_2 = nn.Dropout(dropout)

    def forward(self, x):
        inter = self.dropout_1(gelu(self.w_1(self.layer_norm(x))))
        return self.dropout_2(self.w_2(inter)) + x


class TransformerEncoderLayer(nn.Module):
    def __init__(self, cfg):
        super(TransformerEncoderLayer, self).__init__()
        self.self_attn = MultiHeadedAttention(cfg.n_heads, cfg.hidden_size, cfg.dropout)
        self.feed_forward = PositionwiseFeedForward(cfg.hidden_size, cfg.ff_size, cfg.dropout)
        self.layer_norm = nn.LayerNorm(cfg.hidden_size, eps=1e-6)
        self.dropout = nn.Dropout(cfg.dropout)

    def forward(self, it, inputs, mask):
        input_norm = self.layer_norm(inputs) if it != 0 else inputs
        context = self.self_attn(input_norm, input_norm, input_norm, mask=mask.unsqueeze(1))
        return self.feed_forward(self.dropout(context) + inputs)


class SentenceEncoder(nn.Module):
    """(N, W) token ids -> (N, hidden); every sentence must hold at least one token."""

    def __init__(self, cfg):
        super(SentenceEncoder, self).__init__()
        self.cfg = cfg
        self.embedding = nn.Embedding(cfg.vocab_size, cfg.embed_dim, padding_idx=cfg.pad_id)
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(1, cfg.n_kernels, (k, cfg.embed_dim), padding=(k - 1, 0))
                for k in cfg.kernel_sizes
            ]
        )
        self.gru = nn.GRU(cfg.embed_dim, cfg.word_hidden, batch_first=True, bidirectional=True)
        self.query = nn.Parameter(torch.Tensor(2 * cfg.word_hidden))
        self.attn_proj = nn.Linear(2 * cfg.word_hidden, 2 * cfg.word_hidden)
        self.out = nn.Linear(
            2 * cfg.word_hidden + len(cfg.kernel_sizes) * cfg.n_kernels, cfg.hidden_size
        )
        nn.init.uniform_(self.query, -0.1, 0.1)

    def load_word_embeddings(self, vectors: np.ndarray, freeze=False):
        self.embedding.weight.data.copy_(torch.from_numpy(vectors))
        self.embedding.weight.requires_grad = not freeze

    def forward(self, tokens):
        mask = tokens != self.cfg.pad_id
        lengths = mask.sum(dim=1)
        emb = F.dropout(self.embedding(tokens), self.cfg.dropout, self.training)

        grams = [F.relu(conv(emb.unsqueeze(1))).squeeze(3) for conv in self.convs]
        grams = [F.max_pool1d(g, g.size(2)).squeeze(2) for g in grams]

        packed = pack_padded_sequence(emb, lengths.cpu(), batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(
            self.gru(packed)[0], batch_first=True, total_length=tokens.size(1)
        )
        energy = torch.tanh(self.attn_proj(hidden)) @ self.query
        alpha = torch.softmax(energy.masked_fill(~mask, float("-inf")), dim=-1)
        pooled = torch.bmm(alpha.unsqueeze(1), hidden).squeeze(1)
        return self.out(torch.cat([pooled] + grams, dim=-1))


class DocumentEncoder(nn.Module):
    def __init__(self, cfg):
        super(DocumentEncoder, self).__init__()
        self.pos_emb = PositionalEncoding(cfg.dropout, cfg.hidden_size, cfg.max_sents)
        self.transformer = nn.ModuleList(
            [TransformerEncoderLayer(cfg) for _ in range(cfg.n_layers)]
        )
        self.layer_norm = nn.LayerNorm(cfg.hidden_size, eps=1e-6)

    def forward(self, sents, mask):
        x = self.pos_emb(sents) * mask[:, :, None].to(sents.dtype)
        for i, layer in enumerate(self.transformer):
            x = layer(i, x, ~mask)
        return self.layer_norm(x)


class SequentialScorer(nn.Module):
    def __init__(self, cfg):
        super(SequentialScorer, self).__init__()
        H = cfg.hidden_size
        self.n_segments = cfg.n_segments
        self.abs_pos_embed = nn.Embedding(cfg.max_sents, cfg.pos_dim)
        self.rel_pos_embed = nn.Embedding(cfg.n_segments, cfg.pos_dim)
        self.content = nn.Linear(H, 1, bias=False)
        self.salience = nn.Bilinear(H, H, 1, bias=False)
        self.novelty = nn.Bilinear(H, H, 1, bias=False)
        self.abs_pos = nn.Linear(cfg.pos_dim, 1, bias=False)
        self.rel_pos = nn.Linear(cfg.pos_dim, 1, bias=False)
        self.bias = nn.Parameter(torch.empty(1).uniform_(-0.1, 0.1))

    def forward(self, sents, doc, mask):
        batch, n_sents, _ = sents.size()
        position = torch.arange(n_sents, device=sents.device)
        lengths = mask.sum(dim=1, keepdim=True)
        segment = torch.div(position.unsqueeze(0) * self.n_segments, lengths, rounding_mode="floor")
        segment = segment.clamp(max=self.n_segments - 1)
        static = (
            self.content(sents)
            + self.salience(sents, doc.unsqueeze(1).expand_as(sents).contiguous())
            + self.abs_pos(self.abs_pos_embed(position))
            + self.rel_pos(self.rel_pos_embed(segment))
        )
        static = static.squeeze(-1) + self.bias

        summary = torch.zeros_like(doc)
        logits = []
        for i in range(n_sents):
            h = sents[:, i]
            logit = static[:, i] - self.novelty(h, torch.tanh(summary)).squeeze(-1)
            prob = torch.sigmoid(logit) * mask[:, i].to(logit.dtype)
            summary = summary + prob.unsqueeze(-1) * h
            logits.append(logit)
        return torch.stack(logits, dim=1)


class HierarchicalSummarizer(nn.Module):
    def __init__(self, cfg: SumConfig):
        super(HierarchicalSummarizer, self).__init__()
        self.cfg = cfg
        self.sent_encoder = SentenceEncoder(cfg)
        self.doc_encoder = DocumentEncoder(cfg)
        self.doc_proj = nn.Linear(cfg.hidden_size, cfg.hidden_size)
        self.scorer = SequentialScorer(cfg)
        self.criterion = nn.BCEWithLogitsLoss(reduction="none")
        for p in self.doc_encoder.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def encode_sentences(self, src):
        """Padded sentences are skipped: only the real ones go through the word encoder."""
        sent_mask = src.ne(self.cfg.pad_id).any(dim=-1)
        out = self.sent_encoder(src[sent_mask])
        sents = out.new_zeros(*src.shape[:2], out.size(-1))
        sents[sent_mask] = out
        return sents, sent_mask

    def document_vector(self, sents, mask):
        weight = mask.unsqueeze(-1).to(sents.dtype)
        return torch.tanh(self.doc_proj((sents * weight).sum(1) / weight.sum(1)))

    def matching_loss(self, doc, ref):
        sim = F.cosine_similarity(doc.unsqueeze(1), ref.unsqueeze(0), dim=-1)
        pos = sim.diagonal().unsqueeze(1)
        cost = (self.cfg.margin - pos + sim).clamp(min=0)
        eye = torch.eye(sim.size(0), dtype=torch.bool, device=sim.device)
        return cost.masked_fill(eye, 0).mean()

    def forward(
        self,
        src: torch.Tensor,
        labels: Optional[torch.Tensor] = None,
        summary: Optional[torch.Tensor] = None,
        topk: int = 3,
    ) -> Dict[str, torch.Tensor]:
        """src: (B, S, W), labels: (B, S) of 0 / 1, summary: (B, W') the reference"""
        sents, mask = self.encode_sentences(src)
        hidden = self.doc_encoder(sents, mask)
        doc = self.document_vector(hidden, mask)
        logits = self.scorer(hidden, doc, mask)
        scores = torch.sigmoid(logits) * mask
        picked = scores.topk(min(topk, scores.size(1)), dim=1).indices.sort(dim=1)[0]
        out = {"scores": scores, "picked": picked}
        if labels is not None:
            loss = self.criterion(logits, labels.to(logits.dtype))
            loss = (loss * mask).sum() / mask.sum()
            if summary is not None:
                out["match_loss"] = self.matching_loss(doc, self.sent_encoder(summary))
                loss = loss + self.cfg.match_weight * out["match_loss"]
            out["loss"] = loss
        return out
