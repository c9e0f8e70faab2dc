"""LinkGraphSQL: relation-aware schema graph encoding for cross-domain text-to-SQL parsing.

The question, the columns and the tables are encoded jointly by relational graph layers; a grammar decoder
then generates the abstract syntax tree of the query as a sequence of actions (apply rule, select column,
select table).
"""

import math
from collections import namedtuple
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

RELATIONS = [
    "none",
    "qq-dist-2",
    "qq-dist-1",
    "qq-self",
    "qq-dist+1",
    "qq-dist+2",
    "qc-exact",
    "qc-partial",
    "qt-exact",
    "qt-partial",
    "cq-exact",
    "cq-partial",
    "tq-exact",
    "tq-partial",
    "cc-self",
    "cc-same-table",
    "cc-foreign",
    "cc-foreign-rev",
    "ct-belongs",
    "ct-primary",
    "tc-has",
    "tc-primary",
    "tt-self",
    "tt-foreign",
]
REL2ID = {name: i for i, name in enumerate(RELATIONS)}

APPLY_RULE, SELECT_COLUMN, SELECT_TABLE = 1, 2, 3

ParserOutput = namedtuple(
    "ParserOutput",
    ["loss", "parse_loss", "prune_loss", "rule_logits", "column_logits", "table_logits"],
)


@dataclass
class ParserConfig:
    vocab_size: int = 5000
    num_rules: int = 90
    embed_size: int = 300
    hidden_size: int = 256
    num_layers: int = 8
    num_heads: int = 8
    ffn_mult: int = 4
    dropout: float = 0.2
    decoder_size: int = 512
    action_size: int = 128
    type_size: int = 32
    max_distance: int = 2
    prune_weight: float = 0.5
    label_smoothing: float = 0.1
    node_types: List[str] = field(default_factory=lambda: ["question", "column", "table"])


def lengths_to_mask(lengths: torch.Tensor, max_len: Optional[int] = None) -> torch.Tensor:
    max_len = max_len or int(lengths.max())
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def build_relations(
    q_len, col_table, table_primary, foreign_keys, match_qc, match_qt, max_distance
):
    """Relation ids over [question; columns; tables] of shape (B, N, N)."""
    bsz, n_col = col_table.shape
    n_tab = table_primary.size(1)
    device = col_table.device
    pos = torch.arange(q_len, device=device)
    dist = (pos[None, :] - pos[:, None]).clamp(-max_distance, max_distance)
    qq = (dist + REL2ID["qq-self"]).unsqueeze(0).expand(bsz, -1, -1)

    qc = torch.where(match_qc > 0, match_qc + REL2ID["qc-exact"] - 1, torch.zeros_like(match_qc))
    qt = torch.where(match_qt > 0, match_qt + REL2ID["qt-exact"] - 1, torch.zeros_like(match_qt))
    cq = torch.where(
        match_qc > 0, match_qc + REL2ID["cq-exact"] - 1, torch.zeros_like(match_qc)
    ).transpose(1, 2)
    tq = torch.where(
        match_qt > 0, match_qt + REL2ID["tq-exact"] - 1, torch.zeros_like(match_qt)
    ).transpose(1, 2)

    same = (col_table.unsqueeze(1) == col_table.unsqueeze(2)) & (col_table >= 0).unsqueeze(1)
    cc = same.long() * REL2ID["cc-same-table"]
    cc = cc.masked_fill(foreign_keys, REL2ID["cc-foreign"])
    cc = cc.masked_fill(foreign_keys.transpose(1, 2), REL2ID["cc-foreign-rev"])
    cc = cc.masked_fill(torch.eye(n_col, dtype=torch.bool, device=device), REL2ID["cc-self"])

    table_ids = torch.arange(n_tab, device=device)
    belongs = col_table.unsqueeze(-1) == table_ids
    primary = torch.arange(n_col, device=device)[None, :, None] == table_primary.unsqueeze(1)
    ct = belongs.long() * REL2ID["ct-belongs"]
    ct[primary] = REL2ID["ct-primary"]
    tc = (
        (belongs.long() * REL2ID["tc-has"])
        .masked_fill(primary, REL2ID["tc-primary"])
        .transpose(1, 2)
    )

    onehot = belongs.float()
    linked = torch.einsum("bct,bcd,bdu->btu", onehot, foreign_keys.float(), onehot) > 0
    tt = (linked | linked.transpose(1, 2)).long() * REL2ID["tt-foreign"]
    tt = tt.masked_fill(torch.eye(n_tab, dtype=torch.bool, device=device), REL2ID["tt-self"])

    return torch.cat(
        [torch.cat([qq, qc, qt], -1), torch.cat([cq, cc, ct], -1), torch.cat([tq, tc, tt], -1)], 1
    )


