"""Faults of ports that run on several ranks, planted as each rank makes the user's own port.

A fault is planted on all ranks alike; what differs between them follows from a rank's place. Where the
port has no place for it, a plant raises NoPlace.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from reprod_align.backends import replace_attribute
from reprod_align.backends.paddle import parallel as engine
from reprod_align.selftest.plant import (
    NoPlace,
    change_tensors,
    replace_forward,
    require,
    take_middle,
)

import paddle
from paddle import distributed as dist
from paddle import nn
from paddle.distributed.fleet.layers.mpu import mp_ops
from paddle.distributed.fleet.layers.mpu.random import get_rng_state_tracker
from paddle.nn import functional

_OWN_STREAM: Final = "local_seed"


@dataclass
class PlantedPort:
    """What a rank made of the user's port, while a fault is planted in it."""

    made: Any
    """what paddle_model() returned, wrapped by the engine or not"""
    functions: dict[str, Callable[..., Any] | None]
    """the file's, by their names in it: "paddle_loss", "paddle_optimizer", "paddle_scheduler" """
    part: int
    """this rank's number in its group of tensor parallel"""
    parts: int
    replica: int
    replicas: int
    group: Any
    """of tensor parallel"""
    stack: ExitStack
    """what is undone before the next port is made"""
    acted: bool = True
    """False as long as what is planted has changed nothing"""

    @property
    def model(self) -> nn.Layer:
        """The model within the engine's wrapper."""
        return engine.unwrap(self.made)

    def layer(self, lacks: str, *kinds: str) -> tuple[str, Any]:
        """Return path and layer of the middle one of the engine's layers of these kinds.

        Raises NoPlace, with the text `lacks`, without any.
        """
        found = [(path, layer) for path, layer in self.model.named_sublayers()
                 if engine.find_kind(layer) in kinds]  # fmt: skip
        return take_middle(found, lacks)

    def parameter(self, is_cut: bool) -> tuple[str, Any]:
        """Return the middle one of the trained parameters that are cut (or whole), and its name."""
        found = [(name, one) for name, one in self.model.named_parameters()
                 if not one.stop_gradient and bool(one.is_distributed) == is_cut]  # fmt: skip
        return take_middle(found, f"no parameter is {'cut' if is_cut else 'whole'} on every rank")

    @property
    def is_last(self) -> bool:
        """Whether this is the last rank of all."""
        return (self.part, self.replica) == (self.parts - 1, self.replicas - 1)

    def replace(self, layer: nn.Layer, forward: Callable[..., Any]) -> None:
        """Let forward(own, *arguments) run in place of the layer's."""
        self.stack.enter_context(replace_forward(layer, forward))


PlantOnRank = Callable[[PlantedPort], str]
"""plants a fault and returns the name of the layer or parameter, "" for the model or its training"""


# ---------------------------------------------------------------------- layers that are cut


def _in_row(
    compute: Callable[[PlantedPort, Any, Any], Any], needs_bias: bool = False
) -> PlantOnRank:
    """Return a plant: compute(port, layer, x) in place of a RowParallelLinear."""

    def plant(port: PlantedPort) -> str:
        path, layer = port.layer("no RowParallelLinear", "row")
        if engine.read_borders(port.model)[path] != engine.Border("row", -1, None):
            raise NoPlace(
                "its RowParallelLinear takes whole inputs, or gives parts of the sequence"
            )
        if needs_bias and layer.bias is None:
            raise NoPlace("its RowParallelLinear has no bias")
        port.replace(layer, lambda own, x: compute(port, layer, x))
        return path

    return plant


def _average(port: PlantedPort, layer: Any, x: Any) -> Any:
    mean = mp_ops._mp_allreduce(functional.linear(x, layer.weight), group=port.group) / port.parts
    return mean if layer.bias is None else mean + layer.bias


def _multiply(port: PlantedPort, layer: Any, x: Any) -> Any:
    return functional.linear(x, layer.weight, layer.bias)


def _sum_biases(port: PlantedPort, layer: Any, x: Any) -> Any:
    return mp_ops._mp_allreduce(_multiply(port, layer, x), group=port.group)


