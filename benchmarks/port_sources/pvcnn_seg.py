"""
Point-Voxel CNN for part segmentation (small).

"Point-Voxel CNN for Efficient 3D Deep Learning", NeurIPS 2019, with the CUDA ops rewritten in
plain PyTorch (avg_voxelize / trilinear_devoxelize), plus a PointNet++ set-abstraction branch
(farthest point sampling + ball query) and 3-NN feature propagation.
"""

from typing import List, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function
from einops.layers.torch import Rearrange


class AvgVoxelization(Function):
    @staticmethod
    def forward(ctx, features, coords, resolution):
        """
        :param features: Features of the point cloud, FloatTensor[B, C, N]
        :param coords: Voxelized Coordinates of each point, IntTensor[B, 3, N]
        :param resolution: Voxel resolution
        :return: Voxelized Features, FloatTensor[B, C, R, R, R]
        """
        b, c, n = features.shape
        r3 = resolution**3
        indices = (coords[:, 0] * resolution + coords[:, 1]) * resolution + coords[:, 2]
        counts = features.new_zeros(b, r3)
        counts.scatter_add_(1, indices, torch.ones_like(indices, dtype=features.dtype))
        counts.clamp_(min=1)
        out = features.new_zeros(b, c, r3)
        out.scatter_add_(2, indices.unsqueeze(1).expand(-1, c, -1), features)
        out = out / counts.unsqueeze(1)
        ctx.save_for_backward(indices, counts)
        return out.view(b, c, resolution, resolution, resolution)

    @staticmethod
    def backward(ctx, grad_output):
        b, c = grad_output.shape[:2]
        indices, counts = ctx.saved_tensors
        g = grad_output.contiguous().view(b, c, -1) / counts.unsqueeze(1)
        grad_features = g.gather(2, indices.unsqueeze(1).expand(-1, c, -1))
        return grad_features, None, None


avg_voxelize = AvgVoxelization.apply


def trilinear_devoxelize(grid, coords, r):
    """grid [B,C,R,R,R], continuous coords [B,3,N] in [0, R-1] -> [B,C,N]"""
    b, c = grid.shape[:2]
    flat = grid.reshape(b, c, -1)
    lo = coords.floor().clamp(0, r - 1)
    frac = coords - lo
    lo = lo.long()
    hi = (lo + 1).clamp(max=r - 1)
    out = 0
    for corner in range(8):
        sel = [(corner >> a) & 1 for a in range(3)]
        pos = [hi[:, a] if s else lo[:, a] for a, s in enumerate(sel)]
        w = 1.0
        for a, s in enumerate(sel):
            w = w * (frac[:, a] if s else 1 - frac[:, a])
        idx = (pos[0] * r + pos[1]) * r + pos[2]
        out = out + flat.gather(2, idx.unsqueeze(1).expand(-1, c, -1)) * w.unsqueeze(1)
    return out


def square_distance(src, dst):
    """[B, N, C], [B, M, C] -> [B, N, M]"""
    dist = -2 * torch.matmul(src, dst.permute(0, 2, 1))
    dist += torch.sum(src**2, -1).unsqueeze(-1)
    dist += torch.sum(dst**2, -1).unsqueeze(-2)
    return dist


def index_points(points, idx):
    """points [B, N, C], idx [B, S] or [B, S, K] -> [B, S, (K,) C]"""
    B = points.shape[0]
    view_shape = [B] + [1] * (idx.dim() - 1)
    batch_indices = (
        torch.arange(B, dtype=torch.long, device=points.device).view(view_shape).expand_as(idx)
    )
    return points[batch_indices, idx, :]


def farthest_point_sample(xyz, npoint):
    B, N, _ = xyz.shape
    centroids = torch.zeros(B, npoint, dtype=torch.long, device=xyz.device)
    distance = torch.full((B, N), 1e10, dtype=xyz.dtype, device=xyz.device)
    farthest = torch.zeros(B, dtype=torch.long, device=xyz.device)
    batch_indices = torch.arange(B, dtype=torch.long, device=xyz.device)
    for i in range(npoint):
        centroids[:, i] = farthest
        centroid = xyz[batch_indices, farthest, :].unsqueeze(1)
        dist = torch.sum((xyz - centroid) ** 2, -1)
        mask = dist < distance
        distance[mask] = dist[mask]
        farthest = torch.max(distance, -1)[1]
    return centroids


def query_ball_point(radius, nsample, xyz, new_xyz):
    B, N, _ = xyz.shape
    S = new_xyz.shape[1]
    group_idx = torch.arange(N, dtype=torch.long, device=xyz.device).view(1, 1, N).repeat([B, S, 1])
    group_idx[square_distance(new_xyz, xyz) > radius**2] = N
    group_idx = group_idx.sort(dim=-1)[0][:, :, :nsample]
    # 球内点不足 nsample 个时, 用第一个点补齐
    group_first = group_idx[:, :, :1].repeat([1, 1, nsample])
    mask = group_idx == N
    group_idx[mask] = group_first[mask]
    return group_idx


class SharedMLP(nn.Module):
    def __init__(self, in_channels, out_channels, dim=1):
        super().__init__()
        conv, bn = {1: (nn.Conv1d, nn.BatchNorm1d), 2: (nn.Conv2d, nn.BatchNorm2d)}[dim]
        if not isinstance(out_channels, (list, tuple)):
            out_channels = [out_channels]
        layers = []
        for oc in out_channels:
            layers.extend([conv(in_channels, oc, 1), bn(oc), nn.ReLU(True)])
            in_channels = oc
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs):
        if isinstance(inputs, (list, tuple)):
            return (self.layers(inputs[0]), *inputs[1:])
        return self.layers(inputs)


