"""
Few-shot image classification with a (deep) relation network.

Episodes are N-way K-shot: forward receives the support and the query images with the labels
of the episode and returns relation scores and the training loss.
"""

from __future__ import print_function

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable


def build_parser():
    parser = argparse.ArgumentParser(description="One Shot Visual Recognition")
    parser.add_argument("-f", "--feature_dim", type=int, default=64)
    parser.add_argument("-r", "--relation_dim", type=int, default=8)
    parser.add_argument("-w", "--class_num", type=int, default=5)
    parser.add_argument("-s", "--sample_num_per_class", type=int, default=5)
    parser.add_argument("--image_size", type=int, default=84)
    parser.add_argument("--relation_type", choices=["mse", "softmax"], default="mse")
    parser.add_argument("--drop_block", type=float, default=0.1)
    parser.add_argument("--block_size", type=int, default=3)
    parser.add_argument("--base_classes", type=int, default=64)
    parser.add_argument("--rot_weight", type=float, default=0.5)
    parser.add_argument("--global_weight", type=float, default=0.5)
    return parser


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        if not hasattr(m, "weight"):
            return
        n = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
        m.weight.data.normal_(0, math.sqrt(2.0 / n))
        if m.bias is not None:
            m.bias.data.zero_()
    elif classname.find("BatchNorm") != -1:
        m.weight.data.fill_(1)
        m.bias.data.zero_()
    elif classname.find("Linear") != -1:
        m.weight.data.normal_(0, 0.01)
        if m.bias is not None:
            m.bias.data = torch.ones(m.bias.data.size())


