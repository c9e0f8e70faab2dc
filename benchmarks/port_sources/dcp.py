#!/usr/bin/env python
# -*- coding: utf-8 -*-
# Iterative Deep Closest Point: DGCNN features, co-contextual transformer, pointer matching, differentiable SVD.

import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def default_args(**kwargs):
    args = argparse.Namespace(
        emb_nn="dgcnn",
        pointer="transformer",
        head="svd",
        emb_dims=512,
        k=20,
        n_blocks=1,
        n_heads=4,
        ff_dims=1024,
        dropout=0.0,
        n_iters=3,
        discount_factor=0.9,
        n_keypoints=512,
        temp_factor=100.0,
        cycle=False,
        cycle_consistency_loss=0.1,
        feature_alignment_loss=0.1,
    )
    for key, value in kwargs.items():
        setattr(args, key, value)
    return args


def clones(module, N):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def attention(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1).contiguous()) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = F.softmax(scores, dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


def pairwise_distance(src, tgt):
    inner = -2 * torch.matmul(src.transpose(2, 1).contiguous(), tgt)
    xx = torch.sum(src**2, dim=1, keepdim=True)
    yy = torch.sum(tgt**2, dim=1, keepdim=True)
    return xx.transpose(2, 1).contiguous() + inner + yy


def knn(x, k):
    distance = -pairwise_distance(x, x)
    return distance.topk(k=k, dim=-1)[1]  # (batch_size, num_points, k)


def get_graph_feature(x, k=20):
    idx = knn(x, k=k)
    batch_size, num_points, _ = idx.size()
    idx_base = torch.arange(0, batch_size, device=x.device).view(-1, 1, 1) * num_points
    idx = (idx + idx_base).view(-1)
    _, num_dims, _ = x.size()
    x = x.transpose(2, 1).contiguous()
    feature = x.view(batch_size * num_points, -1)[idx, :]
    feature = feature.view(batch_size, num_points, k, num_dims)
    x = x.view(batch_size, num_points, 1, num_dims).repeat(1, 1, k, 1)
    return torch.cat((feature - x, x), dim=3).permute(0, 3, 1, 2)


def transform_point_cloud(point_cloud, rotation, translation):
    return torch.matmul(rotation, point_cloud) + translation.unsqueeze(2)


def quat2mat(quat):
    x, y, z, w = quat[:, 0], quat[:, 1], quat[:, 2], quat[:, 3]
    B = quat.size(0)
    w2, x2, y2, z2 = w.pow(2), x.pow(2), y.pow(2), z.pow(2)
    wx, wy, wz = w * x, w * y, w * z
    xy, xz, yz = x * y, x * z, y * z
    return torch.stack(
        [
            w2 + x2 - y2 - z2,
            2 * xy - 2 * wz,
            2 * wy + 2 * xz,
            2 * wz + 2 * xy,
            w2 - x2 + y2 - z2,
            2 * yz - 2 * wx,
            2 * xz - 2 * wy,
            2 * wx + 2 * yz,
            w2 - x2 - y2 + z2,
        ],
        dim=1,
    ).reshape(B, 3, 3)


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super(LayerNorm, self).__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model, dropout=0.1):
        super(MultiHeadedAttention, self).__init__()
        assert d_model % h == 0
        self.d_k = d_model // h
        self.h = h
        self.linears = clones(nn.Linear(d_model, d_model), 4)
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        nbatches = query.size(0)
        query, key, value = [
            l(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2).contiguous()
            for l, x in zip(self.linears, (query, key, value))
        ]
        x, self.attn = attention(query, key, value, mask=mask, dropout=self.dropout)
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return self.linears[-1](x)


class SublayerConnection(nn.Module):
    def __init__(self, size):
        super(SublayerConnection, self).__init__()
        self.norm = LayerNorm(size)

    def forward(self, x, sublayer):
        return x + sublayer(self.norm(x))


class CoAttentionLayer(nn.Module):
    """Self-attention, attention to the other cloud, feed-forward."""

    def __init__(self, size, attn, feed_forward):
        super(CoAttentionLayer, self).__init__()
        self.self_attn, self.cross_attn = attn, copy.deepcopy(attn)
        self.feed_forward = feed_forward
        self.sublayer = clones(SublayerConnection(size), 3)

    def forward(self, x, other):
        x = self.sublayer[0](x, lambda y: self.self_attn(y, y, y))
        x = self.sublayer[1](x, lambda y: self.cross_attn(y, other, other))
        return self.sublayer[2](x, self.feed_forward)


