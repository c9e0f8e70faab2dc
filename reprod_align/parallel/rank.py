"""One rank of a parallel run: python -m reprod_align.parallel.rank, started by paddle.distributed.launch.

It connects to the process that judges, starts `fleet`, and serves the port of one pair file after the
other. The port is a `LocalSide` that asks for its pins and its objective while the model runs: this rank
holds only parts of the tensors that they are made for.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from reprod_align.backends.paddle import parallel as engine
from reprod_align.backends.paddle import settings, side
from reprod_align.backends.paddle.random import shared_random
from reprod_align.base.blocks import Array
from reprod_align.base.console import quieten, without_warnings
from reprod_align.errors import ReprodError
from reprod_align.model import (
    NO_PINS,
    Call,
    LocalSide,
    ModelInfo,
    ModuleSettings,
    OptimizerSettings,
    Pin,
)
from reprod_align.pair.child import Served
from reprod_align.pair.file import PairFile, catch_error, open_file
from reprod_align.pair.wire import Wire
from reprod_align.parallel import Mesh, Placement, guess, parse_mesh
from reprod_align.parallel.launch import ADDRESS, KEY, LIFELINE, MESH, Asked, OpenedPort
from reprod_align.randomness import DrawFunction, KeyedDraws, Shape, lay_out

import numpy as np
from numpy.typing import NDArray

NoteStream = Callable[[Any, Shape, bool], None]
"""takes a draw's place, its shape on this rank, and whether it is of a part"""


@dataclass
class ShardedDraws(KeyedDraws):
    """The draws of one pass on one rank."""

    mesh: Mesh = field(default_factory=Mesh)
    rank: int = 0
    note: NoteStream = lambda place, shape, is_cut: None

    def _draw(self, purpose: int, shape: Shape, draw: DrawFunction) -> NDArray[Any]:
        local = tuple(shape)
        key, source = self._begin(local)
        wanted = self.asked.get(key, local)
        placement = next(guess(local, wanted, self.mesh), Placement())
        whole = placement.enlarge(local, self.mesh)
        self.note(key, local, placement.tp is not None)
        self.drawn[key] = whole
        return placement.scatter(lay_out(draw, source, wanted, whole), self.mesh, self.rank)


class _AskingPins:
    """Asks the judge at every call what to put in: it knows the whole tensors."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def inputs(self, call: Call) -> dict[str, Pin]:
        return self._ask(call, "inputs")

    def outputs(self, call: Call) -> dict[str, Pin]:
        return self._ask(call, "outputs")

    def _ask(self, call: Call, which: str) -> dict[str, Pin]:
        leaves = {
            at: (leaf.array, leaf.differentiable) for at, leaf in getattr(call, which).items()
        }
        self._wire.send(Asked(which, call.path, call.index, call.parent, leaves))
        answer: dict[str, Pin] = _require(self._wire.receive())
        return answer


class _AskingObjective:
    """A scalar of this rank's outputs, with the weights that the judge gives their elements."""

    only: frozenset[str] | None = None
    """as of a `Projection`: the judge gives no weights to outputs that do not count"""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __call__(self, framework: Any, outputs: Mapping[str, Any]) -> Any:
        leaves = {at: (framework.array(tensor), bool(framework.carries_gradient(tensor)))
                  for at, tensor in outputs.items()}  # fmt: skip
        self._wire.send(Asked("objective", "", 0, None, leaves))
        weights: dict[str, Array] = _require(self._wire.receive())
        tensors = [outputs[at] for at in weights]
        return framework.weighted_sum(tensors, weights.values()) if tensors else None


def _require(answer: Any) -> Any:
    if isinstance(answer, ReprodError):
        raise answer
    return answer


class RankSide(LocalSide):
    """The port on this rank."""

    def __init__(
        self, made: Any, functions: Sequence[Any], wire: Wire, mesh: Mesh, rank: int
    ) -> None:
        """Take what the file's paddle_model() returned, wrapped by the engine or not."""
        super().__init__(side, settings, shared_random, engine.unwrap(made), *functions)
        self._wrapped, self._wire, self._mesh, self._rank = made, wire, mesh, rank
        self._late: bool | None = None
        self.streams: list[tuple[Any, ...]] = []

    @property
    def entry(self) -> Any:
        """What is called: with the wrapper around the model."""
        return self._wrapped

    def describe(self) -> ModelInfo:
        """Return what `LocalSide` does; the engine's layers are Linear and Embedding."""
        info = super().describe()
        modules = dict(info.modules)
        for path, border in engine.read_borders(self.model).items():
            kind = "Embedding" if border.kind == "vocabulary" else "Linear"
            modules[path] = ModuleSettings(kind, modules[path].class_name, {})
        return replace(info, modules=modules)

    def run(
        self, inputs: Any, training: bool, draws: KeyedDraws, *rest: Any, **options: Any
    ) -> Any:
        """Run forward and backward once; see `Side.run`."""
        self.streams = []
        sharded = ShardedDraws(
            draws.seed,
            draws.names,
            draws.asked,
            mesh=self._mesh,
            rank=self._rank,
            note=self._note_stream,
        )
        return super().run(inputs, training, sharded, *rest, **options)

    def _note_stream(self, key: Any, shape: Any, is_cut: bool) -> None:
        self.streams.append((key[0][0], shape, is_cut, engine.fingerprint_stream()))

    def reduce_gradients(self) -> None:
        """Average gradients over the replicas where the engine does it at the optimizer's step."""
        if self._mesh.dp > 1 and not engine.reduces_itself(self._wrapped) and self._reduces_late():
            engine.reduce_gradients(self.model)

    def _reduces_late(self) -> bool:
        """Tell whether gradients are averaged at the optimizer's step only, or there is no optimizer."""
        if self._late is None:
            made = None if self.optimizer is None else self._make()[0]
            self._late = made is None or engine.reduces_at_step(made)
        return self._late

    def optimizer_settings(self) -> OptimizerSettings:
        """Return how the optimizer treats each parameter."""
        optimizer, _ = self._make()
        found: OptimizerSettings = settings.optimizer_settings(
            engine.innermost(optimizer), self.model
        )
        return found


