"""A pair file for several ranks; `cases.write_pair` puts MODEL, FAULT and the OPTIONS before it.

MODEL "mlp": embedding, norm, up, dropout, down, head. MODEL "decoder": two blocks of grouped-query
attention with one fused projection and of a gated MLP, the embedding tied to the head.
Each `FAULT == ...` is one planted mistake of the port.
"""

import numpy as np

MODEL = globals().get("MODEL", "mlp")
FAULT = globals().get("FAULT", "")
OPTIONS = globals().get("OPTIONS", {})

V, H, F, L, B = OPTIONS.get("vocabulary", 24), 16, 40, 6, 4
PADDED = V + V % 2 + 2 * bool(V % 2)
HEADS, GROUPS, D = 4, 2, 6
SP, DP, TIED = (OPTIONS.get(name, False) for name in ("sp", "dp", "tied"))
DROPOUT = OPTIONS.get("dropout", 0.2)
steps = 3

_rng = np.random.default_rng(5)
_ids = _rng.integers(0, V, (B, L))
_labels = _rng.integers(0, V, (B, L))
if FAULT == "dp-mean-of-means" or OPTIONS.get("ignored"):
    _labels[1, 2:] = -100
    if OPTIONS.get("ignored"):
        _labels[2, 2:] = _labels[3, :0:-4].sum() * 0 - 100
inputs = {"ids": _ids, "labels": _labels}
if MODEL == "decoder":
    _q, _kv = HEADS * D, GROUPS * D
    fused = {"qkv.weight": (_q, _kv, _kv), "qkv.bias": (_q, _kv, _kv)}
copy_weights = FAULT not in ("shards-exchanged", "shard-order", "shard-transposed-half")


def paddle_inputs(inputs, replica, replicas):
    rows = np.arange(B)
    own = (
        rows[replica::replicas] if OPTIONS.get("interleaved") else np.split(rows, replicas)[replica]
    )
    if FAULT == "dp-same-data":
        own = np.split(rows, replicas)[0]
    if FAULT == "dp-overlap" and replica == 1:
        own = own - 1
    return {name: array[own] for name, array in inputs.items()}


# ---------------------------------------------------------------------- PyTorch


def torch_model():
    import torch
    from torch import nn
    from torch.nn import functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(H, (HEADS + 2 * GROUPS) * D)
            self.out = nn.Linear(HEADS * D, H)
            self.drop = nn.Dropout(DROPOUT)

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = self.qkv(x).split([HEADS * D, GROUPS * D, GROUPS * D], -1)
            q = q.reshape(b, n, HEADS, D).transpose(1, 2)
            k, v = (t.reshape(b, n, GROUPS, D).transpose(1, 2) for t in (k, v))
            k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (k, v))
            scores = q @ k.transpose(2, 3) / D**0.5
            mask = torch.ones(n, n, dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, -1e9).softmax(-1)
            return self.out((self.drop(scores) @ v).transpose(1, 2).reshape(b, n, HEADS * D))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(H), nn.LayerNorm(H)
            self.attention = Attention()
            self.gate, self.up = nn.Linear(H, F, bias=False), nn.Linear(H, F, bias=False)
            self.down = nn.Linear(F, H)
            self.drop = nn.Dropout(DROPOUT)

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            y = self.norm2(x)
            return x + self.drop(self.down(functional.silu(self.gate(y)) * self.up(y)))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm2 = nn.LayerNorm(H)
            self.up, self.down = nn.Linear(H, F), nn.Linear(F, H)
            self.inner, self.drop = nn.Dropout(DROPOUT), nn.Dropout(DROPOUT)

        def forward(self, x):
            y = self.inner(functional.gelu(self.up(self.norm2(x))))
            return x + self.drop(self.down(y))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(V, H)
            self.blocks = nn.ModuleList([Block(), Block()] if MODEL == "decoder" else [Mlp()])
            self.norm = nn.LayerNorm(H)
            self.head = nn.Linear(H, V, bias=False)
            if TIED or MODEL == "decoder":
                self.head.weight = self.embed.weight

        def forward(self, ids, labels):
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            return logits, loss

    torch.manual_seed(11)
    model = Model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape)
    return model


