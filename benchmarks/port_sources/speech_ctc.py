"""Convolution, LSTM cells unrolled by hand and a CTC loss."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence


class CellStack(nn.Module):
    def __init__(self, in_dim, hid, n_layers=2):
        super().__init__()
        self.cells = nn.ModuleList(
            nn.LSTMCell(in_dim if i == 0 else hid, hid, 1) for i in range(n_layers)
        )
        self.hid = hid

    def forward(self, xs):
        B, T, _ = xs.shape
        state = [(xs.new_zeros(B, self.hid), xs.new_zeros(B, self.hid)) for _ in self.cells]
        outs = []
        for t in range(T):
            h = xs[:, t]
            for i, cell in enumerate(self.cells):
                state[i] = cell(h, state[i])
                h = state[i][0]
            outs.append(h)
        return torch.stack(outs, 1)


class SpeechModel(nn.Module):
    def __init__(self, n_mels=8, hid=16, n_class=6):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(
                n_mels, hid, 3, stride=2, padding="same" if False else 1, padding_mode="reflect"
            ),
            nn.BatchNorm1d(hid, 1e-3, 0.01),
            nn.Hardtanh(0, 20, True),
        )
        self.rnn = nn.GRU(hid, hid, 1, batch_first=True, bidirectional=True)
        self.cells = CellStack(2 * hid, hid)
        self.head = nn.Linear(hid, n_class)
        self.ctc = nn.CTCLoss(blank=0, reduction="mean", zero_infinity=True)

    def out_lengths(self, lengths):
        return torch.div(lengths - 1, 2, rounding_mode="floor") + 1

    def forward(self, feats, lengths, labels, label_lengths):
        x = self.conv(feats.transpose(1, 2)).transpose(1, 2)
        x, _ = self.rnn(x)
        x = F.dropout(self.cells(x), 0.1, self.training)
        logp = F.log_softmax(self.head(x), -1)
        lens = self.out_lengths(lengths).to(torch.int)
        keep = torch.arange(logp.size(1), device=logp.device)[None, :] < lens[:, None]
        loss = self.ctc(logp.transpose(0, 1), labels, lens, label_lengths)
        return loss, logp * keep.unsqueeze(-1)


def collate(items):
    return pad_sequence(items, batch_first=True)
