# TCFormer: lifting 2D keypoint sequences to 3D human pose with strided temporal convolutions
# and a spatial / temporal transformer (Human3.6M skeleton, 17 joints).
import argparse
import math
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

H36M_PARENTS = [-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 9, 8, 11, 12, 8, 14, 15]
H36M_LEFT = [4, 5, 6, 11, 12, 13]
H36M_RIGHT = [1, 2, 3, 14, 15, 16]


def get_parser():
    parser = argparse.ArgumentParser(description="TCFormer training")
    parser.add_argument("--n_joints", type=int, default=17)
    parser.add_argument("--frames", type=int, default=81)
    parser.add_argument("--in_chans", type=int, default=2)
    parser.add_argument("--joint_dim", type=int, default=32)
    parser.add_argument("--channel", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--mlp_ratio", type=float, default=2.0)
    parser.add_argument("--filter_widths", type=str, default="3,3,3")
    parser.add_argument("--dropout", type=float, default=0.25)
    parser.add_argument("--drop_path", type=float, default=0.1)
    parser.add_argument("--bn_momentum", type=float, default=0.1)
    parser.add_argument("--lambda_seq", type=float, default=1.0)
    parser.add_argument("--lambda_vel", type=float, default=2.0)
    parser.add_argument("--lambda_bone", type=float, default=0.1)
    parser.add_argument("--lambda_sym", type=float, default=0.01)
    parser.add_argument("--no_flip_test", dest="flip_test", action="store_false")
    return parser


def get_args(argv=None, **overrides):
    args = get_parser().parse_args(argv or [])
    for k, v in overrides.items():
        assert hasattr(args, k), "unknown option %s" % k
        setattr(args, k, v)
    return args


def skeleton_adjacency(parents):
    n = len(parents)
    adj = np.eye(n)
    for child, parent in enumerate(parents):
        if parent >= 0:
            adj[child, parent] = adj[parent, child] = 1
    d = adj.sum(1) ** -0.5
    return torch.tensor(d[:, None] * adj * d[None, :], dtype=torch.float)


def hop_distance(adj, max_hop=4):
    a = (adj > 0).float()
    dist = torch.full_like(a, max_hop).long()
    reach = torch.eye(len(a))
    for hop in range(max_hop):
        dist = torch.where((reach > 0) & (dist == max_hop), torch.full_like(dist, hop), dist)
        reach = reach @ a
    return dist


def drop_path(x, drop_prob=0.0, training=False):
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
    return x.div(keep_prob) * random_tensor.floor_()


class DropPath(nn.Module):
    def __init__(self, drop_prob=None):
        super(DropPath, self).__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training)


class Mlp(nn.Module):
    def __init__(
        self, in_features, hidden_features=None, out_features=None, act_layer=nn.GELU, drop=0.0
    ):
        super().__init__()
        out_features = out_features or in_features
        hidden_features = hidden_features or in_features
        self.fc1 = nn.Linear(in_features, hidden_features)
        self.act = act_layer()
        self.fc2 = nn.Linear(hidden_features, out_features)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class Attention(nn.Module):
    def __init__(self, dim, num_heads=8, qkv_bias=True, drop=0.0, num_hops=0):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        self.attn_drop, self.proj_drop = nn.Dropout(drop), nn.Dropout(drop)
        self.hop_bias = nn.Parameter(torch.zeros(num_heads, num_hops)) if num_hops > 0 else None

    def forward(self, x, hops=None, mask=None):
        B, N, C = x.shape
        qkv = (
            self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        )
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale
        if self.hop_bias is not None:
            attn = attn + self.hop_bias[:, hops].unsqueeze(0)
        if mask is not None:
            attn = attn.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        attn = self.attn_drop(attn.softmax(dim=-1))
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj_drop(self.proj(x))


class Block(nn.Module):
    def __init__(
        self, dim, num_heads, mlp_ratio=4.0, drop=0.0, dpr=0.0, norm_layer=nn.LayerNorm, num_hops=0
    ):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = Attention(dim, num_heads, drop=drop, num_hops=num_hops)
        self.drop_path = DropPath(dpr) if dpr > 0.0 else nn.Identity()
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), drop=drop)

    def forward(self, x, hops=None, mask=None):
        x = x + self.drop_path(self.attn(self.norm1(x), hops, mask))
        x = x + self.drop_path(self.mlp(self.norm2(x)))
        return x


