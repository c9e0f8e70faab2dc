"""
Graph Transformer on dense adjacency: GATv2 local message passing + Graphormer style global
attention (centrality encoding, shortest-path bias), random-walk positional encoding.

Input: categorical node features [B, N, K], dense adjacency with edge types [B, N, N], num_nodes [B].
"""

import math
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def init_params(module, n_layers):
    if isinstance(module, nn.Linear):
        module.weight.data.normal_(mean=0.0, std=0.02 / math.sqrt(n_layers))
        if module.bias is not None:
            module.bias.data.zero_()
    if isinstance(module, nn.Embedding):
        module.weight.data.normal_(mean=0.0, std=0.02)


@torch.no_grad()
def shortest_path(adj, max_dist):
    """BFS by repeated boolean matmul; unreachable -> max_dist + 1"""
    B, N, _ = adj.shape
    eye = torch.eye(N, dtype=torch.bool, device=adj.device).expand(B, N, N)
    reach = eye.clone()
    dist = torch.full((B, N, N), max_dist + 1, dtype=torch.long, device=adj.device)
    dist.masked_fill_(eye, 0)
    step = (adj | eye).long()
    for d in range(1, max_dist + 1):
        nxt = torch.bmm(reach.long(), step) > 0
        dist[nxt & ~reach] = d
        reach = nxt
    return dist


def random_walk_pe(adj, k):
    """diag of powers of the row normalised adjacency, [B, N, k]"""
    deg = adj.sum(-1, keepdim=True).clamp(min=1)
    rw = adj / deg
    out, cur = [], rw
    for _ in range(k):
        out.append(torch.diagonal(cur, dim1=-2, dim2=-1))
        cur = cur @ rw
    return torch.stack(out, dim=-1)


class GATv2Layer(nn.Module):
    def __init__(
        self, in_features, out_features, n_heads, n_edge_types, dropout=0.1, alpha=0.2, concat=True
    ):
        super(GATv2Layer, self).__init__()
        self.n_heads, self.concat = n_heads, concat
        self.d = out_features // n_heads if concat else out_features
        self.W_src = nn.Linear(in_features, n_heads * self.d, bias=False)
        self.W_dst = nn.Linear(in_features, n_heads * self.d, bias=False)
        self.edge_emb = nn.Embedding(n_edge_types, n_heads * self.d)
        self.a = nn.Parameter(torch.empty(n_heads, self.d))
        nn.init.xavier_uniform_(self.a, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)
        self.dropout = dropout

    def forward(self, h, edge_type):
        B, N, _ = h.shape
        src = self.W_src(h).view(B, N, self.n_heads, self.d)
        dst = self.W_dst(h).view(B, N, self.n_heads, self.d)
        e = self.edge_emb(edge_type).view(B, N, N, self.n_heads, self.d)
        pair = self.leakyrelu(src[:, None, :] + dst[:, :, None] + e)
        scores = torch.einsum("bijhd,hd->bijh", pair, self.a)

        zero_vec = -9e15 * torch.ones_like(scores)
        attention = torch.where((edge_type > 0).unsqueeze(-1), scores, zero_vec)
        attention = F.softmax(attention, dim=2)
        attention = F.dropout(attention, self.dropout, training=self.training)
        out = torch.einsum("bijh,bjhd->bihd", attention, src)
        if self.concat:
            return F.elu(out.flatten(2))
        return out.mean(dim=2)


