"""What a rank of a parallel run asks of Paddle: its engine, and how a model's tensors lie on the ranks.

The engine is Paddle's own `paddle.distributed.fleet`. `start_engine` puts stand-ins in the place of the
collectives that have no kernel on a CPU, and only there. Each stand-in is made of all_reduce and
all_gather, which gloo has, with the engine's own mathematics: what is the identity forward is a sum
backward, and the other way. They replace the functions that fleet's layers look up at every call, and
nothing else of the engine. `_c_lookup_table`, `_ClipGrad` and `_make_group_alone` replace what works on
a CPU, but wrongly: see docs/parallel.md.
"""

import socket
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from reprod_align.backends.paddle import private
from reprod_align.backends.paddle.private import (
    COLLECTIVES,
    MAKE_GROUP,
    NAMES,
    NO_KERNEL,
    add_up_norm,
)
from reprod_align.backends.paddle.private import reduces_at_step as reduces_at_step
from reprod_align.backends.paddle.private import stop_reducing as stop_reducing
from reprod_align.backends.paddle.random import fingerprint_stream as fingerprint_stream
from reprod_align.backends.versions import look_up

import paddle
from paddle import distributed as dist
from paddle import nn
from paddle.autograd import PyLayer
from paddle.base import core
from paddle.distributed import collective, fleet
from paddle.distributed.fleet.layers.mpu import mp_layers, mp_ops
from paddle.distributed.fleet.layers.mpu.random import get_rng_state_tracker
from paddle.distributed.fleet.meta_optimizers.dygraph_optimizer import hybrid_parallel_optimizer
from paddle.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
from paddle.distributed.fleet.utils import hybrid_parallel_util, sequence_parallel_utils
from paddle.distributed.fleet.utils.hybrid_parallel_util import fused_allreduce_gradients

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


def _find_largest(tensor: Tensor, group: Group) -> Tensor:
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
    shifted = logits - _find_largest(logits.max(-1, keepdim=True), group)
    total = _Sum.apply(shifted.exp().sum(-1, keepdim=True), group)
    own = label.astype("int64") - _rank_in(group) * logits.shape[-1]
    held = (own >= 0) & (own < logits.shape[-1]) & (label != ignore_index)
    picked = paddle.take_along_axis(
        shifted, paddle.where(held, own, paddle.zeros_like(own)), -1, broadcast=False
    )
    picked = _Sum.apply(picked * held.astype(picked.dtype), group)
    loss = (total.log() - picked) * (label != ignore_index).astype(picked.dtype)
    return (loss, shifted.exp() / total) if return_softmax else loss


def _find_model_parallel() -> Group:
    return fleet.get_hybrid_communicate_group().get_model_parallel_group()


def _all_gather(tensor: Tensor) -> Tensor:
    return _join(tensor, _find_model_parallel(), 0)


def _reduce_scatter(tensor: Tensor) -> Tensor:
    group = _find_model_parallel()
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


_SEED = 20211


class Shard(NamedTuple):
    """How one tensor of a model lies on the ranks of the tensor parallel group."""

    axis: int | None
    """that is cut; None: every rank holds all of it"""
    kind: str
    """"column", "row", "vocabulary", "replicated", or "cut" where no layer of Paddle's says why"""


class Border(NamedTuple):
    """What a layer of the engine takes and gives on each rank: the axis that is cut, None for all of it."""

    kind: str
    given: int | None
    made: int | None


def start_engine(degrees: dict[str, int]) -> list[str]:
    """Start `fleet` with these degrees ("dp_degree", "mp_degree"); return the kernels that are replaced."""
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"pp_degree": 1, **degrees}
    stands_in = [] if paddle.is_compiled_with_cuda() else stand_in()
    fleet.init(is_collective=True, strategy=strategy)
    return stands_in


def set_default_dtype(dtype: str) -> None:
    """Let what is made from now on be of this dtype, unless it says another."""
    paddle.set_default_dtype(dtype)


def seed_streams() -> None:
    """Give every rank the engine's random streams: one that all share, and one of its own."""
    hcg = fleet.get_hybrid_communicate_group()
    rank, tracker = hcg.get_model_parallel_rank(), get_rng_state_tracker()
    fleet.meta_parallel.model_parallel_random_seed(_SEED)
    tracker.add("global_seed", _SEED + 10_000)
    tracker.add("local_seed", _SEED + 20_000 + rank)


def unwrap(model: nn.Layer) -> nn.Layer:
    """Return the layer that `fleet.distributed_model` or DataParallel wraps; another one itself."""
    while isinstance(model, (paddle.DataParallel, MetaParallelBase)):
        model = private.unwrap(model)
    return model