def _in_column(
    compute: Callable[[PlantedPort, Callable[..., Any], Any, Any], Any], takes_whole: bool = False
) -> PlantOnRank:
    """Return a plant: compute(port, own, layer, x) in place of a ColumnParallelLinear, which is `own`."""

    def plant(port: PlantedPort) -> str:
        lacks = "no ColumnParallelLinear whose output stays cut"
        path, layer = port.layer(lacks, "column")
        border = engine.read_borders(port.model)[path]
        if border.made is None:
            raise NoPlace(lacks)
        if takes_whole and border.given is not None:
            raise NoPlace("its ColumnParallelLinear takes parts of the sequence")
        port.replace(layer, lambda own, x: compute(port, own, layer, x))
        return path

    return plant


def _skip_identity(port: PlantedPort, own: Callable[..., Any], layer: Any, x: Any) -> Any:
    return _multiply(port, layer, x)


def _exchange_outputs(port: PlantedPort, own: Callable[..., Any], layer: Any, x: Any) -> Any:
    whole = mp_ops._c_concat(own(x), group=port.group)
    width = layer.weight.shape[-1]
    start = (port.part + 1) % port.parts * width
    return whole[..., start : start + width]


def _scale_part(port: PlantedPort) -> str:
    path, layer = port.layer("no layer of the engine", "column", "row")
    if port.part == port.parts - 1:
        port.replace(
            layer, lambda own, *given: change_tensors(own(*given), lambda made: made * 1.01)
        )
    return path


def _shift_vocabulary(port: PlantedPort) -> str:
    path, layer = port.layer("no VocabParallelEmbedding", "vocabulary")
    if port.part == port.parts - 1:
        layer.vocab_start_index -= 1
    return path


# ---------------------------------------------------------------------- gradients


def _in_gradient(change: Callable[[PlantedPort, Any], Any], is_cut: bool = False) -> PlantOnRank:
    """Return a plant: change(port, gradient) in place of a parameter's gradient."""

    def plant(port: PlantedPort) -> str:
        name, parameter = port.parameter(is_cut)
        parameter.register_hook(lambda gradient: change(port, gradient))
        return name

    return plant


def _exchange_gradients(port: PlantedPort, gradient: Any) -> Any:
    parts: list[Any] = []
    dist.all_gather(parts, gradient.contiguous(), group=port.group)
    return parts[(port.part + 1) % port.parts]


def _skip_average(port: PlantedPort) -> str:
    if engine.reduces_itself(port.made):
        port.stack.enter_context(port.made.no_sync())
        return ""
    return _in_optimizer(port, engine.stop_reducing)


# ---------------------------------------------------------------------- training


def _in_loss(factor: Callable[[PlantedPort], float]) -> PlantOnRank:
    """Return a plant: the loss times a factor."""

    def plant(port: PlantedPort) -> str:
        own, times = port.functions["paddle_loss"], factor(port)
        if own is None:
            raise NoPlace("the file defines no paddle_loss")
        port.functions["paddle_loss"] = lambda output: own(output) * times
        return ""

    return plant


def _change_rate(port: PlantedPort) -> str:
    if port.functions["paddle_scheduler"] is not None:
        raise NoPlace("a schedule sets the learning rate")

    def change(optimizer: Any) -> None:
        inner = engine.innermost(optimizer)
        if port.is_last:
            inner.set_lr(inner.get_lr() * 1.1)

    return _in_optimizer(port, change)


def _drift(port: PlantedPort) -> str:
    name, parameter = port.parameter(False)

    def change(optimizer: Any) -> None:
        own = optimizer.step

        def step_and_drift(*given: Any, **options: Any) -> Any:
            own(*given, **options)
            if port.part == port.parts - 1:
                with paddle.no_grad():
                    parameter.scale_(1.001)

        optimizer.step = step_and_drift

    return _in_optimizer(port, change, name)


def _in_optimizer(port: PlantedPort, change: Callable[[Any], None], place: str = "") -> str:
    make = port.functions["paddle_optimizer"]
    if make is None:
        raise NoPlace("the file defines no paddle_optimizer")

    def make_changed(model: Any) -> Any:
        made = make(model)
        change(made)
        return made

    port.functions["paddle_optimizer"] = make_changed
    return place


