# -*- coding: utf-8 -*-
"""
Deep Interest (Evolution) Network.

  DIN : Deep Interest Network for Click-Through Rate Prediction, KDD'18
  DIEN: Deep Interest Evolution Network for Click-Through Rate Prediction, AAAI'19
"""

from collections import OrderedDict, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F

SparseFeat = namedtuple("SparseFeat", ["name", "vocab", "dim"])

DEFAULT_FEATURES = OrderedDict(
    (f.name, f)
    for f in [
        SparseFeat("user", 50, 16),
        SparseFeat("item", 120, 16),
        SparseFeat("cate", 20, 8),
        SparseFeat("hour", 24, 4),
    ]
)


def sequence_mask(lengths, maxlen=None):
    """Same as tf.sequence_mask"""
    if maxlen is None:
        maxlen = lengths.max()
    row = torch.arange(0, maxlen, 1, device=lengths.device)
    return row < lengths.unsqueeze(-1)


class Dice(nn.Module):
    """Data adaptive activation, 2 or 3 dims"""

    def __init__(self, emb_size, dim=2, epsilon=1e-8):
        super(Dice, self).__init__()
        assert dim == 2 or dim == 3
        self.bn = nn.BatchNorm1d(emb_size, eps=epsilon)
        self.sigmoid = nn.Sigmoid()
        self.dim = dim
        self.alpha = nn.Parameter(torch.zeros((emb_size,)))

    def forward(self, x):
        assert x.dim() == self.dim
        if self.dim == 3:
            x = torch.transpose(x, 1, 2)
            x_p = self.sigmoid(self.bn(x))
            out = self.alpha.view(-1, 1) * (1 - x_p) * x + x_p * x
            return torch.transpose(out, 1, 2)
        x_p = self.sigmoid(self.bn(x))
        return self.alpha * (1 - x_p) * x + x_p * x


def activation_layer(act, hidden=None, dim=2):
    if act.lower() == "dice":
        return Dice(hidden, dim)
    return {"sigmoid": nn.Sigmoid, "relu": nn.ReLU, "prelu": nn.PReLU}[act.lower()]()


class DNN(nn.Module):
    def __init__(
        self, inputs_dim, hidden_units, activation="relu", dropout=0.0, use_bn=False, act_dim=2
    ):
        super(DNN, self).__init__()
        units = [inputs_dim] + list(hidden_units)
        self.use_bn = use_bn
        self.linears = nn.ModuleList(
            [nn.Linear(units[i], units[i + 1]) for i in range(len(units) - 1)]
        )
        if use_bn:
            self.bn = nn.ModuleList([nn.BatchNorm1d(u) for u in units[1:]])
        self.activation_layers = nn.ModuleList(
            [activation_layer(activation, u, act_dim) for u in units[1:]]
        )
        self.dropout = nn.Dropout(dropout)
        for name, tensor in self.linears.named_parameters():
            if "weight" in name:
                nn.init.normal_(tensor, mean=0, std=0.05)

    def forward(self, inputs):
        deep_input = inputs
        for i in range(len(self.linears)):
            fc = self.linears[i](deep_input)
            if self.use_bn:
                fc = self.bn[i](fc)
            fc = self.activation_layers[i](fc)
            deep_input = self.dropout(fc)
        return deep_input


class LocalActivationUnit(nn.Module):
    def __init__(self, dim, hidden=(32, 16)):
        super().__init__()
        self.dnn = DNN(4 * dim, hidden, activation="dice", act_dim=3)
        self.dense = nn.Linear(hidden[-1], 1)

    def forward(self, query, keys):
        T = keys.size(1)
        queries = query.unsqueeze(1).expand(-1, T, -1)
        x = torch.cat([queries, keys, queries - keys, queries * keys], dim=-1)
        return self.dense(self.dnn(x)).squeeze(-1)  # [B, T]


def masked_softmax(score, mask):
    paddings = torch.ones_like(score) * (-(2**32) + 1)
    score = torch.where(mask, score, paddings)
    return F.softmax(score, dim=-1)


class AUGRUCell(nn.Module):
    """Effect of GRU with attentional update gate (AUGRU)"""

    def __init__(self, input_size, hidden_size, bias=True):
        super(AUGRUCell, self).__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        # (W_ir|W_iz|W_ih), (W_hr|W_hz|W_hh)
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        if bias:
            self.bias_ih = nn.Parameter(torch.zeros(3 * hidden_size))
            self.bias_hh = nn.Parameter(torch.zeros(3 * hidden_size))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        nn.init.orthogonal_(self.weight_hh)
        nn.init.xavier_uniform_(self.weight_ih)

    def forward(self, inputs, hx, att_score):
        gi = F.linear(inputs, self.weight_ih, self.bias_ih)
        gh = F.linear(hx, self.weight_hh, self.bias_hh)
        i_r, i_z, i_n = gi.chunk(3, 1)
        h_r, h_z, h_n = gh.chunk(3, 1)
        reset_gate = torch.sigmoid(i_r + h_r)
        update_gate = torch.sigmoid(i_z + h_z)
        new_state = torch.tanh(i_n + reset_gate * h_n)
        att_score = att_score.view(-1, 1)
        update_gate = att_score * update_gate
        return (1.0 - update_gate) * hx + update_gate * new_state


