"""Stand-ins for the collectives of `paddle.distributed.fleet` that have no kernel on a CPU.

Each is made of all_reduce and all_gather, which gloo has, with the engine's own mathematics: what is
the identity forward is a sum backward, and the other way. They replace the functions that fleet's
layers look up at every call, and nothing else of the engine. `_c_lookup_table`, `_ClipGrad` and
`_make_group_alone` replace what works on a CPU, but wrongly: see docs/parallel.md.
"""

import socket
import sys
from typing import Any, Final

from reprod_align.backends.paddle.private import (
    COLLECTIVES,
    MAKE_GROUP,
    NAMES,
    NO_KERNEL,
    add_up_norm,
)
from reprod_align.backends.private_names import look_up

import paddle
from paddle import distributed as dist
from paddle.autograd import PyLayer
from paddle.base import core
from paddle.distributed import collective, fleet
from paddle.distributed.fleet.layers.mpu import mp_layers, mp_ops
from paddle.distributed.fleet.meta_optimizers.dygraph_optimizer import hybrid_parallel_optimizer
from paddle.distributed.fleet.utils import hybrid_parallel_util, sequence_parallel_utils

Tensor = Any
Group = Any

_HOST: Final = "127.0.0.1"
_SECONDS: Final = 60
_STORES: Final[list[Any]] = []  # a group's lives as long as the process
_make_group: Final = look_up(collective, MAKE_GROUP)


def stand_in() -> list[str]:
    """Replace the functions; return the names of those that this version of Paddle has."""
    found: list[str] = []
    for owner, name, function in _REPLACEMENTS:
        own = look_up(owner, name)
        if own is None:
            NAMES.miss(f"{owner.__name__.rpartition('.')[2]}.{name}", NO_KERNEL)
            continue
        found.append(name)
        for module in [m for key, m in sys.modules.items() if key.startswith("paddle.distributed")]:
            if vars(module).get(name) is own:  # some are known under several modules' names
                setattr(module, name, function)
    return list(dict.fromkeys(found))


def _make_group_alone(
    backend: str,
    store: Any,
    rank: int,
    world_size: int,
    group_name: str,
    *args: Any,
    **options: Any,
) -> Any:
    """Make a group that meets at a store of its own.

    Gloo's groups write their ranks' addresses under the same keys of the one store ("0", "1", ...):
    of two groups the second may read the first's, and fails with "Connection refused", or hangs.
    """
    key = f"reprod_align/{group_name}"
    if rank == 0:
        with socket.socket() as free:
            free.bind((_HOST, 0))
            port = free.getsockname()[1]
        own = core.TCPStore(_HOST, port, True, 1, _SECONDS)
        store.set(key, str(port).encode())
    else:
        store.wait(key)
        own = core.TCPStore(_HOST, int(bytes(store.get(key))), False, 1, _SECONDS)
    _STORES.append(own)
    return _make_group(backend, own, rank, world_size, group_name, *args, **options)


def _sum(tensor: Tensor, group: Group) -> Tensor:
    summed = tensor.detach().clone()
    if group.nranks > 1:
        dist.all_reduce(summed, group=group)
    return summed


def _largest(tensor: Tensor, group: Group) -> Tensor:
    found = tensor.detach().clone()
    if group.nranks > 1:
        dist.all_reduce(found, op=dist.ReduceOp.MAX, group=group)
    return found


def _join(tensor: Tensor, group: Group, axis: int) -> Tensor:
    parts: list[Tensor] = []
    dist.all_gather(parts, tensor.detach().contiguous(), group=group)
    return paddle.concat(parts, axis)


def _rank_in(group: Group) -> int:
    return int(group.ranks.index(dist.get_rank()))  # group.rank is -1 in a group of one


def _own_part(tensor: Tensor, group: Group, axis: int) -> Tensor:
    return paddle.split(tensor.detach(), group.nranks, axis)[_rank_in(group)].contiguous()


class _Identity(PyLayer):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _sum(gradient, ctx.group)


