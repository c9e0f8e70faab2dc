"""
Zero-shot voice conversion with an information bottleneck.

The content encoder squeezes the mel-spectrogram through a narrow, temporally down-sampled
bottleneck, the decoder restores it given a speaker embedding. The speaker embedding comes
from a GE2E-style LSTM trained jointly with a classification loss.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_hparams(**overrides):
    hparams = argparse.Namespace(
        n_mels=80,
        dim_neck=32,
        dim_emb=256,
        dim_pre=512,
        dim_enc=512,
        freq=32,
        n_speakers=109,
        spk_hidden=256,
        spk_layers=3,
        dec_layers=2,
        postnet_dim=512,
        postnet_layers=5,
        dropout=0.1,
        lambda_cd=1.0,
        lambda_id=1.0,
        lambda_spk=0.1,
    )
    for key, value in overrides.items():
        if not hasattr(hparams, key):
            raise ValueError("unknown hyper-parameter: {}".format(key))
        setattr(hparams, key, value)
    return hparams


def sequence_mask(lengths, max_len=None):
    if max_len is None:
        max_len = int(lengths.max())
    steps = torch.arange(max_len, device=lengths.device)
    return steps.unsqueeze(0) < lengths.unsqueeze(1)


def masked_mse(pred, target, mask):
    """mask: (B, T), pred and target: (B, T, D)"""
    mask = mask.unsqueeze(-1).to(pred.dtype)
    err = (pred - target).pow(2) * mask
    return err.sum() / (mask.sum() * pred.size(-1)).clamp(min=1.0)


class LinearNorm(nn.Module):
    def __init__(self, in_dim, out_dim, bias=True, w_init_gain="linear"):
        super(LinearNorm, self).__init__()
        self.linear_layer = nn.Linear(in_dim, out_dim, bias=bias)
        nn.init.xavier_uniform_(self.linear_layer.weight, gain=nn.init.calculate_gain(w_init_gain))

    def forward(self, x):
        return self.linear_layer(x)


class ConvNorm(nn.Module):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size=1,
        stride=1,
        padding=None,
        dilation=1,
        bias=True,
        w_init_gain="linear",
    ):
        super(ConvNorm, self).__init__()
        if padding is None:
            assert kernel_size % 2 == 1
            padding = int(dilation * (kernel_size - 1) / 2)
        self.conv = nn.Conv1d(
            in_channels,
            out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            bias=bias,
        )
        nn.init.xavier_uniform_(self.conv.weight, gain=nn.init.calculate_gain(w_init_gain))

    def forward(self, signal):
        return self.conv(signal)


class SpeakerEncoder(nn.Module):
    """d-vector: LSTM, last valid frame, projection, L2 normalisation."""

    def __init__(self, hp):
        super(SpeakerEncoder, self).__init__()
        self.lstm = nn.LSTM(hp.n_mels, hp.spk_hidden, num_layers=hp.spk_layers, batch_first=True)
        self.embedding = nn.Linear(hp.spk_hidden, hp.dim_emb)
        self.classifier = nn.Linear(hp.dim_emb, hp.n_speakers, bias=False)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, mel, lengths):
        self.lstm.flatten_parameters()
        out, _ = self.lstm(mel)
        index = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, out.size(2))
        last = out.gather(1, index).squeeze(1)
        emb = self.embedding(last)
        return emb.div(emb.norm(p=2, dim=-1, keepdim=True) + 1e-8)

    def logits(self, emb):
        weight = F.normalize(self.classifier.weight, dim=-1)
        return self.scale * F.linear(emb, weight)


class ContentEncoder(nn.Module):
    def __init__(self, hp):
        super(ContentEncoder, self).__init__()
        self.dim_neck = hp.dim_neck
        self.freq = hp.freq

        convolutions = []
        for i in range(3):
            conv_layer = nn.Sequential(
                ConvNorm(
                    hp.n_mels + hp.dim_emb if i == 0 else hp.dim_enc,
                    hp.dim_enc,
                    kernel_size=5,
                    w_init_gain="relu",
                ),
                nn.BatchNorm1d(hp.dim_enc),
            )
            convolutions.append(conv_layer)
        self.convolutions = nn.ModuleList(convolutions)
        self.lstm = nn.LSTM(hp.dim_enc, hp.dim_neck, 2, batch_first=True, bidirectional=True)

    def forward(self, x, c_org):
        # x: (B, T, n_mels), c_org: (B, dim_emb)
        x = x.transpose(2, 1)
        c_org = c_org.unsqueeze(-1).expand(-1, -1, x.size(-1))
        x = torch.cat((x, c_org), dim=1)
        for conv in self.convolutions:
            x = F.relu(conv(x))
        x = x.transpose(1, 2)

        self.lstm.flatten_parameters()
        outputs, _ = self.lstm(x)
        out_forward = outputs[:, :, : self.dim_neck]
        out_backward = outputs[:, :, self.dim_neck :]

        codes = []
        for i in range(0, outputs.size(1), self.freq):
            codes.append(
                torch.cat((out_forward[:, i + self.freq - 1, :], out_backward[:, i, :]), dim=-1)
            )
        return codes


class Decoder(nn.Module):
    def __init__(self, hp):
        super(Decoder, self).__init__()
        self.lstm1 = nn.LSTM(hp.dim_neck * 2 + hp.dim_emb, hp.dim_pre, 1, batch_first=True)
        convolutions = []
        for _ in range(3):
            convolutions.append(
                nn.Sequential(
                    ConvNorm(hp.dim_pre, hp.dim_pre, kernel_size=5, w_init_gain="relu"),
                    nn.BatchNorm1d(hp.dim_pre),
                )
            )
        self.convolutions = nn.ModuleList(convolutions)
        self.lstm2 = nn.LSTM(hp.dim_pre, hp.dim_enc * 2, hp.dec_layers, batch_first=True)
        self.linear_projection = LinearNorm(hp.dim_enc * 2, hp.n_mels)

    def forward(self, x):
        x, _ = self.lstm1(x)
        x = x.transpose(1, 2)
        for conv in self.convolutions:
            x = F.relu(conv(x))
        x = x.transpose(1, 2)
        outputs, _ = self.lstm2(x)
        return self.linear_projection(outputs)


class Postnet(nn.Module):
    """Five 1-d convolutions, as in Tacotron 2."""

    def __init__(self, hp):
        super(Postnet, self).__init__()
        self.dropout = hp.dropout
        self.convolutions = nn.ModuleList()
        for i in range(hp.postnet_layers):
            last = i == hp.postnet_layers - 1
            self.convolutions.append(
                nn.Sequential(
                    ConvNorm(
                        hp.n_mels if i == 0 else hp.postnet_dim,
                        hp.n_mels if last else hp.postnet_dim,
                        kernel_size=5,
                        w_init_gain="linear" if last else "tanh",
                    ),
                    nn.BatchNorm1d(hp.n_mels if last else hp.postnet_dim),
                )
            )

    def forward(self, x):
        for i in range(len(self.convolutions) - 1):
            x = torch.tanh(self.convolutions[i](x))
            x = F.dropout(x, self.dropout, self.training)
        x = self.convolutions[-1](x)
        return x


class Generator(nn.Module):
    def __init__(self, hp):
        super(Generator, self).__init__()
        self.hp = hp
        self.speaker_encoder = SpeakerEncoder(hp)
        self.encoder = ContentEncoder(hp)
        self.decoder = Decoder(hp)
        self.postnet = Postnet(hp)
        self.register_buffer("mel_mean", torch.zeros(hp.n_mels))
        self.register_buffer("mel_std", torch.ones(hp.n_mels))

    def set_stats(self, mean, std):
        self.mel_mean.copy_(torch.as_tensor(mean))
        self.mel_std.copy_(torch.as_tensor(std))

    def pad_to_freq(self, mel):
        pad = -mel.size(1) % self.hp.freq
        if pad > 0:
            mel = F.pad(mel, (0, 0, 0, pad), "constant", 0)
        return mel, pad

    def decode(self, codes, c_trg, n_frames):
        tmp = []
        for code in codes:
            tmp.append(code.unsqueeze(1).expand(-1, int(n_frames / len(codes)), -1))
        code_exp = torch.cat(tmp, dim=1)
        encoder_outputs = torch.cat((code_exp, c_trg.unsqueeze(1).expand(-1, n_frames, -1)), dim=-1)
        mel_outputs = self.decoder(encoder_outputs)
        mel_outputs_postnet = self.postnet(mel_outputs.transpose(2, 1))
        mel_outputs_postnet = mel_outputs + mel_outputs_postnet.transpose(2, 1)
        return mel_outputs, mel_outputs_postnet

    @torch.no_grad()
    def convert(self, mel, lengths, ref_mel, ref_lengths):
        mel = (mel - self.mel_mean) / self.mel_std
        ref_mel = (ref_mel - self.mel_mean) / self.mel_std
        c_org = self.speaker_encoder(mel, lengths)
        c_trg = self.speaker_encoder(ref_mel, ref_lengths)
        padded, _ = self.pad_to_freq(mel)
        codes = self.encoder(padded, c_org)
        _, out = self.decode(codes, c_trg, padded.size(1))
        return out[:, : mel.size(1)] * self.mel_std + self.mel_mean

    def forward(self, mel, lengths, ref_mel, ref_lengths, speaker_ids):
        mel = (mel - self.mel_mean) / self.mel_std
        ref_mel = (ref_mel - self.mel_mean) / self.mel_std
        mask = sequence_mask(lengths, mel.size(1))
        mel = mel.masked_fill(~mask.unsqueeze(-1), 0.0)

        c_org = self.speaker_encoder(ref_mel, ref_lengths)
        padded, pad = self.pad_to_freq(mel)
        codes = self.encoder(padded, c_org)
        mel_out, mel_post = self.decode(codes, c_org, padded.size(1))

        # content loss: encode the reconstruction once more
        codes_rec = torch.cat(self.encoder(mel_post, c_org), dim=-1)
        codes_cat = torch.cat(codes, dim=-1)
        if pad > 0:
            mel_out, mel_post = mel_out[:, :-pad], mel_post[:, :-pad]

        logits = self.speaker_encoder.logits(c_org)
        losses = {
            "id": masked_mse(mel_out, mel, mask),
            "id_psnt": masked_mse(mel_post, mel, mask),
            "cd": F.l1_loss(codes_rec, codes_cat.detach()),
            "spk": F.cross_entropy(logits, speaker_ids),
        }
        loss = (
            self.hp.lambda_id * (losses["id"] + losses["id_psnt"])
            + self.hp.lambda_cd * losses["cd"]
            + self.hp.lambda_spk * losses["spk"]
        )
        acc = (logits.argmax(dim=-1) == speaker_ids).float().mean()
        return {"loss": loss, "mel": mel_post, "codes": codes_cat, "spk_acc": acc, **losses}
