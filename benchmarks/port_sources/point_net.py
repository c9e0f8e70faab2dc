"""Point clouds: farthest points, neighbours by cdist and topk, gathers, a learnt transform."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def index_points(points, idx):
    B = points.shape[0]
    view_shape = [B] + [1] * (idx.dim() - 1)
    batch = torch.arange(B, dtype=torch.long).to(points.device).view(view_shape).expand_as(idx)
    return points[batch, idx, :]


def farthest(xyz, n):
    B, N, _ = xyz.shape
    picked = torch.zeros(B, n, dtype=torch.long, device=xyz.device)
    distance = torch.ones(B, N, device=xyz.device, dtype=xyz.dtype) * 1e10
    last = torch.zeros(B, dtype=torch.long)
    rows = torch.arange(B)
    for i in range(n):
        picked[:, i] = last
        d = ((xyz - xyz[rows, last, :].view(B, 1, 3)) ** 2).sum(-1)
        mask = d < distance
        distance[mask] = d[mask]
        last = distance.max(-1)[1]
    return picked


class TNet(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(k, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.fc = nn.Linear(16, k * k)
        self.k = k
        nn.init.constant_(self.fc.weight, 0.01)
        nn.init.eye_(self.fc.bias.data.view(k, k))

    def forward(self, x):
        y = torch.max(self.conv(x), 2, keepdim=True)[0].view(-1, 16)
        eye = torch.eye(self.k, requires_grad=True).flatten().view(1, -1).repeat(x.size(0), 1).to(y)
        return torch.baddbmm(
            eye.view(-1, self.k, self.k),
            self.fc(y).view(-1, self.k, self.k),
            torch.eye(self.k).to(y).expand(x.size(0), -1, -1),
        )


class SetAbstraction(nn.Module):
    def __init__(self, n, k, cin, mlp):
        super().__init__()
        self.n, self.k = n, k
        self.convs, self.bns = nn.ModuleList(), nn.ModuleList()
        for cout in mlp:
            self.convs.append(nn.Conv2d(cin, cout, 1))
            self.bns.append(nn.BatchNorm2d(cout))
            cin = cout

    def forward(self, xyz, feats):
        centers = index_points(xyz, farthest(xyz, self.n))
        _, idx = torch.cdist(centers, xyz).topk(self.k, dim=-1, largest=False, sorted=True)
        grouped = index_points(xyz, idx) - centers.unsqueeze(2)
        if feats is not None:
            grouped = torch.cat((grouped, index_points(feats, idx)), -1)
        x = grouped.permute(0, 3, 2, 1)
        for conv, bn in zip(self.convs, self.bns, strict=False):
            x = F.relu(bn(conv(x)), inplace=True)
        return centers, x.amax(2).transpose(1, 2)


class PointNet(nn.Module):
    def __init__(self, n_class=4):
        super().__init__()
        self.tnet = TNet(3)
        self.sa1 = SetAbstraction(8, 4, 3, [8, 16])
        self.sa2 = SetAbstraction(4, 3, 3 + 16, [16])
        self.head = nn.Sequential(
            nn.Linear(16, 16),
            nn.LayerNorm(16),
            nn.GELU(approximate="tanh"),
            nn.Dropout(0.4),
            nn.Linear(16, n_class),
        )

    def forward(self, pts):
        trans = self.tnet(pts.transpose(2, 1))
        xyz = torch.bmm(pts, trans)
        xyz1, f1 = self.sa1(xyz, None)
        _, f2 = self.sa2(xyz1, f1)
        pooled = torch.cat(
            [f2.mean(1, keepdim=True), f2.std(dim=1, keepdim=True, unbiased=False)], 1
        )
        reg = torch.linalg.norm(torch.eye(3).to(trans) - trans @ trans.mT, dim=(1, 2)).mean()
        return F.log_softmax(self.head(pooled.sum(1)), dim=1), reg
