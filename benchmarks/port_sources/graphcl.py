"""GraphDuo: self-supervised graph representations from augmented views and a momentum encoder.

Node-level bootstrapping (BGRL), graph-level NT-Xent with in-batch negatives (GraphCL), local-global mutual
information (InfoGraph), and an online linear probe on frozen features.  No dependency on torch_geometric.
"""

import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def arg_parse(argv=()):
    parser = argparse.ArgumentParser(description="GraphDuo arguments")
    parser.add_argument("--num-features", type=int, default=7)
    parser.add_argument("--num-edge-types", type=int, default=4)
    parser.add_argument("--num-classes", type=int, default=2)
    parser.add_argument("--hidden-dim", type=int, default=32)
    parser.add_argument("--num-gc-layers", type=int, default=3)
    parser.add_argument("--proj-dim", type=int, default=64)
    parser.add_argument("--aug1", type=str, default="edge,feat")
    parser.add_argument("--aug2", type=str, default="node,feat")
    parser.add_argument("--drop-edge", type=float, default=0.2)
    parser.add_argument("--drop-node", type=float, default=0.1)
    parser.add_argument("--drop-feat", type=float, default=0.2)
    parser.add_argument("--tau", type=float, default=0.2)
    parser.add_argument("--momentum", type=float, default=0.99)
    parser.add_argument("--alpha-node", type=float, default=1.0)
    parser.add_argument("--alpha-mi", type=float, default=0.1)
    parser.add_argument("--measure", type=str, default="JSD", choices=["GAN", "JSD", "DV"])
    parser.add_argument("--readout", type=str, default="sum", choices=["sum", "mean", "attn"])
    return parser.parse_args(list(argv))


# ---------------------------------------------------------------- scatter helpers
def scatter_sum(src, index, dim_size):
    out = torch.zeros((dim_size,) + tuple(src.shape[1:]), dtype=src.dtype, device=src.device)
    return out.index_add_(0, index, src)


def scatter_mean(src, index, dim_size):
    count = scatter_sum(torch.ones_like(src[:, :1]), index, dim_size)
    return scatter_sum(src, index, dim_size) / count.clamp(min=1)


def scatter_softmax(src, index, dim_size):
    expanded = index.unsqueeze(-1).expand_as(src)
    high = torch.full((dim_size, src.size(1)), -float("inf"), dtype=src.dtype, device=src.device)
    high = high.scatter_reduce(0, expanded, src, reduce="amax", include_self=True)
    e = (src - high.detach()[index]).exp()
    return e / (scatter_sum(e, index, dim_size)[index] + 1e-16)


# ---------------------------------------------------------------- augmentations
def degree_drop_weights(edge_index, num_nodes, p, threshold=0.7):
    """Edges between central nodes are kept with a higher probability (GCA)."""
    deg = torch.bincount(edge_index[1], minlength=num_nodes).float()
    w = torch.log(deg[edge_index].mean(0) + 1)
    if w.numel() > 0:
        w = (w.max() - w) / (w.max() - w.mean()).clamp(min=1e-8)
        w = (w / w.mean().clamp(min=1e-8) * p).clamp(max=threshold)
    return w


class Augmentor(nn.Module):
    def __init__(self, spec, args):
        super().__init__()
        self.ops = [op for op in spec.split(",") if op]
        self.args = args

    def forward(self, x, edge_index, edge_type):
        if not self.training:
            return x, edge_index, edge_type
        for op in self.ops:
            x, edge_index, edge_type = getattr(self, "drop_" + op)(x, edge_index, edge_type)
        return x, edge_index, edge_type

    def drop_edge(self, x, edge_index, edge_type):
        weights = degree_drop_weights(edge_index, x.size(0), self.args.drop_edge)
        keep = torch.bernoulli(1.0 - weights).to(torch.bool)
        return x, edge_index[:, keep], edge_type[keep]

    def drop_node(self, x, edge_index, edge_type):
        keep = torch.rand(x.size(0), device=x.device) >= self.args.drop_node
        both = keep[edge_index[0]] & keep[edge_index[1]]
        return x * keep.unsqueeze(-1).to(x.dtype), edge_index[:, both], edge_type[both]

    def drop_feat(self, x, edge_index, edge_type):
        drop_mask = (
            torch.empty((x.size(1),), dtype=torch.float32, device=x.device).uniform_(0, 1)
            < self.args.drop_feat
        )
        x = x.clone()
        x[:, drop_mask] = 0
        return x, edge_index, edge_type