class _ServedRank(Served):
    """One pair file's port, and its working state."""

    def __init__(
        self, file: PairFile, wire: Wire, mesh: Mesh, rank: int, fault: str, stack: ExitStack
    ) -> None:
        engine.seed_streams()
        only_dp = mesh.tp == 1  # DataParallel's buckets keep the dtype in which it is made
        engine.set_default_dtype("float64" if only_dp else "float32")
        try:
            made = file.find_maker("paddle")()
        finally:
            engine.set_default_dtype("float32")
        if not side.is_module(made):
            raise ReprodError(
                f"paddle_model() returned a {type(made).__name__}, no paddle.nn.Layer"
            )
        obstacle = side.find_obstacle(made)
        if obstacle:
            raise ReprodError(f"paddle_model() {obstacle}")
        functions = file.find_functions("paddle")
        self._planted = self._no_place = ""
        self._acts: Callable[[], bool] = lambda: True
        if fault:
            from reprod_align.selftest.plant import NoPlace
            from reprod_align.selftest.ranks import PlantedPort, plant_on_rank

            replica, part = mesh.coordinates(rank)
            group = engine.model_parallel_group()
            port = PlantedPort(made, functions, part, mesh.tp, replica, mesh.dp, group, stack)
            try:
                self._planted = plant_on_rank(fault, port)
            except NoPlace as reason:
                self._no_place = str(reason)
            self._acts = lambda: port.acted
            made = port.made
        self._rank_side = RankSide(made, [*functions.values()], wire, mesh, rank)
        super().__init__(file, self._rank_side)
        self._wire = wire

    def describe(self) -> OpenedPort:
        model = self._side.model
        shards = {n: (s.axis, s.kind) for n, s in engine.read_shards(model).items()}
        borders = {p: (b.given, b.made) for p, b in engine.read_borders(model).items()}
        given = self.list_functions()
        return OpenedPort(self._side.name, given, shards, borders, self._planted, self._no_place)

    def answer(self, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        if name == "acted":
            return self._acts()
        objective: Any = _AskingObjective(self._wire)
        if name == "run":
            *given, asks, pinned = arguments
            pins = _AskingPins(self._wire) if pinned else NO_PINS
            return self._rank_side.run(*given, objective if asks else None, pins=pins, **options)
        if name == "train":
            inputs, steps, draws, asks, gradients, rates = arguments
            asked = objective if asks else None
            return self._side.train(inputs, steps, draws, asked, gradients, rates)
        return super().answer(name, arguments, options)


def _open(
    stack: ExitStack, path: Path, wire: Wire, mesh: Mesh, rank: int, fault: str
) -> _ServedRank:
    return _ServedRank(
        stack.enter_context(open_file(path, PairFile)), wire, mesh, rank, fault, stack
    )


def serve(wire: Wire, mesh: Mesh, rank: int) -> None:
    """Answer questions until the other end is closed."""
    served: _ServedRank | None = None
    with ExitStack() as stack:
        path = Path()
        while True:
            try:
                name, arguments, options = wire.receive()
            except EOFError:
                return
            if name == "open":
                path = Path(arguments[0])
                seen = replace(mesh, order=arguments[1])
                stack.close()
                served = None

                made = catch_error(
                    path, partial(_open, stack, path, wire, seen, rank, arguments[2])
                )
                served = None if isinstance(made, ReprodError) else made
                wire.send(made if served is None else catch_error(path, served.describe))
            elif served is not None:
                wire.send(catch_error(path, partial(served.answer, name, arguments, options)))


def _end_with(lifeline: "Connection[Any, Any]") -> None:
    """End this process at once when the other end of the lifeline is gone, whatever it waits for."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)


def main() -> None:
    """Connect, start the engine and serve."""
    rank, key = int(os.environ["PADDLE_TRAINER_ID"]), bytes.fromhex(os.environ[KEY])
    lifeline = Client(os.environ[LIFELINE], "AF_UNIX", key)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    connection = Client(os.environ[ADDRESS], "AF_UNIX", key)
    wire, mesh = Wire(connection), parse_mesh(os.environ[MESH])
    wire.send((rank, os.getpid()))
    degrees = {"dp_degree": mesh.dp, "mp_degree": mesh.tp}
    started = catch_error(Path(__file__), partial(engine.start_engine, degrees))
    wire.send(started)
    if not isinstance(started, ReprodError):
        np.seterr(all="ignore")
        serve(wire, mesh, rank)
    os._exit(0)  # gloo's threads may wait for a rank that has ended


if __name__ == "__main__":
    quieten()
    with without_warnings():
        main()
