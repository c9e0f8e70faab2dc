"""Biaffine dependency parser: arcs by einsum, masked losses, children gathered with scatter_add."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

MIN = -1e8


class SharedDropout(nn.Module):
    """Drops the same features at all steps of a sentence."""

    def __init__(self, p=0.33):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        mask = x.new_empty(x.size(0), 1, x.size(2)).bernoulli_(1 - self.p)
        return x * mask / (1 - self.p)


class MLP(nn.Module):
    def __init__(self, n_in, n_out, dropout=0.33):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.activation = nn.LeakyReLU(negative_slope=0.1)
        self.dropout = SharedDropout(p=dropout)
        nn.init.orthogonal_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return self.dropout(self.activation(self.linear(x)))


class Biaffine(nn.Module):
    def __init__(self, n_in, n_out=1, bias_x=True, bias_y=True):
        super().__init__()
        self.n_out, self.bias_x, self.bias_y = n_out, bias_x, bias_y
        self.weight = nn.Parameter(torch.Tensor(n_out, n_in + bias_x, n_in + bias_y))
        self.reset_parameters()

    def reset_parameters(self):
        with torch.no_grad():
            self.weight.normal_(std=0.1)

    def __repr__(self):
        return f"Biaffine(n_out={self.n_out}, weight={tuple(self.weight.shape)})"

    def forward(self, x, y):
        if self.bias_x:
            x = torch.cat((x, torch.ones_like(x[..., :1])), -1)
        if self.bias_y:
            y = torch.cat((y, torch.ones_like(y[..., :1])), -1)
        s = torch.einsum("bxi,oij,byj->boxy", x, self.weight, y)
        return s.squeeze(1) if self.n_out == 1 else s.permute(0, 2, 3, 1)


class DependencyParser(nn.Module):
    def __init__(
        self, n_words, n_tags, n_labels, d_embed=12, d_hidden=8, d_arc=10, d_label=6, pad=0, unk=1
    ):
        super().__init__()
        self.pad, self.unk = pad, unk
        self.word_embed = nn.Embedding(n_words, d_embed, padding_idx=pad)
        self.tag_embed = nn.Embedding(n_tags, d_embed, padding_idx=pad)
        self.lstm = nn.LSTM(
            2 * d_embed, d_hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=0.2
        )
        self.arc_d, self.arc_h = MLP(2 * d_hidden, d_arc), MLP(2 * d_hidden, d_arc)
        self.label_d, self.label_h = MLP(2 * d_hidden, d_label), MLP(2 * d_hidden, d_label)
        self.arc_attn = Biaffine(d_arc, bias_x=True, bias_y=False)
        self.label_attn = Biaffine(d_label, n_out=n_labels)
        self.compose = nn.GRUCell(2 * d_hidden, 2 * d_hidden)
        self.value = nn.Linear(2 * d_hidden, 1)

    def embed(self, words, tags):
        word, tag = self.word_embed(words), self.tag_embed(tags)
        if self.training:  # drops words and tags, and makes up for it by the scale of the other
            keep = torch.rand(2, *words.shape, device=words.device) > 0.33
            scale = 2.0 / keep.sum(0).clamp_min(1).to(word.dtype)
            word = word * (keep[0] * scale).unsqueeze(-1).type_as(word)
            tag = tag * (keep[1] * scale).unsqueeze(-1).type_as(tag)
        return torch.cat([word, tag], dim=-1)

    def forward(self, words, tags, heads=None, labels=None):
        mask = words.ne(self.pad)
        lens = mask.sum(dim=1)
        x = pack_padded_sequence(self.embed(words, tags), lens.tolist(), True, enforce_sorted=False)
        x, _ = self.lstm(x)
        x, _ = pad_packed_sequence(x, True, total_length=mask.shape[1])

        s_arc = self.arc_attn(self.arc_d(x), self.arc_h(x))
        s_arc = s_arc.masked_fill(~mask.unsqueeze(1), MIN)
        s_label = self.label_attn(self.label_d(x), self.label_h(x))
        if heads is None:
            heads = s_arc.argmax(-1)

        # the sum of each head's children, weighted by their arcs
        prob = s_arc.softmax(-1).gather(-1, heads.unsqueeze(-1))
        prob = prob * mask.unsqueeze(-1)
        children = torch.zeros_like(x).scatter_add_(1, heads.unsqueeze(-1).expand_as(x), prob * x)
        flat = self.compose(children.flatten(0, 1), x.flatten(0, 1)).view_as(x)
        value = self.value(torch.where(mask[..., None], flat, torch.zeros_like(flat))).squeeze(-1)
        if labels is None:
            return s_arc, s_label, value
        return self.loss(s_arc, s_label, heads, labels, mask), value

    def loss(self, s_arc, s_label, heads, labels, mask):
        mask = mask.clone()
        mask[:, 0] = False  # the root has no head
        arc_loss = F.cross_entropy(s_arc[mask], heads[mask])
        index = heads[..., None, None].expand(-1, -1, 1, s_label.size(-1))
        s_label = s_label.gather(2, index).squeeze(2)
        nll = F.cross_entropy(s_label.transpose(1, 2), labels, reduction="none")
        label_loss = (nll * mask).sum() / mask.sum()
        return arc_loss + label_loss

    @torch.no_grad()
    def decode(self, words, tags):
        s_arc, s_label, _ = self.eval()(words, tags)
        heads = s_arc.argmax(-1)
        index = heads.unsqueeze(-1).unsqueeze(-1).repeat(1, 1, 1, s_label.shape[-1])
        return heads, torch.gather(s_label, 2, index).squeeze(2).argmax(-1)