class SE3d(nn.Module):
    def __init__(self, channel, reduction=4):
        super().__init__()
        self.fc = nn.Sequential(
            nn.AdaptiveAvgPool3d(1),
            nn.Flatten(),
            nn.Linear(channel, channel // reduction, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(channel // reduction, channel, bias=False),
            nn.Sigmoid(),
            Rearrange("b c -> b c 1 1 1"),
        )

    def forward(self, inputs):
        return inputs * self.fc(inputs)


class PVConv(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, resolution, with_se=True):
        super().__init__()
        self.resolution = resolution
        voxel_layers: List[nn.Module] = []
        for cin in (in_channels, out_channels):
            voxel_layers += [
                nn.Conv3d(cin, out_channels, kernel_size, stride=1, padding=kernel_size // 2),
                nn.BatchNorm3d(out_channels, eps=1e-4),
                nn.LeakyReLU(0.1, True),
            ]
        if with_se:
            voxel_layers.append(SE3d(out_channels))
        self.voxel_layers = nn.Sequential(*voxel_layers)
        self.point_features = SharedMLP(in_channels, out_channels)

    def voxel_coords(self, coords):
        coords = coords.detach()
        norm = coords - coords.mean(2, keepdim=True)
        norm = norm / (norm.norm(dim=1, keepdim=True).max(dim=2, keepdim=True).values * 2.0) + 0.5
        norm = torch.clamp(norm * self.resolution, 0, self.resolution - 1)
        return norm, torch.round(norm).to(torch.int64)

    def forward(self, inputs: Tuple[torch.Tensor, torch.Tensor]):
        features, coords = inputs
        norm, vox = self.voxel_coords(coords)
        grid = self.voxel_layers(avg_voxelize(features, vox, self.resolution))
        fused = trilinear_devoxelize(grid, norm, self.resolution) + self.point_features(features)
        return fused, coords


class SetAbstraction(nn.Module):
    def __init__(self, npoint, radius, nsample, in_channels, mlp):
        super().__init__()
        self.npoint, self.radius, self.nsample = npoint, radius, nsample
        self.mlp = SharedMLP(in_channels + 3, mlp, dim=2)

    def forward(self, xyz, feat):
        centers = index_points(xyz, farthest_point_sample(xyz, self.npoint))
        idx = query_ball_point(self.radius, self.nsample, xyz, centers)
        grouped_xyz = (index_points(xyz, idx) - centers.unsqueeze(2)) / self.radius
        grouped = torch.cat([grouped_xyz, index_points(feat, idx)], -1).permute(0, 3, 2, 1)
        return centers, torch.max(self.mlp(grouped), 2)[0].transpose(1, 2)


class PVCNN(nn.Module):
    blocks = ((32, 1, 8), (48, 1, 6), (64, 1, None))

    def __init__(
        self, num_classes, num_shapes, extra_feature_channels=3, sa: Sequence = (16, 0.5, 8)
    ):
        super().__init__()
        self.num_shapes = num_shapes
        layers, in_ch, concat = [], extra_feature_channels + 3, 0
        for oc, num, res in self.blocks:
            for _ in range(num):
                layers.append(SharedMLP(in_ch, oc) if res is None else PVConv(in_ch, oc, 3, res))
                in_ch = oc
                concat += oc
        self.point_layers = nn.ModuleList(layers)
        self.sa = SetAbstraction(*sa, in_ch, [64, 96])
        self.fp = SharedMLP(in_ch + 96, [96, 64])
        self.classifier = nn.Sequential(
            SharedMLP(concat + 64 + 96 + num_shapes, 128),
            nn.Dropout(0.2),
            SharedMLP(128, 64),
            nn.Conv1d(64, num_classes, 1),
        )

    def propagate(self, xyz, centers, feat, center_feat):
        dists, idx = torch.topk(
            square_distance(xyz, centers), 3, dim=-1, largest=False, sorted=True
        )
        recip = 1.0 / (dists.clamp(min=0) + 1e-8)
        weight = recip / torch.sum(recip, dim=2, keepdim=True)
        interp = torch.sum(index_points(center_feat, idx) * weight[..., None], dim=2)
        return self.fp(torch.cat([feat, interp], -1).transpose(1, 2))

    def forward(self, points, shape_id):
        """points [B, 3 + extra, N]; shape_id [B]"""
        coords = points[:, :3, :]
        n = points.size(-1)
        one_hot = F.one_hot(shape_id, self.num_shapes).to(points.dtype)
        out = [one_hot.unsqueeze(-1).repeat(1, 1, n)]
        feat = points
        for layer in self.point_layers:
            feat, _ = layer((feat, coords))
            out.append(feat)
        xyz, f = coords.transpose(1, 2).contiguous(), feat.transpose(1, 2)
        centers, center_feat = self.sa(xyz, f)
        out.append(self.propagate(xyz, centers, f, center_feat))
        out.append(center_feat.max(dim=1, keepdim=True)[0].transpose(1, 2).expand(-1, -1, n))
        return self.classifier(torch.cat(out, dim=1))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    pts = torch.from_numpy(rng.standard_normal((2, 6, 64))).float()
    net = PVCNN(10, 4)
    print(net(pts, torch.tensor([0, 3])).shape, sum(p.numel() for p in net.parameters()))