class _Sum(PyLayer):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        return _sum(tensor, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.clone()


class _Concat(PyLayer):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return _join(tensor, group, -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _own_part(gradient, ctx.group, -1)


class _Split(PyLayer):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return _own_part(tensor, group, -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _join(gradient, ctx.group, -1)


def _c_identity(
    tensor: Tensor, group: Group = None, skip_c_identity_dynamic: bool = False
) -> Tensor:
    return _Identity.apply(tensor, group)


def _mp_allreduce(tensor: Tensor, op: Any = None, group: Group = None, **ignored: Any) -> Tensor:
    return _Sum.apply(tensor, group)


def _c_concat(tensor: Tensor, group: Group = None) -> Tensor:
    return _Concat.apply(tensor, group)


def _c_split(tensor: Tensor, group: Group = None) -> Tensor:
    return _Split.apply(tensor, group)


def _c_lookup_table(
    table: Tensor, index: Tensor, start_index: int = 0, vocab_size: int = -1, name: Any = None
) -> Tensor:
    """Look rows up; those of other ranks are 0. The CPU's own backward leaves gradients unwritten."""
    own = index.astype("int64") - start_index
    held = (own >= 0) & (own < table.shape[0])
    rows = paddle.nn.functional.embedding(paddle.where(held, own, paddle.zeros_like(own)), table)
    return rows * held.astype(rows.dtype).unsqueeze(-1)


def _c_softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    group: Group = None,
    return_softmax: bool = False,
    ignore_index: int = -100,
) -> Any:
    """Return the loss of each label, (..., 1), of logits whose last axis is cut."""
    label = label.unsqueeze(-1) if label.ndim == logits.ndim - 1 else label
    shifted = logits - _largest(logits.max(-1, keepdim=True), group)
    total = _Sum.apply(shifted.exp().sum(-1, keepdim=True), group)
    own = label.astype("int64") - _rank_in(group) * logits.shape[-1]
    held = (own >= 0) & (own < logits.shape[-1]) & (label != ignore_index)
    picked = paddle.take_along_axis(
        shifted, paddle.where(held, own, paddle.zeros_like(own)), -1, broadcast=False
    )
    picked = _Sum.apply(picked * held.astype(picked.dtype), group)
    loss = (total.log() - picked) * (label != ignore_index).astype(picked.dtype)
    return (loss, shifted.exp() / total) if return_softmax else loss


def _model_parallel() -> Group:
    return fleet.get_hybrid_communicate_group().get_model_parallel_group()


def _all_gather(tensor: Tensor) -> Tensor:
    return _join(tensor, _model_parallel(), 0)


def _reduce_scatter(tensor: Tensor) -> Tensor:
    group = _model_parallel()
    if tensor.shape[0] % group.nranks:
        raise ValueError(
            f"Input sequence length {tensor.shape[0]} can't be divided exactly by sequence "
            f"parallelism {group.nranks}"
        )
    return _own_part(_sum(tensor, group), group, 0)


def _broadcast_input_data(hcg: Any, *inputs: Any, **kwargs: Any) -> Any:
    """Pass the inputs on: every rank of a group is given the same ones here."""
    return inputs, kwargs


class _ClipGrad(hybrid_parallel_optimizer.HybridParallelClipGrad):  # type: ignore[misc]
    """Counts float64 gradients in the norm: Paddle's own leaves them out, and so clips nothing."""

    @paddle.no_grad()  # type: ignore[untyped-decorator]
    def _dygraph_clip(self, params_grads: Any) -> Any:
        sums = {True: paddle.zeros([1], "float64"), False: paddle.zeros([1], "float64")}
        for parameter, gradient in params_grads:
            counted = gradient is not None and getattr(parameter, "need_clip", True)
            if counted and getattr(parameter, "is_firstly_shared", True):
                square = gradient.astype("float64").square().sum().reshape([1])
                sums[bool(parameter.is_distributed)] += square
        add_up_norm(self, sums[True], sums[False])
        norm = paddle.sqrt(sums[True] + sums[False])
        limit = paddle.to_tensor([self.clip_norm], "float64")
        factor = limit / (paddle.maximum(norm, limit) + 1e-6)
        for parameter, gradient in params_grads:
            if gradient is not None and getattr(parameter, "need_clip", True):
                gradient.multiply_(factor.astype(gradient.dtype).squeeze())
        return params_grads


_OF_LAYERS = (
    _c_identity,
    _mp_allreduce,
    _c_concat,
    _c_split,
    _c_softmax_with_cross_entropy,
    _c_lookup_table,
)
_REPLACEMENTS: list[tuple[Any, str, Any]] = [
    *((mp_ops, name, function) for name, function in zip(COLLECTIVES, _OF_LAYERS, strict=True)),
    (sequence_parallel_utils, "all_gather", _all_gather),
    (sequence_parallel_utils, "reduce_scatter", _reduce_scatter),
    (hybrid_parallel_util, "broadcast_input_data", _broadcast_input_data),
    (hybrid_parallel_optimizer, "HybridParallelClipGrad", _ClipGrad),
    (collective, MAKE_GROUP, _make_group_alone),
]
assert mp_layers.mp_ops is mp_ops