class Transformer(nn.Module):
    def __init__(self, args):
        super(Transformer, self).__init__()
        ff = nn.Sequential(
            nn.Linear(args.emb_dims, args.ff_dims),
            nn.LeakyReLU(0.2),
            nn.Linear(args.ff_dims, args.emb_dims),
        )
        layer = CoAttentionLayer(
            args.emb_dims, MultiHeadedAttention(args.n_heads, args.emb_dims, args.dropout), ff
        )
        self.layers = clones(layer, args.n_blocks)
        self.norm = LayerNorm(args.emb_dims)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, *input):
        src = input[0].transpose(2, 1).contiguous()
        tgt = input[1].transpose(2, 1).contiguous()
        for layer in self.layers:
            src, tgt = layer(src, tgt), layer(tgt, src)
        return self.norm(src).transpose(2, 1).contiguous(), self.norm(tgt).transpose(
            2, 1
        ).contiguous()


class Identity(nn.Module):
    def forward(self, *input):
        return tuple(torch.zeros_like(x) for x in input)


class DGCNN(nn.Module):
    def __init__(self, emb_dims=512, k=20):
        super(DGCNN, self).__init__()
        self.k = k
        widths = [6, emb_dims // 8, emb_dims // 8, emb_dims // 4, emb_dims // 2]
        for i in range(1, 5):
            setattr(
                self, "conv%d" % i, nn.Conv2d(widths[i - 1], widths[i], kernel_size=1, bias=False)
            )
            setattr(self, "bn%d" % i, nn.BatchNorm2d(widths[i]))
        self.conv5 = nn.Conv2d(sum(widths[1:]), emb_dims, kernel_size=1, bias=False)
        self.bn5 = nn.BatchNorm2d(emb_dims)

    def forward(self, x):
        batch_size, num_dims, num_points = x.size()
        x = get_graph_feature(x, self.k)
        pooled = []
        for i in range(1, 5):
            x = F.leaky_relu(
                getattr(self, "bn%d" % i)(getattr(self, "conv%d" % i)(x)), negative_slope=0.2
            )
            pooled.append(x.max(dim=-1, keepdim=True)[0])
        x = torch.cat(pooled, dim=1)
        return F.leaky_relu(self.bn5(self.conv5(x)), negative_slope=0.2).view(
            batch_size, -1, num_points
        )


class TemperatureNet(nn.Module):
    def __init__(self, emb_dims, temp_factor):
        super(TemperatureNet, self).__init__()
        self.temp_factor = temp_factor
        hidden = emb_dims // 4
        self.nn = nn.Sequential(
            nn.Linear(emb_dims, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
            nn.ReLU(),
        )

    def forward(self, *input):
        src_embedding, tgt_embedding = input[0].mean(dim=2), input[1].mean(dim=2)
        residual = torch.abs(src_embedding - tgt_embedding)
        temperature = torch.clamp(self.nn(residual), 1.0 / self.temp_factor, 1.0 * self.temp_factor)
        return 1.0 / (1.0 + temperature), residual


class MLPHead(nn.Module):
    def __init__(self, args):
        super(MLPHead, self).__init__()
        n = args.emb_dims
        self.nn = nn.Sequential(
            nn.Linear(n * 2, n // 2),
            nn.BatchNorm1d(n // 2),
            nn.ReLU(),
            nn.Linear(n // 2, n // 4),
            nn.ReLU(),
        )
        self.proj_rot = nn.Linear(n // 4, 4)
        self.proj_trans = nn.Linear(n // 4, 3)

    def forward(self, src_embedding, tgt_embedding, src, tgt, temperature):
        embedding = self.nn(torch.cat((src_embedding, tgt_embedding), dim=1).max(dim=-1)[0])
        rotation = self.proj_rot(embedding)
        rotation = rotation / torch.norm(rotation, p=2, dim=1, keepdim=True)
        return quat2mat(rotation), self.proj_trans(embedding), None


class SVDHead(nn.Module):
    def __init__(self, args):
        super(SVDHead, self).__init__()
        self.reflect = nn.Parameter(torch.eye(3), requires_grad=False)
        self.reflect[2, 2] = -1

    def forward(self, src_embedding, tgt_embedding, src, tgt, temperature):
        batch_size = src.size(0)
        d_k = src_embedding.size(1)
        scores = torch.matmul(
            src_embedding.transpose(2, 1).contiguous(), tgt_embedding
        ) / math.sqrt(d_k)
        scores = torch.softmax(scores / temperature.view(batch_size, 1, 1), dim=2)
        src_corr = torch.matmul(tgt, scores.transpose(2, 1).contiguous())

        src_centered = src - src.mean(dim=2, keepdim=True)
        src_corr_centered = src_corr - src_corr.mean(dim=2, keepdim=True)
        H = torch.matmul(src_centered, src_corr_centered.transpose(2, 1).contiguous())

        R = []
        for i in range(batch_size):
            u, s, v = torch.svd(H[i])
            r = torch.matmul(v, u.transpose(1, 0).contiguous())
            r_det = torch.det(r)
            if r_det < 0:
                v = torch.matmul(v, self.reflect)
                r = torch.matmul(v, u.transpose(1, 0).contiguous())
            R.append(r)
        R = torch.stack(R, dim=0)
        t = torch.matmul(-R, src.mean(dim=2, keepdim=True)) + src_corr.mean(dim=2, keepdim=True)
        return R, t.view(batch_size, 3), scores


class DCP(nn.Module):
    def __init__(self, args):
        super(DCP, self).__init__()
        self.args = args
        self.emb_nn = DGCNN(emb_dims=args.emb_dims, k=args.k)
        if args.pointer == "identity":
            self.pointer = Identity()
        elif args.pointer == "transformer":
            self.pointer = Transformer(args=args)
        else:
            raise Exception("Not implemented")
        self.temp_net = TemperatureNet(args.emb_dims, args.temp_factor)
        self.head = {"mlp": MLPHead, "svd": SVDHead}[args.head](args=args)

    def select_keypoints(self, points, embedding):
        """The points of largest feature norm; batch-wise gather."""
        k = min(self.args.n_keypoints, points.size(2))
        idx = torch.topk(torch.norm(embedding, dim=1, keepdim=True), k=k, dim=2, sorted=False)[1]
        idx = torch.sort(idx, dim=2)[0]
        return torch.gather(points, 2, idx.expand(-1, 3, -1)), torch.gather(
            embedding, 2, idx.expand(-1, embedding.size(1), -1)
        )

    def predict(self, src, tgt):
        src_embedding, tgt_embedding = self.emb_nn(src), self.emb_nn(tgt)
        src_p, tgt_p = self.pointer(src_embedding, tgt_embedding)
        src_embedding, tgt_embedding = src_embedding + src_p, tgt_embedding + tgt_p
        temperature, residual = self.temp_net(src_embedding, tgt_embedding)
        src, src_embedding = self.select_keypoints(src, src_embedding)
        tgt, tgt_embedding = self.select_keypoints(tgt, tgt_embedding)
        rotation_ab, translation_ab, scores = self.head(
            src_embedding, tgt_embedding, src, tgt, temperature
        )
        if self.args.cycle:
            rotation_ba, translation_ba, _ = self.head(
                tgt_embedding, src_embedding, tgt, src, temperature
            )
        else:
            rotation_ba = rotation_ab.transpose(2, 1).contiguous()
            translation_ba = -torch.matmul(rotation_ba, translation_ab.unsqueeze(2)).squeeze(2)
        return rotation_ab, translation_ab, rotation_ba, translation_ba, residual, scores

    def forward(self, src, tgt, rotation_ab, translation_ab):
        batch_size = src.size(0)
        identity = (
            torch.eye(3, device=src.device, dtype=src.dtype).unsqueeze(0).repeat(batch_size, 1, 1)
        )
        R, t = identity.clone(), torch.zeros(batch_size, 3, device=src.device, dtype=src.dtype)
        rotation_gt, translation_gt = rotation_ab, translation_ab
        moved, total_loss = src, 0.0
        for i in range(self.args.n_iters):
            R_i, t_i, R_back, t_back, residual, scores = self.predict(moved, tgt)
            loss = F.mse_loss(
                torch.matmul(R_i.transpose(2, 1), rotation_gt), identity
            ) + F.mse_loss(t_i, translation_gt)
            if self.args.cycle:
                loss = loss + self.args.cycle_consistency_loss * (
                    F.mse_loss(torch.matmul(R_back, R_i), identity)
                    + torch.mean((torch.matmul(R_back, t_i.unsqueeze(2)).squeeze(2) + t_back) ** 2)
                )
            loss = loss + self.args.feature_alignment_loss * torch.mean(residual**2)
            total_loss = total_loss + loss * self.args.discount_factor**i
            R = torch.matmul(R_i, R)
            t = torch.matmul(R_i, t.unsqueeze(2)).squeeze(2) + t_i
            # what is left to estimate for the next iteration
            moved = transform_point_cloud(moved, R_i, t_i).detach()
            rotation_gt = torch.matmul(rotation_ab, R.transpose(2, 1)).detach()
            translation_gt = (
                translation_ab - torch.matmul(rotation_gt, t.unsqueeze(2)).squeeze(2)
            ).detach()
        return R, t, total_loss
