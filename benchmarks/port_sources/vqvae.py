"""A VQ-VAE with a straight-through function of its own and EMA codes."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class Quantize(Function):
    @staticmethod
    def forward(ctx, inputs, codebook):
        with torch.no_grad():
            flat = inputs.reshape(-1, codebook.size(1))
            dist = torch.addmm(
                (codebook**2).sum(dim=1) + torch.sum(flat**2, dim=1, keepdim=True),
                flat,
                codebook.t(),
                alpha=-2.0,
                beta=1.0,
            )
            _, idx = torch.min(dist, dim=1)
            ctx.save_for_backward(idx, codebook)
            ctx.mark_non_differentiable(idx)
            codes = torch.index_select(codebook, dim=0, index=idx)
            return codes.view_as(inputs), idx

    @staticmethod
    def backward(ctx, grad_output, grad_idx):
        grad_inputs, grad_codebook = None, None
        if ctx.needs_input_grad[0]:
            grad_inputs = grad_output.clone()
        if ctx.needs_input_grad[1]:
            idx, codebook = ctx.saved_tensors
            flat = grad_output.contiguous().view(-1, codebook.size(1))
            grad_codebook = torch.zeros_like(codebook)
            grad_codebook.index_add_(0, idx, flat)
        return grad_inputs, grad_codebook


quantize = Quantize.apply


class ResBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.block = nn.Sequential(
            nn.ReLU(True),
            nn.Conv2d(dim, dim, 3, 1, 1),
            nn.BatchNorm2d(dim),
            nn.ReLU(True),
            nn.Conv2d(dim, dim, 1),
            nn.BatchNorm2d(dim),
        )

    def forward(self, x):
        return x + self.block(x)


class VQVAE(nn.Module):
    def __init__(self, cin=3, dim=8, K=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(cin, dim, 4, 2, 1),
            nn.BatchNorm2d(dim),
            nn.ReLU(inplace=True),
            nn.Conv2d(dim, dim, 4, 2, 1),
            ResBlock(dim),
        )
        self.codebook = nn.Embedding(K, dim)
        self.codebook.weight.data.uniform_(-1.0 / K, 1.0 / K)
        self.register_buffer("usage", torch.zeros(K))
        self.decoder = nn.Sequential(
            ResBlock(dim),
            nn.ReLU(True),
            nn.ConvTranspose2d(dim, dim, 4, 2, 1),
            nn.BatchNorm2d(dim),
            nn.ReLU(True),
            nn.ConvTranspose2d(dim, cin, 4, 2, 1, 0, 1),
            nn.Tanh(),
        )

    def forward(self, x):
        z = self.encoder(x).permute(0, 2, 3, 1).contiguous()
        q, idx = quantize(z, self.codebook.weight.detach())
        direct = self.codebook(idx).view_as(z)
        if not torch.is_grad_enabled():
            self.usage.mul_(0.99).add_(
                torch.bincount(idx, minlength=self.usage.numel()), alpha=0.01
            )
        loss_vq = F.mse_loss(direct, z.detach())
        commit = F.mse_loss(z, direct.detach(), reduction="none").mean((1, 2, 3))
        return self.decoder(q.permute(0, 3, 1, 2).contiguous()), loss_vq, commit