def read_rank() -> tuple[int, int, int, str]:
    """Return this process' number, the replicas, the ranks of each, and what else there is ("pp=2").

    The ranks of sharding see data of their own: they count as replicas.
    """
    hcg = fleet.get_hybrid_communicate_group()
    if hcg is None:  # DataParallel without fleet
        return paddle.distributed.get_rank(), paddle.distributed.get_world_size(), 1, ""
    tp, sharding = hcg.get_model_parallel_world_size(), hcg.get_sharding_parallel_world_size()
    replica = hcg.get_data_parallel_rank() * sharding + hcg.get_sharding_parallel_rank()
    others = {"pp": hcg.get_pipe_parallel_world_size(), "sep": hcg.get_sep_parallel_world_size()}
    return (
        replica * tp + hcg.get_model_parallel_rank(),
        hcg.get_data_parallel_world_size() * sharding,
        tp,
        ",".join(f"{name}={degree}" for name, degree in others.items() if degree > 1),
    )


def reduces_itself(wrapped: nn.Layer) -> bool:
    """Tell whether the model's backward pass averages gradients over the replicas."""
    return isinstance(wrapped, paddle.DataParallel)


def model_parallel_group() -> Any:
    """Return the group of the ranks that hold parts of one replica."""
    return fleet.get_hybrid_communicate_group().get_model_parallel_group()


def reduce_gradients(model: nn.Layer) -> None:
    """Average the gradients over the replicas, as `fleet`'s optimizer does before its step."""
    with_gradient = [p for p in model.parameters() if not p.stop_gradient]
    fused_allreduce_gradients(with_gradient, fleet.get_hybrid_communicate_group())


def innermost(optimizer: Any) -> Any:
    """Return the optimizer that `fleet.distributed_optimizer` wraps."""
    while (inner := private.find_inner(optimizer)) is not None:
        optimizer = inner
    return getattr(optimizer, "user_defined_optimizer", optimizer)


def read_shards(model: nn.Layer) -> dict[str, Shard]:
    """Return how each tensor lies on the ranks, by its name in the model."""
    found: dict[str, Shard] = {}
    for path, layer in model.named_sublayers(include_self=True):
        kind = find_kind(layer)
        parameters, buffers, _ = private.contents(layer)
        for role, tensor in [*parameters.items(), *buffers.items()]:
            if tensor is not None:
                name = f"{path}.{role}" if path else role
                found[name] = _read_shard(tensor, role, kind)
    return found


def list_turned(model: nn.Layer) -> set[str]:
    """Return the weights of the engine's linear layers, which lie transposed to PyTorch's layout."""
    return {f"{path}.weight" if path else "weight" for path, layer in model.named_sublayers(include_self=True)
            if find_kind(layer) in ("column", "row")}  # fmt: skip


def _read_shard(tensor: paddle.Tensor, role: str, kind: str) -> Shard:
    if not getattr(tensor, "is_distributed", False):
        return Shard(None, "replicated")
    axis = getattr(tensor, "split_axis", None)
    if axis is None:
        axis = {"column": len(tensor.shape) - 1, "row": 0, "vocabulary": 0}.get(kind, 0)
    return Shard(int(axis), kind or "cut")


def read_borders(model: nn.Layer) -> dict[str, Border]:
    """Return what each layer of the engine takes and gives, by its name in the model."""
    return {path: border for path, border in _find_borders(model)}


def _find_borders(model: nn.Layer) -> Iterator[tuple[str, Border]]:
    for path, layer in model.named_sublayers(include_self=True):
        if isinstance(layer, mp_layers.ColumnParallelLinear):
            yield path, Border("column", None, None if layer.gather_output else -1)
        elif isinstance(layer, mp_layers.RowParallelLinear):
            yield path, Border("row", -1 if layer.input_is_parallel else None, None)
        elif isinstance(layer, mp_layers.VocabParallelEmbedding):
            yield path, Border("vocabulary", None, None)
        elif isinstance(layer, sequence_parallel_utils.ColumnSequenceParallelLinear):
            yield path, Border("column", 0, -1)
        elif isinstance(layer, sequence_parallel_utils.RowSequenceParallelLinear):
            yield path, Border("row", -1, 0)


def find_kind(layer: nn.Layer) -> str:
    """Return "column", "row" or "vocabulary" for the engine's layers, "" for others."""
    kinds = {
        "column": (
            mp_layers.ColumnParallelLinear,
            sequence_parallel_utils.ColumnSequenceParallelLinear,
        ),
        "row": (mp_layers.RowParallelLinear, sequence_parallel_utils.RowSequenceParallelLinear),
        "vocabulary": (mp_layers.VocabParallelEmbedding,),
    }
    return next((kind for kind, classes in kinds.items() if isinstance(layer, classes)), "")