class GraphConv(nn.Module):
    """Chebyshev-like graph convolution with a learnable edge weighting."""

    def __init__(self, in_features, out_features, adj):
        super().__init__()
        self.register_buffer("adj", adj)
        self.M = nn.Parameter(torch.ones_like(adj))
        self.W = nn.Parameter(torch.zeros(2, in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        stdv = 1.0 / math.sqrt(out_features)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, x):
        A = self.adj * self.M
        A = (A.t() + A) / 2
        E = torch.eye(A.size(0), dtype=A.dtype, device=A.device)
        h0, h1 = torch.matmul(x, self.W[0]), torch.matmul(x, self.W[1])
        return torch.matmul(A * E, h0) + torch.matmul(A * (1 - E), h1) + self.bias


class StridedTemporalModel(nn.Module):
    """Dilation-free temporal convolutions: each block reduces the frames by its filter width."""

    def __init__(self, channels, filter_widths, dropout, momentum):
        super().__init__()
        self.pad = [w // 2 for w in filter_widths]
        self.filter_widths = filter_widths
        convs, bns = [], []
        for w in filter_widths:
            convs.append(nn.Conv1d(channels, channels, w, stride=w, bias=False))
            bns.append(nn.BatchNorm1d(channels, momentum=momentum))
            convs.append(nn.Conv1d(channels, channels, 1, bias=False))
            bns.append(nn.BatchNorm1d(channels, momentum=momentum))
        self.layers_conv, self.layers_bn = nn.ModuleList(convs), nn.ModuleList(bns)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(dropout)

    def set_bn_momentum(self, momentum):
        for bn in self.layers_bn:
            bn.momentum = momentum

    def forward(self, x):
        for i, w in enumerate(self.filter_widths):
            res = x[:, :, self.pad[i] :: w]
            x = self.drop(self.relu(self.layers_bn[2 * i](self.layers_conv[2 * i](x))))
            x = self.drop(self.relu(self.layers_bn[2 * i + 1](self.layers_conv[2 * i + 1](x))))
            x = res + x
        return x


def mpjpe(predicted, target, weight=None):
    assert predicted.shape == target.shape
    err = torch.norm(predicted - target, dim=-1)
    if weight is None:
        return err.mean()
    return (err * weight).sum() / weight.expand_as(err).sum().clamp(min=1)


def mean_velocity_error(predicted, target, valid):
    v_p, v_t = predicted[:, 1:] - predicted[:, :-1], target[:, 1:] - target[:, :-1]
    both = valid[:, 1:] * valid[:, :-1]
    return mpjpe(v_p, v_t, both.unsqueeze(-1))


class TCFormer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        J, C = args.n_joints, args.channel
        widths = [int(w) for w in args.filter_widths.split(",")]
        assert np.prod(widths) == args.frames, "the filter widths must cover all frames"
        norm_layer = partial(nn.LayerNorm, eps=1e-6)
        adj = skeleton_adjacency(H36M_PARENTS[:J])
        self.register_buffer("hops", hop_distance(adj), persistent=False)
        dpr = [x.item() for x in torch.linspace(0, args.drop_path, args.depth)]

        self.joint_embed = GraphConv(args.in_chans + 1, args.joint_dim, adj)
        self.spatial_pos_embed = nn.Parameter(torch.zeros(1, J, args.joint_dim))
        self.temporal_pos_embed = nn.Parameter(torch.zeros(1, args.frames, C))
        self.spatial_blocks = nn.ModuleList(
            [
                Block(
                    args.joint_dim,
                    args.heads,
                    args.mlp_ratio,
                    dpr=dpr[i],
                    norm_layer=norm_layer,
                    num_hops=5,
                )
                for i in range(args.depth)
            ]
        )
        self.spatial_norm = norm_layer(args.joint_dim)
        self.expand = nn.Sequential(
            nn.Conv1d(J * args.joint_dim, C, kernel_size=1),
            nn.BatchNorm1d(C, momentum=args.bn_momentum),
            nn.ReLU(True),
            nn.Dropout(args.dropout),
        )
        self.blocks = nn.ModuleList(
            [
                Block(C, args.heads, args.mlp_ratio, dpr=dpr[i], norm_layer=norm_layer)
                for i in range(args.depth)
            ]
        )
        self.temporal_norm = norm_layer(C)
        self.tcn = StridedTemporalModel(C, widths, args.dropout, args.bn_momentum)
        self.fcn_seq = nn.Conv1d(C, 3 * J, kernel_size=1)
        self.fcn_single = nn.Conv1d(C, 3 * J, kernel_size=1)
        self.apply(self._init_weights)
        nn.init.trunc_normal_(self.spatial_pos_embed, std=0.02)
        nn.init.trunc_normal_(self.temporal_pos_embed, std=0.02)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0)
        elif isinstance(m, nn.Conv1d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    @torch.no_grad()
    def flip(self, pose):
        pose = pose.clone()
        pose[..., 0] *= -1
        pose[:, :, H36M_LEFT + H36M_RIGHT] = pose[:, :, H36M_RIGHT + H36M_LEFT]
        return pose

    def lift(self, x, valid):
        B, T, J, _ = x.shape
        h = self.joint_embed(x.view(B * T, J, -1)) + self.spatial_pos_embed
        for blk in self.spatial_blocks:
            h = blk(h, hops=self.hops)
        h = self.spatial_norm(h).view(B, T, -1).permute(0, 2, 1).contiguous()
        h = self.expand(h).permute(0, 2, 1) + self.temporal_pos_embed[:, :T]
        for blk in self.blocks:
            h = blk(h, mask=valid)
        h = (self.temporal_norm(h) * valid.unsqueeze(-1)).transpose(1, 2)
        seq = self.fcn_seq(h).transpose(1, 2).reshape(B, T, J, 3)
        single = self.fcn_single(self.tcn(h)).transpose(1, 2).reshape(B, -1, J, 3)
        return seq, single

    def bone_lengths(self, pose):
        child = torch.arange(1, self.args.n_joints, device=pose.device)
        parent = torch.tensor(H36M_PARENTS[1 : self.args.n_joints], device=pose.device)
        return (pose[..., child, :] - pose[..., parent, :]).norm(dim=-1)

    def losses(self, seq, single, target, valid):
        args = self.args
        target = target - target[:, :, :1]
        mid = args.frames // 2
        bones, bones_gt = self.bone_lengths(seq), self.bone_lengths(target)
        left, right = [j - 1 for j in H36M_LEFT], [j - 1 for j in H36M_RIGHT]
        per_bone = F.smooth_l1_loss(bones, bones_gt, reduction="none", beta=0.1) * valid.unsqueeze(
            -1
        )
        loss = {
            "single": mpjpe(single, target[:, mid : mid + 1]),
            "seq": args.lambda_seq * mpjpe(seq, target, valid.unsqueeze(-1)),
            "vel": args.lambda_vel * mean_velocity_error(seq, target, valid),
            "bone": args.lambda_bone * per_bone.sum() / valid.sum(),
            "sym": args.lambda_sym * (bones[..., left] - bones[..., right]).abs().mean(),
        }
        loss["total"] = sum(loss.values())
        return loss

    def forward(self, inputs_2d, confidence, valid, inputs_3d=None):
        valid = valid.to(inputs_2d.dtype)
        x = torch.cat((inputs_2d, confidence.unsqueeze(-1)), dim=-1)
        seq, single = self.lift(x, valid)
        if not self.training and self.args.flip_test:
            seq_f, single_f = self.lift(self.flip(x), valid)
            for out, flipped in ((seq, seq_f), (single, single_f)):
                flipped[..., 0] *= -1
                flipped[:, :, H36M_LEFT + H36M_RIGHT] = flipped[:, :, H36M_RIGHT + H36M_LEFT]
            seq, single = (seq + seq_f) / 2, (single + single_f) / 2
        if inputs_3d is None:
            return single
        return single, seq, self.losses(seq, single, inputs_3d, valid)