# ---------------------------------------------------------------- encoder
class GINEConv(nn.Module):
    def __init__(self, dim, num_edge_types, train_eps=True):
        super().__init__()
        self.edge_emb = nn.Embedding(num_edge_types, dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.BatchNorm1d(2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)
        )
        if train_eps:
            self.eps = nn.Parameter(torch.Tensor([0.0]))
        else:
            self.register_buffer("eps", torch.Tensor([0.0]))
        nn.init.xavier_uniform_(self.edge_emb.weight.data)

    def forward(self, x, edge_index, edge_type):
        row, col = edge_index
        message = F.relu(x[row] + self.edge_emb(edge_type))
        return self.mlp((1 + self.eps) * x + scatter_sum(message, col, x.size(0)))


class Encoder(nn.Module):
    def __init__(self, args):
        super().__init__()
        dim = args.hidden_dim
        self.num_gc_layers, self.readout = args.num_gc_layers, args.readout
        self.embed = nn.Linear(args.num_features, dim)
        self.convs, self.bns = nn.ModuleList(), nn.ModuleList()
        for _ in range(args.num_gc_layers):
            self.convs.append(GINEConv(dim, args.num_edge_types))
            self.bns.append(nn.BatchNorm1d(dim))
        self.out_dim = dim * args.num_gc_layers
        if self.readout == "attn":
            self.gate = nn.Sequential(nn.Linear(self.out_dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def pool(self, h, batch, num_graphs):
        if self.readout == "mean":
            return scatter_mean(h, batch, num_graphs)
        if self.readout == "attn":
            h = h * scatter_softmax(self.gate(h), batch, num_graphs)
        return scatter_sum(h, batch, num_graphs)

    def forward(self, x, edge_index, edge_type, batch, num_graphs):
        h, xs = self.embed(x), []
        for i in range(self.num_gc_layers):
            z = self.bns[i](self.convs[i](h, edge_index, edge_type))
            h = h + (F.relu(z) if i < self.num_gc_layers - 1 else z)
            xs.append(h)
        node = torch.cat(xs, 1)
        return self.pool(node, batch, num_graphs), node


class FF(nn.Module):
    def __init__(self, input_dim, dim):
        super().__init__()
        self.block = nn.Sequential(
            nn.Linear(input_dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU()
        )
        self.linear_shortcut = nn.Linear(input_dim, dim)

    def forward(self, x):
        return self.block(x) + self.linear_shortcut(x)


# ---------------------------------------------------------------- objectives
def positive_expectation(p, measure):
    if measure == "GAN":
        return -F.softplus(-p)
    if measure == "JSD":
        return math.log(2.0) - F.softplus(-p)
    return p


def negative_expectation(q, measure):
    if measure == "GAN":
        return F.softplus(-q) + q
    if measure == "JSD":
        return F.softplus(-q) + q - math.log(2.0)
    return torch.logsumexp(q, dim=0) - math.log(q.size(0))


def local_global_loss(local, glob, batch, measure):
    num_nodes, num_graphs = local.size(0), glob.size(0)
    pos_mask = F.one_hot(batch, num_graphs).to(local.dtype)
    res = torch.mm(local, glob.t())
    e_pos = (positive_expectation(res, measure) * pos_mask).sum() / num_nodes
    if measure == "DV":
        e_neg = negative_expectation(res[pos_mask == 0], measure)
    else:
        e_neg = (negative_expectation(res, measure) * (1.0 - pos_mask)).sum() / (
            num_nodes * (num_graphs - 1)
        )
    return e_neg - e_pos


def nt_xent(z1, z2, tau):
    """GraphCL's loss: the positive is not part of the denominator."""
    norm1, norm2 = z1.norm(dim=1), z2.norm(dim=1)
    sim = torch.einsum("ik,jk->ij", z1, z2) / (torch.einsum("i,j->ij", norm1, norm2) + 1e-8)
    sim = torch.exp(sim / tau)
    n = z1.size(0)
    pos = sim[range(n), range(n)]
    loss_a = pos / (sim.sum(dim=1) - pos)
    loss_b = pos / (sim.sum(dim=0) - pos)
    return -(torch.log(loss_a) + torch.log(loss_b)).mean() / 2


class GraphDuo(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.aug1, self.aug2 = Augmentor(args.aug1, args), Augmentor(args.aug2, args)
        self.online_encoder = Encoder(args)
        dim = self.online_encoder.out_dim
        self.proj_head = nn.Sequential(
            nn.Linear(dim, args.proj_dim),
            nn.ReLU(inplace=True),
            nn.Linear(args.proj_dim, args.proj_dim),
        )
        self.predictor = nn.Sequential(
            nn.Linear(dim, args.proj_dim),
            nn.BatchNorm1d(args.proj_dim),
            nn.PReLU(),
            nn.Linear(args.proj_dim, dim),
        )
        self.local_d, self.global_d = FF(dim, args.proj_dim), FF(dim, args.proj_dim)
        self.probe = nn.Linear(dim, args.num_classes)
        self.init_emb()
        self.target_encoder = copy.deepcopy(self.online_encoder)
        for p in self.target_encoder.parameters():
            p.requires_grad = False

    def init_emb(self):
        for m in self.modules():
            if isinstance(m, nn.Linear):
                torch.nn.init.xavier_uniform_(m.weight.data)
                if m.bias is not None:
                    m.bias.data.fill_(0.0)

    @torch.no_grad()
    def update_target_network(self):
        """Called by the trainer after each optimizer step."""
        mm = self.args.momentum
        for q, k in zip(self.online_encoder.parameters(), self.target_encoder.parameters()):
            k.data.mul_(mm).add_(q.data, alpha=1.0 - mm)

    @torch.no_grad()
    def embed(self, x, edge_index, edge_type, batch):
        graph, _ = self.online_encoder(x, edge_index, edge_type, batch, int(batch.max()) + 1)
        return F.normalize(graph, dim=-1)

    def node_bootstrap(self, online, target):
        p = F.normalize(self.predictor(online), dim=-1, p=2)
        t = F.normalize(target.detach(), dim=-1, p=2)
        return 2 - 2 * (p * t).sum(dim=-1)

    def forward(self, x, edge_index, edge_type, batch, y=None):
        num_graphs = batch.max().item() + 1
        view1, view2 = self.aug1(x, edge_index, edge_type), self.aug2(x, edge_index, edge_type)
        g1, n1 = self.online_encoder(*view1, batch, num_graphs)
        g2, n2 = self.online_encoder(*view2, batch, num_graphs)
        with torch.no_grad():
            _, t1 = self.target_encoder(*view1, batch, num_graphs)
            _, t2 = self.target_encoder(*view2, batch, num_graphs)

        loss_graph = nt_xent(self.proj_head(g1), self.proj_head(g2), self.args.tau)
        loss_node = scatter_mean(
            (self.node_bootstrap(n1, t2) + self.node_bootstrap(n2, t1)).unsqueeze(-1),
            batch,
            num_graphs,
        ).mean()
        loss_mi = local_global_loss(self.local_d(n1), self.global_d(g2), batch, self.args.measure)
        loss = loss_graph + self.args.alpha_node * loss_node + self.args.alpha_mi * loss_mi
        if y is None:
            return loss
        logits = self.probe(F.normalize(g1.detach() + g2.detach(), dim=-1))
        labeled = y >= 0
        loss_probe = F.cross_entropy(logits[labeled], y[labeled])
        acc = (logits[labeled].argmax(-1) == y[labeled]).float().mean()
        return (
            loss + loss_probe,
            logits,
            {
                "graph": loss_graph,
                "node": loss_node,
                "mi": loss_mi,
                "probe": loss_probe,
                "acc": acc,
            },
        )