class NameEncoder(nn.Module):
    """BiLSTM over the words of each phrase; keeps all states or the two final ones."""

    def __init__(self, embed_size, hidden_size, dropout, pool):
        super().__init__()
        self.pool = pool
        self.rnn = nn.LSTM(embed_size, hidden_size // 2, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded, lengths):
        packed = pack_padded_sequence(
            embedded, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        output, (h_n, _) = self.rnn(packed)
        if self.pool:
            return self.dropout(torch.cat([h_n[0], h_n[1]], dim=-1))
        output, _ = pad_packed_sequence(output, batch_first=True, total_length=embedded.size(1))
        return self.dropout(output)


class RelationalGraphLayer(nn.Module):
    def __init__(self, cfg: ParserConfig):
        super().__init__()
        d = cfg.hidden_size
        self.num_heads, self.head_dim = cfg.num_heads, d // cfg.num_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d, d) for _ in range(3))
        self.out_proj = nn.Linear(d, d)
        self.rel_k = nn.Embedding(len(RELATIONS), self.head_dim)
        self.rel_v = nn.Embedding(len(RELATIONS), self.head_dim)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ffn = nn.Sequential(
            nn.Linear(d, cfg.ffn_mult * d),
            nn.ReLU(inplace=True),
            nn.Dropout(cfg.dropout),
            nn.Linear(cfg.ffn_mult * d, d),
        )
        self.dropout = nn.Dropout(cfg.dropout)

    def _split(self, x):
        return x.view(x.size(0), x.size(1), self.num_heads, self.head_dim).permute(0, 2, 1, 3)

    def forward(self, x, relations, mask):
        q, k, v = (
            self._split(self.q_proj(x)),
            self._split(self.k_proj(x)),
            self._split(self.v_proj(x)),
        )
        r_k, r_v = self.rel_k(relations), self.rel_v(relations)
        scores = q @ k.transpose(-2, -1) + torch.einsum("bhid,bijd->bhij", q, r_k)
        scores = scores / math.sqrt(self.head_dim)
        scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
        attn = self.dropout(scores.softmax(dim=-1))
        ctx = attn @ v + torch.einsum("bhij,bijd->bhid", attn, r_v)
        ctx = ctx.transpose(1, 2).contiguous().view(x.shape)
        x = self.norm1(x + self.dropout(self.out_proj(ctx)))
        return self.norm2(x + self.dropout(self.ffn(x)))


class SchemaGraphEncoder(nn.Module):
    def __init__(self, cfg: ParserConfig):
        super().__init__()
        self.cfg = cfg
        self.word_embed = nn.Embedding(cfg.vocab_size, cfg.embed_size, padding_idx=0)
        self.encoders = nn.ModuleDict(
            {
                t: NameEncoder(cfg.embed_size, cfg.hidden_size, cfg.dropout, pool=(t != "question"))
                for t in cfg.node_types
            }
        )
        self.type_embed = nn.Parameter(torch.zeros(len(cfg.node_types), cfg.hidden_size))
        self.layers = nn.ModuleList([RelationalGraphLayer(cfg) for _ in range(cfg.num_layers)])
        nn.init.normal_(self.type_embed, std=0.02)

    def encode_phrases(self, ids, node_type):
        b, n, w = ids.shape
        lengths = (ids != 0).sum(-1).view(-1)
        out = self.encoders[node_type](self.word_embed(ids).view(b * n, w, -1), lengths)
        return out.view(b, n, -1)

    def forward(self, question, columns, tables, relations):
        q_mask = question.ne(0)
        q = self.encoders["question"](self.word_embed(question), q_mask.sum(-1))
        c, t = self.encode_phrases(columns, "column"), self.encode_phrases(tables, "table")
        c_mask, t_mask = columns[..., 0] != 0, tables[..., 0] != 0
        x = torch.cat([h + e for h, e in zip((q, c, t), self.type_embed)], dim=1)
        mask = torch.cat([q_mask, c_mask, t_mask], dim=1)
        for layer in self.layers:
            x = layer(x, relations, mask)
        q, c, t = torch.split(x, [question.size(1), columns.size(1), tables.size(1)], dim=1)
        return (q, c, t), (q_mask, c_mask, t_mask)


class PointerScorer(nn.Module):
    def __init__(self, query_size, key_size):
        super().__init__()
        self.query = nn.Linear(query_size, key_size, bias=False)

    def forward(self, query, keys, mask):
        scores = torch.bmm(keys, self.query(query).unsqueeze(-1)).squeeze(-1) / keys.size(-1) ** 0.5
        return scores.masked_fill(mask.logical_not(), -1e9)


class GrammarDecoder(nn.Module):
    """LSTM with parent feeding over the actions of the depth-first derivation."""

    def __init__(self, cfg: ParserConfig):
        super().__init__()
        self.cfg = cfg
        self.rule_embed = nn.Embedding(cfg.num_rules + 1, cfg.action_size)
        self.kind_embed = nn.Embedding(4, cfg.type_size, padding_idx=0)
        self.node_proj = nn.Linear(cfg.hidden_size, cfg.action_size)
        self.cell = nn.LSTMCell(
            cfg.action_size + cfg.type_size + cfg.decoder_size + cfg.hidden_size, cfg.decoder_size
        )
        self.init_state = nn.Linear(cfg.hidden_size, cfg.decoder_size)
        self.attention = PointerScorer(cfg.decoder_size, cfg.hidden_size)
        self.column_pointer = PointerScorer(cfg.decoder_size + cfg.hidden_size, cfg.hidden_size)
        self.table_pointer = PointerScorer(cfg.decoder_size + cfg.hidden_size, cfg.hidden_size)
        self.rule_out = nn.Sequential(
            nn.Linear(cfg.decoder_size + cfg.hidden_size, cfg.action_size), nn.Tanh()
        )
        self.dropout = nn.Dropout(cfg.dropout)

    def embed_action(self, kind, index, columns, tables):
        rows = torch.arange(kind.size(0), device=kind.device)
        emb = self.rule_embed(
            torch.where(kind == APPLY_RULE, index, torch.full_like(index, self.cfg.num_rules))
        )
        col = self.node_proj(columns[rows, index.clamp(max=columns.size(1) - 1)])
        tab = self.node_proj(tables[rows, index.clamp(max=tables.size(1) - 1)])
        emb = torch.where((kind == SELECT_COLUMN).unsqueeze(-1), col, emb)
        return torch.where((kind == SELECT_TABLE).unsqueeze(-1), tab, emb)

    def forward(self, memory, masks, kinds, indices, parents):
        q, c, t = memory
        all_nodes, all_mask = torch.cat(memory, 1), torch.cat(masks, 1)
        pooled = (q * masks[0].unsqueeze(-1)).sum(1) / masks[0].sum(1, keepdim=True)
        h = torch.tanh(self.init_state(pooled))
        cell = torch.zeros_like(h)
        context = pooled
        prev = self.rule_embed.weight[-1].expand(h.size(0), -1)
        history, rule_logits, column_logits, table_logits = [h], [], [], []
        for step in range(kinds.size(1)):
            parent = torch.stack(history, dim=1)
            parent = parent.gather(
                1, parents[:, step].view(-1, 1, 1).expand(-1, 1, h.size(-1))
            ).squeeze(1)
            inp = torch.cat([prev, self.kind_embed(kinds[:, step]), parent, context], dim=-1)
            h, cell = self.cell(self.dropout(inp), (h, cell))
            weights = F.softmax(self.attention(h, all_nodes, all_mask), dim=-1)
            context = torch.bmm(weights.unsqueeze(1), all_nodes).squeeze(1)
            state = self.dropout(torch.cat([h, context], dim=-1))
            rule_logits.append(F.linear(self.rule_out(state), self.rule_embed.weight[:-1]))
            column_logits.append(self.column_pointer(state, c, masks[1]))
            table_logits.append(self.table_pointer(state, t, masks[2]))
            history.append(h)
            prev = self.embed_action(kinds[:, step], indices[:, step], c, t)
        return tuple(torch.stack(x, dim=1) for x in (rule_logits, column_logits, table_logits))


class LinkGraphSQL(nn.Module):
    def __init__(self, cfg: ParserConfig):
        super().__init__()
        self.cfg = cfg
        self.encoder = SchemaGraphEncoder(cfg)
        self.decoder = GrammarDecoder(cfg)
        self.prune_query = nn.Parameter(torch.empty(cfg.hidden_size, cfg.hidden_size))
        self.prune_out = nn.Linear(cfg.hidden_size * 2, 1)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.xavier_uniform_(self.prune_query)
        for name, p in self.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(p)
            elif "bias_ih" in name:
                nn.init.zeros_(p)
                p.data[p.size(0) // 4 : p.size(0) // 2] = 1.0

    def prune_loss(self, memory, masks, used):
        q, schema = memory[0], torch.cat(memory[1:], dim=1)
        schema_mask = torch.cat(masks[1:], dim=1)
        scores = torch.einsum("bnd,de,bqe->bnq", schema, self.prune_query, q)
        scores = scores.masked_fill(~masks[0].unsqueeze(1), float("-inf")).softmax(-1)
        logits = self.prune_out(torch.cat([schema, scores @ q], dim=-1)).squeeze(-1)
        loss = F.binary_cross_entropy_with_logits(logits, used.to(logits.dtype), reduction="none")
        return loss[schema_mask].mean()

    def parse_loss(self, logits: Tuple[torch.Tensor, ...], kinds, indices):
        losses = []
        for kind, scores in zip((APPLY_RULE, SELECT_COLUMN, SELECT_TABLE), logits):
            target = indices.masked_fill(kinds != kind, -100)
            smooth = self.cfg.label_smoothing if kind == APPLY_RULE and self.training else 0.0
            losses.append(
                F.cross_entropy(
                    scores.flatten(0, 1),
                    target.flatten(),
                    ignore_index=-100,
                    label_smoothing=smooth,
                    reduction="sum",
                )
            )
        return sum(losses) / kinds.size(0)

    def forward(
        self,
        question,
        columns,
        tables,
        col_table,
        table_primary,
        foreign_keys,
        match_qc,
        match_qt,
        action_kinds,
        action_indices,
        action_parents,
        used_schema=None,
    ):
        relations = build_relations(
            question.size(1),
            col_table,
            table_primary,
            foreign_keys,
            match_qc,
            match_qt,
            self.cfg.max_distance,
        )
        memory, masks = self.encoder(question, columns, tables, relations)
        logits = self.decoder(memory, masks, action_kinds, action_indices, action_parents)
        parse = self.parse_loss(logits, action_kinds, action_indices)
        prune = (
            self.prune_loss(memory, masks, used_schema)
            if used_schema is not None
            else parse.new_zeros(())
        )
        return ParserOutput(parse + self.cfg.prune_weight * prune, parse, prune, *logits)