# ---------------------------------------------------------------------- dropout


def _repeat_masks(port: PlantedPort) -> str:
    _require_dropouts(port.model)
    tracker = get_rng_state_tracker()

    @contextmanager
    def stay(name: str = "") -> Any:
        port.acted = True
        yield

    port.acted = False
    port.stack.enter_context(replace_attribute(tracker, "rng_state", stay))
    return ""


def _draw_apart(port: PlantedPort) -> str:
    found = _require_dropouts(port.model)
    tracker, depth = get_rng_state_tracker(), [0]
    enter = tracker.rng_state

    @contextmanager
    def note(name: str = _OWN_STREAM) -> Any:
        depth[0] += 1
        try:
            with enter(name):
                yield
        finally:
            depth[0] -= 1

    def draw(own: Callable[..., Any], *given: Any) -> Any:
        if depth[0]:
            return own(*given)
        port.acted = True
        with enter(_OWN_STREAM):
            return own(*given)

    port.stack.enter_context(replace_attribute(tracker, "rng_state", note))
    port.acted = False
    for layer in found:
        port.replace(layer, draw)
    return ""


def _require_dropouts(model: nn.Layer) -> list[nn.Layer]:
    """Return the layers that drop something out. Raises NoPlace if there are none."""
    found = [layer for layer in model.sublayers() if isinstance(layer, nn.Dropout) and layer.p > 0]
    return require(found, "no Dropout with a probability above 0")


# ---------------------------------------------------------------------- the table

_FAULTS: Final[Mapping[str, tuple[str, PlantOnRank]]] = {
    "row layer not summed": ("tp", _in_row(_multiply)),
    "row layer averaged": ("tp", _in_row(_average)),
    "row layer's bias added on each rank": ("tp", _in_row(_sum_biases, needs_bias=True)),
    "column layer's gradient not summed": ("tp", _in_column(_skip_identity, takes_whole=True)),
    "column layer gives another rank's part": ("tp", _in_column(_exchange_outputs)),
    "one rank's layer scaled": ("tp", _scale_part),
    "vocabulary shifted by one on a rank": ("tp", _shift_vocabulary),
    "gradient counted on each rank": (
        "tp", _in_gradient(lambda port, gradient: gradient * port.parts),
    ),
    "gradient missing on a rank": (
        "tp", _in_gradient(lambda port, gradient: gradient * float(port.part != port.parts - 1)),
    ),
    "gradient of another rank's part": ("tp", _in_gradient(_exchange_gradients, is_cut=True)),
    "gradient summed over the replicas": (
        "dp", _in_gradient(lambda port, gradient: gradient * port.replicas),
    ),
    "gradient of a replica left out": (
        "dp",
        _in_gradient(lambda port, gradient: gradient * float(port.replica != port.replicas - 1)),
    ),
    "gradients not averaged over the replicas": ("dp", _skip_average),
    "loss divided by the ranks": ("tp", _in_loss(lambda port: 1 / port.parts)),
    "loss of one rank apart": ("", _in_loss(lambda port: 1.01 if port.is_last else 1.0)),
    "learning rate of one rank": ("", _change_rate),
    "whole weight drifts on a rank": ("tp", _drift),
    "dropout repeated on parts": ("tp", _repeat_masks),
    "dropout of whole tensors drawn apart": ("tp", _draw_apart),
}  # fmt: skip
"""kind of fault -> the axis of the mesh that it needs ("": any mesh will do), and what plants it"""


def list_rank_faults(axes: Iterable[str]) -> list[str]:
    """Return the kinds of faults that a mesh with these axes ("tp", "dp", "sp") can have."""
    given = {"", *axes}
    return [kind for kind, (needed, _) in _FAULTS.items() if needed in given]


def plant_on_rank(kind: str, port: PlantedPort) -> str:
    """Plant a fault in what this rank made; return where. Raises NoPlace if the port has no place for it."""
    return _FAULTS[kind][1](port)