def torch_loss(output):
    return output[1]


def torch_optimizer(model):
    import torch

    if OPTIONS.get("sgd"):
        made = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    else:
        made = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-4, weight_decay=0.1)
    clip = OPTIONS.get("clip")
    if clip:
        step = made.step

        def clip_and_step(*args, **options):
            parameters = [p for group in made.param_groups for p in group["params"]]
            norm = sum(p.grad.square().sum() for p in parameters if p.grad is not None).sqrt()
            for p in parameters:
                if p.grad is not None:
                    p.grad.mul_(clip / (max(norm, torch.tensor(clip).double()) + 1e-6))
            return step(*args, **options)

        made.step = clip_and_step
    return made


if globals().get("OPTIONS", {}).get("schedule"):

    def torch_scheduler(optimizer):
        import torch

        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)

    def paddle_scheduler(optimizer):
        import paddle

        return paddle.optimizer.lr.ExponentialDecay(1e-3, 0.7)


# ---------------------------------------------------------------------- Paddle


def paddle_model():
    import paddle
    from paddle import distributed as dist
    from paddle import nn
    from paddle.autograd import PyLayer
    from paddle.distributed import fleet
    from paddle.distributed.fleet.layers.mpu import mp_ops
    from paddle.distributed.fleet.utils import sequence_parallel_utils as spu
    from paddle.nn import functional

    mpu, hcg = fleet.meta_parallel, fleet.get_hybrid_communicate_group()
    group, tp = hcg.get_model_parallel_group(), hcg.get_model_parallel_world_size()
    part = hcg.get_model_parallel_rank()

    class Column(spu.ColumnSequenceParallelLinear if SP else mpu.ColumnParallelLinear):
        """The engine's own, or with a mistake."""

        fault = ""

        def forward(self, x):
            if self.fault == "identity-missing":
                y = functional.linear(x, self.weight, self.bias)
                return y
            if self.fault == "identity-twice":
                return super().forward(mp_ops._c_identity(x, group=group))
            if self.fault == "bias-missing" and part == 1 and self.bias is not None:
                return super().forward(x) - self.bias
            y = super().forward(x)
            if self.fault == "gather-order":
                y = paddle.concat(paddle.split(y, tp, -1)[::-1], -1)
            if self.fault == "one-rank-scaled" and part == 1:
                y = y * 1.001
            return y

    class Row(spu.RowSequenceParallelLinear if SP else mpu.RowParallelLinear):
        """The engine's own, or with a mistake."""

        fault = ""

        def forward(self, x):
            if self.fault == "reduce-missing":
                return functional.linear(x, self.weight, self.bias)
            if self.fault == "bias-on-each-rank":
                return mp_ops._mp_allreduce(
                    functional.linear(x, self.weight, self.bias), group=group
                )
            if self.fault == "reduce-averages":
                y = mp_ops._mp_allreduce(functional.linear(x, self.weight), group=group)
                return y / tp + self.bias
            if self.fault == "reduce-without-gradient":
                y = functional.linear(x, self.weight)
                with paddle.no_grad():
                    total = y.detach().clone()
                    dist.all_reduce(total, group=group)
                return y + (total - y.detach()) * 1.0 + self.bias.detach()
            if self.fault == "row-scaled" and part == 1:
                return super().forward(x) * 1.001
            return super().forward(x)

    class Embedding(mpu.VocabParallelEmbedding):
        fault = ""

        def forward(self, ids):
            if self.fault == "offset" and part == 1:
                self.vocab_start_index -= 1
            try:
                return super().forward(ids)
            finally:
                if self.fault == "offset" and part == 1:
                    self.vocab_start_index += 1

    class Stream(nn.Layer):
        """Dropout in the stream that its tensor asks for."""

        def __init__(self, cut, fault=""):
            super().__init__()
            self.drop, self.cut, self.fault = nn.Dropout(DROPOUT), cut, fault

        def forward(self, x):
            cut = self.cut
            if self.fault == "dropout-shared" and self.cut:
                cut = False
            if self.fault == "dropout-apart" and not self.cut:
                cut = True
            if not cut:
                return self.drop(x)
            with mpu.get_rng_state_tracker().rng_state("local_seed"):
                return self.drop(x)

    def column(n, m, bias=True, gather=False):
        made = Column(n, m, has_bias=bias, gather_output=gather)
        return made

    def row(n, m):
        return Row(n, m, has_bias=True, input_is_parallel=True)

    class Attention(nn.Layer):
        def __init__(self):
            super().__init__()
            self.qkv = column(H, (HEADS + 2 * GROUPS) * D)
            self.out = row(HEADS * D, H)
            self.drop = Stream(True, FAULT)

        def forward(self, x):
            heads, groups = HEADS // tp, GROUPS // tp
            y = self.qkv(x)
            if SP:
                y = y.transpose([1, 0, 2])
            b, n, _ = y.shape
            sizes = [heads * D, groups * D, groups * D]
            q, k, v = paddle.split(y, sizes, -1)
            if FAULT == "heads-order":
                k, v = v, k
            q = q.reshape([b, n, heads, D]).transpose([0, 2, 1, 3])
            k, v = (t.reshape([b, n, groups, D]).transpose([0, 2, 1, 3]) for t in (k, v))
            k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (k, v))
            scores = q @ k.transpose([0, 1, 3, 2]) / D**0.5
            mask = paddle.ones([n, n], "bool").tril()
            scores = functional.softmax(
                paddle.where(mask, scores, paddle.full_like(scores, -1e9)), -1
            )
            y = (self.drop(scores) @ v).transpose([0, 2, 1, 3]).reshape([b, n, heads * D])
            return self.out(y.transpose([1, 0, 2]) if SP else y)

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(H), nn.LayerNorm(H)
            self.attention = Attention()
            self.gate, self.up = column(H, F, False), column(H, F, False)
            self.down = row(F, H)
            self.drop = Stream(SP, FAULT)

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            y = self.norm2(x)
            return x + self.drop(self.down(functional.silu(self.gate(y)) * self.up(y)))

    class Mlp(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm2 = nn.LayerNorm(H)
            self.up, self.down = column(H, F), row(F, H)
            self.inner, self.drop = Stream(True, FAULT), Stream(SP, FAULT)

        def forward(self, x):
            y = self.inner(functional.gelu(self.up(self.norm2(x))))
            return x + self.drop(self.down(y))

    class Sum(PyLayer):
        """Sums a gradient over the ranks of tp."""

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            total = gradient.clone()
            dist.all_reduce(total, group=group)
            return total

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed = Embedding(PADDED, H)
            blocks = [Block(), Block()] if MODEL == "decoder" else [Mlp()]
            self.blocks = nn.LayerList(blocks)
            self.norm = nn.LayerNorm(H)
            self.tied = TIED or MODEL == "decoder"
            gather = OPTIONS.get("gather", False)
            if not self.tied:
                self.head = mpu.ColumnParallelLinear(
                    H, PADDED, has_bias=False, gather_output=gather
                )
            self.gather = gather
            self.ce = mpu.ParallelCrossEntropy()

        def logits(self, x):
            if not self.tied:
                return self.head(x)
            x = mp_ops._c_identity(x, group=group) if tp > 1 else x
            weight = self.embed.weight.detach() if FAULT == "tie-cut" else self.embed.weight
            if FAULT == "tie-cut":
                weight.stop_gradient = True
            y = paddle.matmul(x, weight, transpose_y=True)
            return mp_ops._c_concat(y, group=group) if self.gather and tp > 1 else y

        def forward(self, ids, labels):
            x = self.embed(ids)
            if SP:
                x = spu.ScatterOp.apply(x.transpose([1, 0, 2]))
                if FAULT == "sp-scatter-order":
                    x = x.flip(0)
            for block in self.blocks:
                x = block(x)
            x = self.norm(x)
            if SP:
                gathering = spu.AllGatherOp if FAULT == "sp-gather-sums" else spu.GatherOp
                x = gathering.apply(x).transpose([1, 0, 2])
            logits = self.logits(x)
            return logits, self.loss(logits, labels)

        def loss(self, logits, labels):
            if PADDED != V:
                own = paddle.arange(logits.shape[-1])
                own = own if self.gather else own + part * logits.shape[-1]
                logits = paddle.where(own < V, logits, paddle.full_like(logits, -1e9))
            if self.gather or tp == 1 or FAULT == "loss-of-own-part":
                if FAULT == "loss-of-own-part":
                    labels = (labels - part * logits.shape[-1]).clip(0, logits.shape[-1] - 1)
                return self.mean(functional.cross_entropy(logits, labels, reduction="none"), labels)
            return self.mean(self.ce(logits, labels), labels)

        def mean(self, losses, labels):
            losses, counted = losses.squeeze(-1), (labels != -100).astype(losses.dtype)
            total, count = (losses * counted).sum(), counted.sum()
            if OPTIONS.get("ignored") and DP:
                dist.all_reduce(count, group=hcg.get_data_parallel_group())
                count = count / hcg.get_data_parallel_world_size()
            mean = total / count
            if FAULT == "loss-over-ranks":
                return mean / tp
            if FAULT == "loss-by-batch":
                return losses.sum() / (losses.size + 1)
            return mean

    model = Model()
    last = model.blocks[-1]
    if FAULT in ("identity-missing", "identity-twice", "bias-missing", "one-rank-scaled"):
        last.up.fault = FAULT
        if MODEL == "decoder" and FAULT == "bias-missing":
            last.attention.qkv.fault = FAULT
    if FAULT in (
        "reduce-missing",
        "bias-on-each-rank",
        "reduce-averages",
        "reduce-without-gradient",
        "row-scaled",
    ):
        last.down.fault = FAULT
    if FAULT == "offset":
        model.embed.fault = FAULT
    if FAULT == "gather-order":
        last.up.fault = FAULT
    if FAULT == "norm-gradient-summed":
        last.norm2.weight.register_hook(_summed(group))
    if FAULT == "norm-gradient-averaged":
        last.norm2.weight.register_hook(lambda g: g / tp)
    if FAULT == "norm-gradient-cut" and part == 1:
        last.norm2.weight.register_hook(lambda g: g * 0)
    if FAULT == "shard-gradient-summed":
        last.up.weight.register_hook(_summed(group))
    if FAULT == "frozen-on-a-rank" and part == 1:
        last.down.weight.register_hook(lambda g: g * 0)
    if FAULT == "rank-of-another":
        last.down.weight.register_hook(_from_other(group, tp))
    if SP:
        for _, layer in model.named_sublayers():
            if isinstance(layer, nn.LayerNorm):
                for parameter in (layer.weight, layer.bias):
                    skip = FAULT == "sp-norm-unmarked" and layer is last.norm2
                    if not skip:
                        spu.mark_as_sequence_parallel_parameter(parameter)
        if FAULT == "sp-bias-unmarked":
            last.down.bias.sequence_parallel = False
        spu.register_sequence_parallel_allreduce_hooks(model, 1, False)
        if FAULT == "sp-norm-twice":
            last.norm2.weight.register_hook(lambda g: g * tp)
    if copy_weights is False:
        _load_own(model, part, tp, last)
    if FAULT == "dp-one-parameter":
        last.norm2.bias.no_sync = True
    if DP and FAULT not in ("dp-unreduced",):
        return fleet.distributed_model(model)
    return model


def _summed(group):
    from paddle import distributed as dist

    def hook(gradient):
        total = gradient.clone()
        dist.all_reduce(total, group=group)
        return total

    return hook


def _from_other(group, tp):
    from paddle import distributed as dist

    def hook(gradient):
        parts = []
        dist.all_gather(parts, gradient.contiguous(), group=group)
        return parts[(group.rank + 1) % tp]

    return hook


def _load_own(model, part, tp, last):
    """Load PyTorch's weights as a port that loads its own files does; with a mistake at one tensor."""
    import paddle

    weights = {name: tensor.detach().numpy() for name, tensor in _torch_weights().items()}
    for name, tensor in model.state_dict().items():
        whole = weights[name]
        if whole.ndim == 2 and "embed" not in name:
            whole = whole.T
        axis = getattr(tensor, "split_axis", None)
        own = part
        if axis is not None:
            at_fault = tensor is last.up.weight
            if at_fault and FAULT == "shards-exchanged":
                own = tp - 1 - part
            if name.endswith(tuple(globals().get("fused", {}))) and "qkv" in name:
                pieces = np.split(whole, np.cumsum(fused[name[name.index("qkv") :]])[:-1], axis)
                whole = np.concatenate([np.split(p, tp, axis)[own] for p in pieces], axis)
            else:
                whole = np.split(whole, tp, axis)[own]
            if at_fault and FAULT == "shard-order":
                whole = np.concatenate(np.split(whole, 2, axis)[::-1], axis)
            if at_fault and FAULT == "shard-transposed-half":
                whole = whole.copy()
                whole[: whole.shape[0] // 2] = whole[: whole.shape[0] // 2][::-1]
        tensor.set_value(paddle.to_tensor(np.ascontiguousarray(whole), dtype=tensor.dtype))


def _torch_weights():
    return torch_model().state_dict()


def paddle_loss(output):
    return output[1]


def paddle_optimizer(model):
    import paddle
    from paddle import distributed as dist
    from paddle.distributed import fleet
    from paddle.distributed.fleet.utils import hybrid_parallel_util

    hcg = fleet.get_hybrid_communicate_group()
    part, rate = hcg.get_model_parallel_rank(), 1e-3
    if FAULT == "rate-on-a-rank" and part + hcg.get_data_parallel_rank() == 1:
        rate *= 1.1
    clip = paddle.nn.ClipGradByGlobalNorm(OPTIONS["clip"]) if OPTIONS.get("clip") else None
    parameters = list(model.parameters())
    if OPTIONS.get("sgd"):
        made = paddle.optimizer.Momentum(0.05, parameters=parameters, grad_clip=clip)
    else:
        cut = {p.name for p in parameters if p.is_distributed}
        skip = FAULT == "decay-of-shards"
        made = paddle.optimizer.AdamW(
            rate,
            epsilon=1e-4,
            parameters=parameters,
            weight_decay=0.1,
            grad_clip=clip,
            apply_decay_param_fun=(lambda name: name not in cut) if skip else None,
        )
    if FAULT in ("dp-unreduced", "clip-of-own-part"):
        return made
    wrapped = fleet.distributed_optimizer(made)
    if FAULT == "drift":
        take = wrapped.step

        def step_and_drift():
            take()
            for parameter in parameters:
                if not parameter.is_distributed and part == 1:
                    with paddle.no_grad():
                        parameter.scale_(1.0001)

        wrapped.step = step_and_drift
    if FAULT == "dp-summed":
        step = wrapped.step

        def sum_and_step():
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad.scale_(float(hcg.get_data_parallel_world_size()))
            step()

        wrapped.step = sum_and_step
    if FAULT == "dp-over-tp":
        wrapped._dp_enable = False
        step = wrapped.step

        def average_over_tp_and_step():
            hybrid_parallel_util.fused_allreduce_gradients_with_group(
                parameters, hcg.get_model_parallel_group(), scale=0.5
            )
            step()

        wrapped.step = average_over_tp_and_step
    if FAULT == "clip-counts-twice":
        inner = wrapped._inner_opt
        own = inner._grad_clip

        class Twice(type(own)):
            def _global_norm(self, cut, whole):
                super()._global_norm(cut, whole)
                dist.all_reduce(whole, group=hcg.get_model_parallel_group())

        own.__class__ = Twice
    return wrapped