class InterestEvolving(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gru = nn.GRU(dim, dim, batch_first=True)  # interest extractor
        self.attention = LocalActivationUnit(dim)
        self.cell = AUGRUCell(dim, dim)
        self.aux_net = nn.Sequential(
            OrderedDict(
                [("fc1", nn.Linear(2 * dim, 32)), ("act", nn.Sigmoid()), ("fc2", nn.Linear(32, 1))]
            )
        )

    def auxiliary_loss(self, states, click_seq, noclick_seq, mask):
        mask = mask.to(states.dtype)
        click = self.aux_net(torch.cat([states, click_seq], -1)).squeeze(-1)
        noclick = self.aux_net(torch.cat([states, noclick_seq], -1)).squeeze(-1)
        loss = -(F.logsigmoid(click) + F.logsigmoid(-noclick)) * mask
        return loss.sum() / mask.sum().clamp_min(1.0)

    def forward(self, query, keys, neg_keys, lengths):
        mask = sequence_mask(lengths, keys.size(1))
        interests, _ = self.gru(keys)
        aux = self.auxiliary_loss(interests[:, :-1], keys[:, 1:], neg_keys[:, 1:], mask[:, 1:])
        score = masked_softmax(self.attention(query, interests), mask)
        h = torch.zeros_like(query)
        outputs = []
        for t, x_t in enumerate(interests.unbind(dim=1)):
            h_new = self.cell(x_t, h, score[:, t])
            # 超过真实长度的步不更新状态
            h = torch.where(mask[:, t : t + 1], h_new, h)
            outputs.append(h)
        outputs = torch.stack(outputs, 1)
        last = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, outputs.size(-1))
        return outputs.gather(1, last).squeeze(1), score, aux


class DIEN(nn.Module):
    def __init__(
        self,
        features=DEFAULT_FEATURES,
        n_dense=3,
        dnn_hidden_units=(64, 32),
        dnn_dropout=0.1,
        aux_alpha=0.5,
        topk=3,
    ):
        super().__init__()
        self.features, self.aux_alpha, self.topk = features, aux_alpha, topk
        self.embedding_dict = nn.ModuleDict(
            {
                name: nn.Embedding(
                    f.vocab, f.dim, padding_idx=0 if name in ("item", "cate") else None
                )
                for name, f in features.items()
            }
        )
        for emb in self.embedding_dict.values():
            nn.init.normal_(emb.weight, std=0.1)
            if emb.padding_idx is not None:
                emb.weight.data[emb.padding_idx].zero_()
        dim = features["item"].dim + features["cate"].dim
        self.evolve = InterestEvolving(dim)
        self.dense_bn = nn.BatchNorm1d(n_dense)
        total = 4 * dim + features["user"].dim + features["hour"].dim + n_dense
        self.dnn = DNN(total, dnn_hidden_units, "dice", dnn_dropout, use_bn=False)
        self.dnn_linear = nn.Linear(dnn_hidden_units[-1], 1, bias=False)
        # wide part
        self.linear = nn.ModuleDict({n: nn.Embedding(f.vocab, 1) for n, f in features.items()})
        self.bias = nn.Parameter(torch.zeros((1,)))

    def _item(self, item, cate):
        return torch.cat([self.embedding_dict["item"](item), self.embedding_dict["cate"](cate)], -1)

    def forward(
        self, user, item, cate, hour, hist_item, hist_cate, neg_item, neg_cate, hist_len, dense
    ):
        query = self._item(item, cate)
        keys = self._item(hist_item, hist_cate)
        neg = self._item(neg_item, neg_cate)
        interest, score, aux = self.evolve(query, keys, neg, hist_len)

        mask = sequence_mask(hist_len, keys.size(1)).unsqueeze(-1)
        pooled = keys.masked_fill(~mask, 0.0).sum(1) / hist_len.clamp(min=1).unsqueeze(-1)
        # hard interest: the top-k behaviours only
        _, idx = torch.topk(score, self.topk, dim=1)
        hard = torch.gather(keys, 1, idx.unsqueeze(-1).repeat(1, 1, keys.size(-1))).mean(1)

        deep = torch.cat(
            [
                query,
                interest,
                pooled * query,
                hard,
                self.embedding_dict["user"](user),
                self.embedding_dict["hour"](hour),
                self.dense_bn(torch.log1p(dense)),
            ],
            dim=-1,
        )
        logit = self.dnn_linear(self.dnn(deep))
        wide = dict(user=user, item=item, cate=cate, hour=hour)
        logit = logit + sum(self.linear[k](v) for k, v in wide.items()) + self.bias
        return torch.sigmoid(logit).squeeze(-1), self.aux_alpha * aux


if __name__ == "__main__":
    B, T = 4, 8
    r = lambda hi, *s: torch.randint(1, hi, s)
    model = DIEN()
    p, aux = model(
        r(50, B),
        r(120, B),
        r(20, B),
        r(24, B),
        r(120, B, T),
        r(20, B, T),
        r(120, B, T),
        r(20, B, T),
        torch.tensor([8, 5, 3, 1]),
        torch.rand(B, 3),
    )
    print(p, aux)