class BiasedAttention(nn.Module):
    def __init__(self, hidden_size, attention_dropout_rate, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.att_size = att_size = hidden_size // num_heads
        self.scale = att_size**-0.5
        self.linear_q = nn.Linear(hidden_size, num_heads * att_size)
        self.linear_k = nn.Linear(hidden_size, num_heads * att_size)
        self.linear_v = nn.Linear(hidden_size, num_heads * att_size)
        self.att_dropout = nn.Dropout(attention_dropout_rate)
        self.output_layer = nn.Linear(num_heads * att_size, hidden_size)

    def forward(self, q, k, v, attn_bias=None):
        orig_q_size = q.size()
        d_k = self.att_size
        batch_size = q.size(0)
        q = self.linear_q(q).view(batch_size, -1, self.num_heads, d_k)
        k = self.linear_k(k).view(batch_size, -1, self.num_heads, d_k)
        v = self.linear_v(v).view(batch_size, -1, self.num_heads, d_k)

        q = q.transpose(1, 2)  # [b, h, q_len, d_k]
        v = v.transpose(1, 2)  # [b, h, v_len, d_v]
        k = k.transpose(1, 2).transpose(2, 3)  # [b, h, d_k, k_len]

        q = q * self.scale
        x = torch.matmul(q, k)
        if attn_bias is not None:
            x = x + attn_bias
        x = torch.softmax(x, dim=3)
        x = self.att_dropout(x)
        x = x.matmul(v)
        x = x.transpose(1, 2).contiguous().view(batch_size, -1, self.num_heads * d_k)
        x = self.output_layer(x)
        assert x.size() == orig_q_size
        return x


class GPSLayer(nn.Module):
    """x + local(x) + global(x), then FFN"""

    def __init__(self, args):
        super().__init__()
        d = args.hidden_dim
        self.local_norm = nn.LayerNorm(d)
        self.local = GATv2Layer(d, d, args.num_heads, args.num_edge_types, args.dropout)
        self.attn_norm = nn.LayerNorm(d)
        self.attn = BiasedAttention(d, args.dropout, args.num_heads)
        self.ffn_norm = nn.LayerNorm(d)
        self.ffn = nn.Sequential(nn.Linear(d, args.ffn_dim), nn.GELU(), nn.Linear(args.ffn_dim, d))
        self.drop = nn.Dropout(args.dropout)
        self.gate = nn.Parameter(torch.zeros(2))

    def forward(self, x, edge_type, attn_bias):
        n_extra = x.size(1) - edge_type.size(1)  # 虚拟节点 (graph token) 不参与局部消息传递
        y = self.local_norm(x)
        loc = F.pad(self.local(y[:, n_extra:], edge_type), (0, 0, n_extra, 0))
        y = self.attn_norm(x)
        glo = self.attn(y, y, y, attn_bias)
        g = torch.sigmoid(self.gate)
        x = x + self.drop(g[0] * loc + g[1] * glo)
        return x + self.drop(self.ffn(self.ffn_norm(x)))


class GraphTransformer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        d = args.hidden_dim
        # 0 is the padding index; features of different fields live in disjoint ranges
        self.atom_encoder = nn.Embedding(args.num_fields * args.vocab + 1, d, padding_idx=0)
        self.register_buffer(
            "field_offset", 1 + torch.arange(args.num_fields) * args.vocab, persistent=False
        )
        self.degree_encoder = nn.Embedding(args.max_degree + 1, d)
        self.pe_encoder = nn.Linear(args.walk_length, d, bias=False)
        self.spatial_encoder = nn.Embedding(args.max_dist + 2, args.num_heads)
        self.graph_token = nn.Embedding(1, d)
        self.token_dist = nn.Embedding(1, args.num_heads)
        self.layers = nn.ModuleList([GPSLayer(args) for _ in range(args.n_layers)])
        self.final_ln = nn.LayerNorm(d)
        self.out_proj = nn.Linear(d, args.num_class)
        self.link_proj = nn.Bilinear(d, d, 1)
        self.apply(lambda m: init_params(m, n_layers=args.n_layers))

    def forward(self, node_feat, adj, num_nodes):
        B, N, _ = node_feat.shape
        idx = torch.arange(N, device=adj.device)
        valid = idx[None, :] < num_nodes[:, None]
        pair_valid = valid.unsqueeze(1) & valid.unsqueeze(2)
        adj = adj * pair_valid
        conn = adj > 0
        edge_type = adj.clone()
        edge_type[:, idx, idx] = self.args.num_edge_types - 1  # self loop

        tok = (node_feat + self.field_offset).masked_fill(~valid.unsqueeze(-1), 0)
        x = self.atom_encoder(tok).sum(dim=-2)
        degree = conn.sum(-1).clamp_(max=self.args.max_degree)
        x = (
            x
            + self.degree_encoder(degree)
            + self.pe_encoder(random_walk_pe(conn.type_as(x), self.args.walk_length))
        )
        cls = self.graph_token.weight.unsqueeze(0).repeat(B, 1, 1)
        x = torch.cat([cls, x], dim=1)

        # attention bias [B, H, N+1, N+1]
        bias = x.new_zeros(B, self.args.num_heads, N + 1, N + 1)
        spd = self.spatial_encoder(shortest_path(conn, self.args.max_dist)).permute(0, 3, 1, 2)
        bias[:, :, 1:, 1:] = bias[:, :, 1:, 1:] + spd
        t = self.token_dist.weight.view(1, self.args.num_heads, 1)
        bias[:, :, 1:, 0] += t
        bias[:, :, 0, :] += t
        key_pad = F.pad(~valid, (1, 0), value=False)
        bias = bias.masked_fill(key_pad[:, None, None, :], float("-inf"))

        for layer in self.layers:
            x = layer(x, edge_type, bias)
        x = self.final_ln(x)
        graph_rep, nodes = x[:, 0], x[:, 1:]
        nodes = nodes * valid.unsqueeze(-1)
        left = nodes.unsqueeze(2).expand(-1, -1, N, -1).contiguous()
        right = nodes.unsqueeze(1).expand(-1, N, -1, -1).contiguous()
        link = self.link_proj(left, right).squeeze(-1)
        link = 0.5 * (link + link.transpose(1, 2))
        return self.out_proj(graph_rep), link.masked_fill(~pair_valid, 0.0)


def get_args(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--hidden_dim", type=int, default=64)
    p.add_argument("--ffn_dim", type=int, default=128)
    p.add_argument("--num_heads", type=int, default=4)
    p.add_argument("--n_layers", type=int, default=3)
    p.add_argument("--num_fields", type=int, default=3)
    p.add_argument("--vocab", type=int, default=12)
    p.add_argument("--num_edge_types", type=int, default=5)
    p.add_argument("--max_degree", type=int, default=6)
    p.add_argument("--max_dist", type=int, default=4)
    p.add_argument("--walk_length", type=int, default=5)
    p.add_argument("--num_class", type=int, default=10)
    p.add_argument("--dropout", type=float, default=0.1)
    return p.parse_args(argv if argv is not None else [])


if __name__ == "__main__":
    model = GraphTransformer(get_args())
    a = torch.randint(0, 4, (2, 9, 9))
    a = torch.triu(a, 1)
    a = a + a.transpose(1, 2)
    out, link = model(torch.randint(0, 12, (2, 9, 3)), a, torch.tensor([9, 6]))
    print(out.shape, link.shape)
