"""Two sides at work: how they are run, what pairs them, and what has been found about them so far."""

from dataclasses import replace
from typing import Any

from reprod_align.alignment.audit import SettingDifference, compare_settings
from reprod_align.base.difference import Gap, gap
from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.base.naming import parent
from reprod_align.match import Evidence, Match, TensorPair
from reprod_align.model.leaf import LeafPair
from reprod_align.model.projection import Projection, known_pairs
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.model.trace import Array, Trace, keep_copy
from reprod_align.model.watch import Keep
from reprod_align.report import Check, Finding, Report, Stage

SEED = 20211
LAYER_ROUNDING = 1e-6
"""relative: what float32 constants inside Paddle's float64 kernels leave (docs/tolerances.md)"""
CODE_ROUNDING = 2e-7
"""the same for a composite's own code: one or two such operators"""
WHOLE_ROUNDING = 1e-4
"""relative: what that can grow to on its way to the outputs"""
FAINT = 1e-12
"""relative: what faithful outputs stay below in float64, as a rule; above it no module goes unseen"""
_PRODUCTS = {"Linear", "Embedding", "Bilinear"} | {
    f"Conv{transpose}{axes}d" for transpose in ("", "Transpose") for axes in (1, 2, 3)
}
"""sums of products: there is no constant in them that a float32 could hold"""

_AT_ONCE = 2**26  # bytes of weights that are converted before they are loaded