class DropBlock(nn.Module):
    def __init__(self, drop_prob, block_size):
        super(DropBlock, self).__init__()
        self.drop_prob = drop_prob
        self.block_size = block_size

    def forward(self, x):
        if not self.training or self.drop_prob <= 0:
            return x
        gamma = self.drop_prob / (self.block_size**2)
        seeds = (torch.rand(x.shape[0], 1, *x.shape[2:], device=x.device) < gamma).to(x.dtype)
        block = F.max_pool2d(seeds, self.block_size, stride=1, padding=self.block_size // 2)
        keep = 1 - block
        return x * keep * keep.numel() / keep.sum().clamp(min=1)


class ConvBlock(nn.Module):
    def __init__(self, in_planes, out_planes, padding=1, pool=True, negative_slope=0.0):
        super(ConvBlock, self).__init__()
        self.C = nn.Conv2d(in_planes, out_planes, 3, padding=padding, bias=False)
        self.BN = nn.BatchNorm2d(out_planes, momentum=0.1, affine=True)
        self.relu = (
            nn.LeakyReLU(negative_slope, inplace=True) if negative_slope else nn.ReLU(inplace=True)
        )
        self.parametrized_layers = [self.C, self.BN, self.relu]
        if pool:
            self.pool = nn.MaxPool2d(2)
            self.parametrized_layers.append(self.pool)
        self.trunk = nn.Sequential(*self.parametrized_layers)

    def forward(self, x):
        return self.trunk(x)


class SELayer(nn.Module):
    def __init__(self, channel, reduction=4):
        super(SELayer, self).__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channel, channel // reduction, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(channel // reduction, channel, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x):
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


class CNNEncoder(nn.Module):
    """Four blocks; no pooling in the last two, so that the relation module sees a map."""

    def __init__(self, args):
        super(CNNEncoder, self).__init__()
        dim = args.feature_dim
        self.layer1 = ConvBlock(3, dim, padding=1)
        self.layer2 = ConvBlock(dim, dim, padding=1)
        self.layer3 = ConvBlock(dim, dim, padding=1, pool=False, negative_slope=0.1)
        self.layer4 = ConvBlock(dim, dim, padding=1, pool=False, negative_slope=0.1)
        self.se = SELayer(dim)
        self.drop = DropBlock(args.drop_block, args.block_size)

    def forward(self, x):
        out = self.layer1(x)
        out = self.layer2(out)
        out = self.drop(out)
        out = out + self.layer3(out)
        out = self.layer4(out)
        return self.se(out)


class RelationNetwork(nn.Module):
    def __init__(self, args):
        super(RelationNetwork, self).__init__()
        dim = args.feature_dim
        self.loss_type = args.relation_type
        self.layer1 = ConvBlock(dim * 2, dim, padding=1)
        self.layer2 = ConvBlock(dim, dim, padding=1)
        map_size = args.image_size // 4
        for _ in range(2):
            map_size = map_size // 2
        self.fc1 = nn.Linear(dim * map_size * map_size, args.relation_dim)
        self.fc2 = nn.Linear(args.relation_dim, 1)

    def forward(self, x):
        out = self.layer1(x)
        out = self.layer2(out)
        out = out.view(out.size(0), -1)
        out = F.relu(self.fc1(out))
        if self.loss_type == "mse":
            out = torch.sigmoid(self.fc2(out))
        else:
            out = self.fc2(out)
        return out


class DistLinear(nn.Module):
    """Cosine classifier over the base classes (Closer Look at Few-shot)."""

    def __init__(self, indim, outdim, scale_factor=10):
        super(DistLinear, self).__init__()
        self.L = nn.utils.parametrizations.weight_norm(nn.Linear(indim, outdim, bias=False), dim=0)
        self.scale_factor = scale_factor

    def forward(self, x):
        x_norm = torch.norm(x, p=2, dim=1).unsqueeze(1).expand_as(x)
        x_normalized = x.div(x_norm + 0.00001)
        return self.scale_factor * self.L(x_normalized)


class FewShotRelationModel(nn.Module):
    def __init__(self, args):
        super(FewShotRelationModel, self).__init__()
        self.args = args
        self.n_way = args.class_num
        self.n_support = args.sample_num_per_class
        self.feature_encoder = CNNEncoder(args)
        self.relation_network = RelationNetwork(args)
        self.rot_head = nn.Linear(args.feature_dim, 4)
        self.global_classifier = DistLinear(args.feature_dim, args.base_classes)

        self.feature_encoder.apply(weights_init)
        self.relation_network.apply(weights_init)

        if args.relation_type == "mse":
            self.loss_fn = nn.MSELoss()
        else:
            self.loss_fn = nn.CrossEntropyLoss()

    def sort_support(self, support_x, support_y):
        """Groups the support set by class, since the loader shuffles it."""
        order = torch.argsort(support_y, stable=True)
        return support_x[order], support_y[order]

    def prototypes(self, features):
        n, c, h, w = features.size()
        features = features.view(self.n_way, self.n_support, c, h, w)
        return torch.sum(features, 1).squeeze(1) if self.n_support == 1 else features.mean(1)

    def relation_scores(self, z_proto, z_query):
        n_query = z_query.size(0)
        z_proto_ext = z_proto.unsqueeze(0).repeat(n_query, 1, 1, 1, 1)
        z_query_ext = z_query.unsqueeze(0).repeat(self.n_way, 1, 1, 1, 1)
        z_query_ext = torch.transpose(z_query_ext, 0, 1)
        relation_pairs = torch.cat((z_proto_ext, z_query_ext), 2)
        extend_final_feat_dim = list(z_proto.size()[1:])
        extend_final_feat_dim[0] *= 2
        relation_pairs = relation_pairs.reshape(-1, *extend_final_feat_dim)
        return self.relation_network(relation_pairs).view(-1, self.n_way)

    def relation_loss(self, scores, query_y):
        if self.args.relation_type == "mse":
            one_hot_labels = Variable(
                torch.zeros(query_y.size(0), self.n_way)
                .to(scores)
                .scatter_(1, query_y.view(-1, 1), 1)
            )
            return self.loss_fn(scores, one_hot_labels)
        return self.loss_fn(scores, query_y)

    def rotation_loss(self, query_x):
        x_rot, y_rot = [], []
        for k in range(4):
            x_rot.append(torch.rot90(query_x, k, dims=[2, 3]))
            y_rot.append(torch.full((query_x.size(0),), k, dtype=torch.long, device=query_x.device))
        feat = self.feature_encoder(torch.cat(x_rot)).mean(dim=(-2, -1))
        logits = self.rot_head(feat)
        return F.cross_entropy(logits, torch.cat(y_rot), label_smoothing=0.1), logits

    def correct(self, scores, query_y):
        _, topk_labels = scores.data.topk(1, 1, True, True)
        return topk_labels[:, 0].eq(query_y).sum()

    def forward(self, support_x, support_y, query_x, query_y, global_y=None):
        """
        support_x: (n_way * n_support, 3, H, W), labels 0 ... n_way - 1 in any order
        query_x: (n_query, 3, H, W)
        global_y: labels of the queries among the base classes
        """
        support_x, support_y = self.sort_support(support_x, support_y)
        z_all = self.feature_encoder(torch.cat([support_x, query_x], dim=0))
        z_support, z_query = torch.split(z_all, [support_x.size(0), query_x.size(0)])
        z_proto = self.prototypes(z_support)

        scores = self.relation_scores(z_proto, z_query)
        loss = self.relation_loss(scores, query_y)
        stats = {"relation": loss}
        if self.args.rot_weight > 0:
            loss_rot, rot_logits = self.rotation_loss(query_x)
            loss = loss + self.args.rot_weight * loss_rot
            stats.update(rotation=loss_rot, rot_logits=rot_logits)
        if global_y is not None:
            pooled = F.adaptive_avg_pool2d(z_query, 1).flatten(1)
            loss_global = F.cross_entropy(self.global_classifier(pooled), global_y)
            loss = loss + self.args.global_weight * loss_global
            stats["global"] = loss_global
        stats["correct"] = self.correct(scores, query_y)
        return scores, loss, stats
