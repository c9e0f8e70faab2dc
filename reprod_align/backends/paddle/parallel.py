"""What a rank of a parallel run asks of Paddle: its engine, and how a model's tensors lie on the ranks.

The engine is Paddle's own `paddle.distributed.fleet`. `start_engine` puts the stand-ins of
`collectives` in the place of the kernels that a CPU lacks, and only there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from reprod_align.backends.paddle import private
from reprod_align.backends.paddle.collectives import stand_in
from reprod_align.backends.paddle.private import reduces_at_step as reduces_at_step
from reprod_align.backends.paddle.private import stop_reducing as stop_reducing
from reprod_align.backends.paddle.random import fingerprint_stream as fingerprint_stream

import paddle
from paddle import nn
from paddle.distributed import fleet
from paddle.distributed.fleet.layers.mpu import mp_layers
from paddle.distributed.fleet.layers.mpu.random import get_rng_state_tracker
from paddle.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
from paddle.distributed.fleet.utils import sequence_parallel_utils
from paddle.distributed.fleet.utils.hybrid_parallel_util import fused_allreduce_gradients

_SEED = 20211
_STREAMS = "global_seed", "local_seed"  # the names that PaddleNLP's models ask for


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
    """Start `fleet` with these degrees ("dp_degree", "mp_degree"); return what stands in for kernels."""
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
    others = {
        "pp": hcg.get_pipe_parallel_world_size(),
        "sep": hcg.get_sep_parallel_world_size(),
    }
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