class Bench:
    """Two sides in their working state, their pairing, and the report that is being written."""

    def __init__(self, reference: Side, port: Side, inputs: Inputs, steps: int, dtype: str) -> None:
        """Take two sides that are in their working state."""
        self.reference, self.port = reference, port
        self.inputs, self.steps, self.dtype = inputs, steps, dtype
        self.result = Report()
        self.torch_info, self.paddle_info = reference.describe(), port.describe()
        self.torch_values = reference.values()
        self.names: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.draws: dict[tuple[object, ...], dict[Any, Any]] = {}
        self.coarse: list[str] = []
        self.noise: dict[bool, dict[str, float]] = {}
        self.eval_agrees = False
        self.eval_backward = True
        self.untied: frozenset[str] = frozenset()
        self.wanted: frozenset[str] | None = None
        self.roots: tuple[LeafPair, ...] = ()
        self.port_buffers: dict[str, Array] = {}
        self.expected = self._first_run()

    match: Match
    torch: Evidence
    paddle: Evidence
    pairs: dict[str, str]
    held: dict[str, Array]

    # ---------------------------------------------------------------- running

    def _first_run(self) -> Trace:
        """Return the reference's trace in eval mode, without gradients if the model refuses them."""
        try:
            return self.run_reference(False)
        except ModelFailure as error:
            if error.what != "backward pass":
                raise
            self.eval_backward = False
            self.remark(f"gradients are compared in train mode only: {error}")
            return self.run_reference(False)

    def run_reference(self, training: bool, loss: bool = False, keep: Keep = "all") -> Trace:
        """Return the reference's trace, with a projection of the outputs as its loss."""
        draws = KeyedDraws(SEED, {name: name for name in self.places.values()} or {"": ""})
        backward = training or self.eval_backward
        objective = None if loss else Projection(only=self.wanted if backward else frozenset())
        trace = self.reference.run(self.inputs, training, draws, keep, objective)
        self.draws[training, loss] = trace.drawn
        self.restore(self.reference, training)
        return trace

    def run_port(
        self, training: bool, keep: Any, pins: Any, loss: bool = False, backward: bool = True
    ) -> Trace:
        """Return the port's trace, pinned or free; without gradients if `backward` is False."""
        draws = KeyedDraws(SEED, self.places, self.draws.get((training, loss), {}))
        objective = None if loss else self.objective()
        backward &= training or self.eval_backward
        if objective is not None and not backward:
            objective = replace(objective, only=frozenset())
        more = {} if pins is None else {"pins": pins}
        trace = self.port.run(self.inputs, training, draws, keep, objective, **more)
        self.restore(self.port, training)
        return trace

    def objective(self) -> Projection:
        """Return the scalar of the port's outputs that stands for the reference's."""
        return Projection(dict(self.expected.outputs), self.wanted, self.roots)

    def output_pairs(self, reference: Trace, trace: Trace) -> list[LeafPair]:
        """Return which of the models' own outputs stands for which, in every mode the same."""
        return known_pairs(self.roots, dict(reference.outputs), dict(trace.outputs))

    def restore(self, side: Side, training: bool) -> None:
        """Put the weights and statistics back that a run in train mode has moved."""
        if not training:
            return
        if side is self.reference:
            side.load(self.torch_values)
        else:
            side.load(self.port_buffers)
            self.load()

    def load(self) -> None:
        """Load the reference's weights into the port, some at a time."""
        made: dict[str, Array] = {}
        for pair in self.match.pairs:
            if self.is_loaded(pair):
                made.update(pair.to_paddle(self.torch_values))
            if sum(array.nbytes for array in made.values()) > _AT_ONCE:
                self.port.load(made)
                made = {}
        self.port.load(made)

    def not_loaded(self) -> dict[str, Array]:
        """Return those of the port's tensors that keep values of their own."""
        loaded = {name for pair in self.match.pairs if self.is_loaded(pair) for name in pair.paddle}
        return {name: array for name, array in self.port.values().items() if name not in loaded}

    def is_loaded(self, pair: TensorPair) -> bool:
        """Tell whether weights carry this tensor over: a constant outside the state dict they don't.

        One that is the same but for float32 rounding is taken over all the same: both sides then
        compute with the same constant.
        """
        ours = [self.torch_info.tensors[name] for name in pair.torch]
        theirs = [self.paddle_info.tensors[name] for name in pair.paddle]
        if all(tensor.is_persistent for tensor in (*ours, *theirs)):
            return True
        made = pair.to_paddle(self.torch_values)
        return all(gap(values, self.held[name], 1e-6).ok for name, values in made.items())

    def port_start(self) -> dict[str, Array]:
        """Return the port's tensors as every run starts from them."""
        start = dict(self.port_buffers)
        for pair in self.match.pairs:
            if self.is_loaded(pair):
                made = pair.to_paddle(self.torch_values)
                start.update({name: keep_copy(array) for name, array in made.items()})
        return start

    def may_round(self, ours: str, theirs: str) -> bool:
        """Tell whether a small difference in a pair of modules can be float32's, of a constant or of all."""
        exact = (
            theirs in self.paddle_info.stock and self.paddle_info.modules[theirs].kind in _PRODUCTS
        )
        if exact and self.dtype == "float64":
            return False
        return not self.settings_differ(ours, theirs)

    def settings_differ(self, ours: str, theirs: str) -> bool:
        """Tell whether a pair of modules is known to be set differently."""
        if ours not in self.torch_info.modules or theirs not in self.paddle_info.modules:
            return False
        return any(difference.conclusive for difference in self.differences(ours, theirs))

    def differences(self, ours: str, theirs: str) -> list[SettingDifference]:
        """Return the settings in which a pair of modules differs."""
        settings = self.torch_info.modules[ours], self.paddle_info.modules[theirs]
        fused = any(
            len(pair.torch) != len(pair.paddle) and ours in map(parent, pair.torch)
            for pair in self.match.pairs
        )
        return compare_settings(*settings, fused)

    def add(self, stage: Stage, ours: str, theirs: str, message: str, found: Gap) -> None:
        """Add a finding."""
        self.result.findings.append(
            Finding(stage, ours, theirs, message, found.difference, found.tolerance)
        )

    def check(
        self, stage: Stage, what: str, relative: float, passed: bool, noise: float | None = None
    ) -> None:
        """Note a comparison that was made."""
        self.result.checks.append(Check(stage, what, relative, passed, noise))

    def remark(self, text: str) -> None:
        """Note something that is no fault, once."""
        if text not in self.result.remarks:
            self.result.remarks.append(text)

    def note_coarse(self, place: str, relative: float) -> None:
        """Note a place at which one side computes with float32 inside."""
        if place not in self.coarse:
            self.coarse.append(place)
            self.remark(
                f"agrees to float32 only: {place} loses precision (relative {relative:.1e})"
            )

    def found_at(self, ours: str, theirs: str) -> bool:
        """Tell whether a place has a finding."""
        return any((f.torch_name, f.paddle_name) == (ours, theirs) for f in self.result.findings)
