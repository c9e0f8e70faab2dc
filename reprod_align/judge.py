"""Runs two sides through the stages and collects what differs, in causal order."""

from collections.abc import Mapping
from typing import Any

from reprod_align.audit import SettingDifference, compare_settings
from reprod_align.causes import loss_cause
from reprod_align.errors import ReprodError
from reprod_align.explain import cause_of
from reprod_align.keyed_draws import KeyedDraws
from reprod_align.leaf import JUDGE, Gap, LeafPair, gap, unpaired
from reprod_align.locate import Fault, backward_faults, forward_faults
from reprod_align.match import (
    Match,
    TensorPair,
    certain_places,
    evidence,
    exchanged,
    match,
    module_pairs,
    orders,
    pair_by_value,
)
from reprod_align.naming import parent
from reprod_align.pins import EndPins, ReferencePins
from reprod_align.projection import Projection, root_pairs
from reprod_align.report import STAGES, Check, Finding, Report, Stage
from reprod_align.side import Inputs, ModelFailure, Side
from reprod_align.statistics_check import paddle_statistic
from reprod_align.trace import Array, Trace
from reprod_align.training import compare_training
from reprod_align.weights_check import left_over, weight_findings

import numpy as np

_SEED = 20211
_LAYER_ROUNDING = 1e-6
"""relative: what float32 constants inside Paddle's float64 kernels leave (docs/tolerances.md)"""
_CODE_ROUNDING = 2e-7
"""the same for a composite's own code: one or two such operators"""
_WHOLE_ROUNDING = 1e-4
"""relative: what that can grow to on its way to the outputs"""
_NOISE = 100.0  # times what a few ulp in the weights do is still noise
_TRIES = 48  # exchanges of look-alikes that are tried before giving up


class Judge:
    """Two sides at work, and what has been found about them so far."""

    def __init__(self, reference: Side, port: Side, inputs: Inputs, steps: int, dtype: str) -> None:
        """Take two sides that are in their working state."""
        self.reference, self.port = reference, port
        self.inputs, self.steps, self.dtype = inputs, steps, dtype
        self.result = Report()
        self.draws: dict[tuple[object, ...], dict[Any, Any]] = {}
        self.coarse: list[str] = []
        self.noise: dict[bool, dict[str, float]] = {}
        self.wanted: frozenset[str] | None = None

    def report(self, name_map: Mapping[str, str] | None, copy_weights: bool) -> Report:
        """Run all stages and return the report."""
        self.torch_info, self.paddle_info = self.reference.describe(), self.port.describe()
        self.torch_values = self.reference.values()
        self.names: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.expected = self.run_reference(False)
        self.pair(name_map, copy_weights)
        try:
            self.judge_mode(False)
            self.judge_loss()
            self.judge_mode(True)
            self.judge_steps()
        except ModelFailure as error:
            if error.framework != self.port.name:
                raise
            self.failed(error)
        self.judge_leftovers()
        self.judge_settings()
        return self.finished()

    # ---------------------------------------------------------------- pairing

    def pair(self, name_map: Mapping[str, str] | None, copy_weights: bool) -> None:
        """Pair tensors and modules, compare the weights if they are not to be copied, load them."""
        self.held = held = self.port.values()
        first_calls = list(dict.fromkeys(call.path for call in self.expected.calls))
        self.torch = evidence(self.torch_info, first_calls, self.torch_values, "PyTorch")
        self.paddle = evidence(self.paddle_info, self.port_order(), held, "Paddle")
        self.use(match(self.torch, self.paddle, name_map))
        if not copy_weights:
            for finding in weight_findings(self.match, self.torch_values, held):
                self.result.findings.append(finding)
            self.check("weights", "weights as they came", 0.0, not self.result.findings)
        self.load()
        self.try_exchanges()
        self.pair_by_value()

    def port_order(self) -> list[str]:
        """Return the port's modules in calling order; [] if it does not run with its own weights."""
        try:
            trace = self.port.run(self.inputs, False, KeyedDraws(_SEED, {"": ""}), "none")
        except ModelFailure:
            return []
        return list(dict.fromkeys(call.path for call in trace.calls))

    def use(self, found: Match) -> None:
        """Take this match as the pairing."""
        self.match = found
        self.pairs = module_pairs(found, self.torch, self.paddle)
        self.named()

    def named(self) -> None:
        """Note what follows from the module pairs."""
        self.names = {theirs: ours for ours, theirs in self.pairs.items()}
        self.places = certain_places(self.pairs, self.torch, self.paddle)
        self.result.pairs = self.pairs

    def load(self) -> None:
        """Load the reference's weights into the port."""
        for pair in self.match.pairs:
            if self.is_loaded(pair):
                self.port.load(pair.to_paddle(self.torch_values))

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

    def try_exchanges(self) -> None:
        """Where look-alikes could be exchanged and the outputs differ, try; keep what agrees."""
        if not self.match.doubts or self.outputs_agree():
            return
        found, tries = self.match, 0
        for groups in found.doubts:
            for order in orders(len(groups[0])):
                tries += 1
                if tries > _TRIES:
                    break
                self.use(exchanged(found, groups, order))
                self.load()
                if self.outputs_agree():
                    paths = [path for group in groups for path in group]
                    named = ", ".join(f"{path} with {self.match.owners[path]}" for path in paths)
                    self.result.remarks.append(f"paired by trying, since names don't tell: {named}")
                    return
        self.use(found)
        self.load()

    def pair_by_value(self) -> None:
        """Pair what holds no tensors anew by what comes out of it in eval mode."""
        try:
            trace = self.run_port(False, "outputs", None)
        except ModelFailure:
            return
        pair_by_value(self.pairs, self.torch, self.paddle, self.expected, trace)
        self.named()
        pairs = root_pairs(dict(self.expected.outputs), dict(trace.outputs))
        self.wanted = frozenset(pair.expected for pair in pairs)
        missing = [at or "its output" for at in self.expected.outputs if at not in self.wanted]
        if missing:
            self.remark(f"outputs of the PyTorch model without a counterpart: {', '.join(missing)}")

    def outputs_agree(self) -> bool:
        """Tell whether the port's outputs in eval mode are the reference's."""
        try:
            trace = self.run_port(False, "ends", None)
        except ModelFailure:
            return False
        return all(found.ok for _, found in self.output_gaps(self.expected, trace))

    # ---------------------------------------------------------------- running

    def run_reference(self, training: bool, loss: bool = False) -> Trace:
        """Return the reference's full trace, with a projection of the outputs as its loss."""
        draws = KeyedDraws(_SEED, {name: name for name in self.places.values()} or {"": ""})
        objective = None if loss else Projection(only=self.wanted)
        trace = self.reference.run(self.inputs, training, draws, "all", objective)
        self.draws[training, loss] = trace.drawn
        self.restore(self.reference, training)
        return trace

    def run_port(self, training: bool, keep: Any, pins: Any, loss: bool = False) -> Trace:
        """Return the port's trace, pinned or free."""
        draws = KeyedDraws(_SEED, self.places, self.draws.get((training, loss), {}))
        objective = None if loss else Projection(dict(self.expected.outputs), self.wanted)
        more = {} if pins is None else {"pins": pins}
        trace = self.port.run(self.inputs, training, draws, keep, objective, **more)
        self.restore(self.port, training)
        return trace

    def restore(self, side: Side, training: bool) -> None:
        """Put the weights and statistics back that a run in train mode has moved."""
        if not training:
            return
        if side is self.reference:
            side.load(self.torch_values)
        else:
            side.load(self.port_buffers)
            self.load()

    def port_start(self) -> dict[str, Array]:
        """Return the port's tensors as every run starts from them."""
        start = dict(self.port_buffers)
        for pair in self.match.pairs:
            if self.is_loaded(pair):
                start.update(pair.to_paddle(self.torch_values))
        return start

    # ---------------------------------------------------------------- the stages

    def judge_mode(self, training: bool) -> None:
        """Compare one forward and backward pass, in eval or in train mode."""
        mode = "train" if training else "eval"
        again = training or self.wanted != frozenset(self.expected.outputs) or self.expected.drawn
        reference = self.run_reference(training) if again else self.expected
        if not training:
            self.expected = reference
            self.port_buffers = self.port.values()
        natural = self.run_port(training, "outputs", None)
        gaps = self.output_gaps(reference, natural)
        gradients = self.gradient_gaps(reference, natural, training)
        misfit = unpaired(reference.outputs, natural.outputs, [pair for pair, _ in gaps])
        outputs_ok = bool(gaps) and misfit is None and all(found.ok for _, found in gaps)
        gradients_ok = all(found.ok for _, _, found in gradients)
        self.check("forward", f"outputs, {mode} mode", _worst([g for _, g in gaps]), outputs_ok)
        if gradients:
            self.check("backward", f"gradients, {mode} mode",
                       _worst([g for *_, g in gradients]), gradients_ok)  # fmt: skip
        if not (outputs_ok and gradients_ok):
            self.locate(reference, natural, training, outputs_ok, gradients_ok, gaps, gradients)
        if training:
            self.judge_statistics(reference, natural)

    def locate(
        self,
        reference: Trace,
        natural: Trace,
        training: bool,
        outputs_ok: bool,
        gradients_ok: bool,
        gaps: list[tuple[LeafPair, Gap]],
        gradients: list[tuple[str, str, Gap]],
    ) -> None:
        """Find the modules at fault and add a finding for each."""
        pins = self.reference_pins(reference, natural, False)
        traces = [self.run_port(training, "all", pins)]
        try:
            giving = self.reference_pins(reference, natural, True)
            traces.append(self.run_port(training, "all", giving))
        except ModelFailure:  # a mask of the other convention need not fit
            traces.append(traces[0])
        found = []
        if not outputs_ok:
            found += forward_faults(reference, traces[0], traces[1], pins)
        if not gradients_ok or found:
            found += backward_faults(reference, traces[0], pins)
        before = len(self.result.findings)
        for fault in found:
            if fault.kink:
                self.remark(f"{fault.torch_path}: its gradient differs where its input is exactly 0, "
                            "where each framework settles the slope its own way")  # fmt: skip
            elif not self.is_coarse(fault, training):
                self.add_fault(fault, reference, training)
        if not gradients_ok:
            self.parameter_faults(reference, traces[0], training)
        excused = outputs_ok and any(fault.kink for fault in found)
        worst = max(
            (g.relative for g in [*(g for _, g in gaps), *(g for *_, g in gradients)]),
            default=np.inf,
        )
        excused |= bool(self.coarse) and worst <= _WHOLE_ROUNDING
        if len(self.result.findings) == before and not excused and not self.explained(outputs_ok):
            self.unlocated(reference, natural, outputs_ok, gaps, gradients, training)

    def reference_pins(self, reference: Trace, natural: Trace, constants: bool) -> ReferencePins:
        """Return what gives the port the reference's numbers."""
        modules = self.torch_info.modules, self.paddle_info.modules
        same = {
            theirs
            for theirs, ours in self.names.items()
            if modules[0][ours].kind and modules[0][ours].kind == modules[1][theirs].kind
        }
        altered = {
            theirs for theirs, ours in self.names.items() if self.settings_differ(ours, theirs)
        }
        stock = self.paddle_info.stock
        return ReferencePins(reference, natural, self.names, stock, same, altered, constants)

    def is_coarse(self, fault: Fault, training: bool) -> bool:
        """Tell whether a fault is float32 rounding inside a layer; note it if so."""
        limit = _LAYER_ROUNDING if fault.stock and not fault.own_code else _CODE_ROUNDING
        at = fault.torch_path, fault.paddle_path
        if not fault.gap.relative <= limit or self.settings_differ(*at):
            return False
        self.note_coarse(at[0] or "the model", fault.gap.relative)
        return True

    def note_coarse(self, place: str, relative: float) -> None:
        """Note a place at which one side computes with float32 inside."""
        if place not in self.coarse:
            self.coarse.append(place)
            self.remark(
                f"agrees to float32 only: {place} loses precision (relative {relative:.1e})"
            )

    def settings_differ(self, ours: str, theirs: str) -> bool:
        """Tell whether a pair of modules is known to be set differently."""
        if ours not in self.torch_info.modules or theirs not in self.paddle_info.modules:
            return False
        found = compare_settings(self.torch_info.modules[ours], self.paddle_info.modules[theirs])
        return any(difference.conclusive for difference in found)

    def explained(self, outputs_ok: bool) -> bool:
        """Tell whether an earlier finding can stand for a difference that has no place of its own."""
        stages = {"weights", "forward"} if not outputs_ok else {"weights", "forward", "backward"}
        return any(finding.stage in stages for finding in self.result.findings)

    def add_fault(self, fault: Fault, reference: Trace, training: bool) -> None:
        """Add a finding for a fault, unless its place has one already."""
        at = fault.torch_path, fault.paddle_path
        if fault.stage == "backward" and self.has_frozen(fault.paddle_call.path):
            return  # the frozen parameter has a finding of its own
        same = [f for f in self.result.findings if (f.torch_name, f.paddle_name) == at]
        if any(f.stage in ("forward", fault.stage) for f in same):
            return
        mode = " in train mode" if training else ""
        message = f"{self.describe(fault)}{mode}; {fault.where}"
        cause = cause_of(fault, reference, self.torch_info.modules.get(fault.torch_path))
        message += f". {cause}" if cause else ""
        self.add(fault.stage, *at, message, fault.gap)

    def describe(self, fault: Fault) -> str:
        """Return what is wrong at a fault, in words."""
        if fault.stage == "backward":
            return "the gradient parts here"
        if fault.made_with:
            return "its own code makes another mask or index"
        if not fault.own_code:
            return "its inputs agree and its output does not"
        return "its children agree and its own code does not"

    def parameter_faults(self, reference: Trace, given: Trace, training: bool) -> None:
        """Add findings for parameters whose gradients differ although all that meets them agrees."""
        gaps = reversed(self.gradient_gaps(reference, given, training))
        for name, other, found in sorted(gaps, key=lambda g: not self.is_frozen(g[0], g[1])):
            covered = {name, parent(name)} & self.places_found()
            if found.ok or covered:
                continue
            at = parent(name), parent(other)
            if found.relative <= _LAYER_ROUNDING and not self.settings_differ(*at):
                self.note_coarse(name, found.relative)
                continue
            self.add("backward", name, other, self.gradient_words(name, other, given, found), found)

    def places_found(self) -> set[str]:
        """Return where forward and backward findings are: modules, and parameters with their modules."""
        names = [f.torch_name for f in self.result.findings if f.stage in ("forward", "backward")]
        owners = {parent(name) for name in names if name in self.torch_info.tensors}
        return {*names, *owners}

    def is_frozen(self, name: str, other: str) -> bool:
        """Tell whether the parameter is trained on one side alone."""
        ours, theirs = self.torch_info.tensors[name], self.paddle_info.tensors[other]
        return ours.is_trainable != theirs.is_trainable

    def has_frozen(self, path: str) -> bool:
        """Tell whether a module of the port holds a parameter that is trained on one side alone."""
        pairs = [(pair.torch[0], other) for pair in self.match.pairs for other in pair.paddle]
        return any(parent(other) == path and self.is_frozen(name, other) for name, other in pairs)

    def gradient_words(self, name: str, other: str, given: Trace, found: Gap) -> str:
        """Return what is wrong with a parameter's gradient, in words."""
        ours, theirs = self.torch_info.tensors[name], self.paddle_info.tensors[other]
        if ours.is_trainable and not theirs.is_trainable:
            return "frozen in Paddle (stop_gradient=True), trained in PyTorch"
        if theirs.is_trainable and not ours.is_trainable:
            return "frozen in PyTorch (requires_grad=False), trained in Paddle"
        if other not in given.gradients:
            return "gets no gradient in Paddle"
        return f"its gradient differs though all that meets it agrees; {found.words}"

    def unlocated(
        self,
        reference: Trace,
        natural: Trace,
        outputs_ok: bool,
        gaps: list[tuple[LeafPair, Gap]],
        gradients: list[tuple[str, str, Gap]],
        training: bool,
    ) -> None:
        """Add a finding for a difference of which no single place could be found."""
        mode = " in train mode" if training else ""
        if not gaps:
            self.unpaired_outputs(reference, natural)
            return
        if not outputs_ok:
            worst = max((found for _, found in gaps), key=lambda g: g.relative)
            text = f"the outputs differ{mode}, by no single module: {worst.words}"
            self.add("forward", "", "", text, worst)
            return
        name, other, worst = max((g for g in gradients if not g[2].ok), key=lambda g: g[2].relative)
        self.add("backward", name, other, f"the gradient differs{mode}: {worst.words}", worst)

    def judge_loss(self) -> None:
        """Compare the losses, and their gradients, on the reference's own outputs."""
        if self.reference.loss is None:
            return
        reference = self.run_reference(False, loss=True)
        given = self.run_port(False, "ends", EndPins(reference), loss=True)
        ours, theirs = (np.array(0.0 if t.loss is None else t.loss) for t in (reference, given))
        found = gap(ours, theirs)
        self.check("loss", "loss on the same outputs", found.exceed * JUDGE, found.ok)
        if not found.ok and found.relative <= _CODE_ROUNDING:
            self.note_coarse("the loss", found.relative)
        elif not found.ok:
            outputs = [leaf.array for leaf in reference.outputs.values()]
            cause = loss_cause(float(ours), float(theirs), outputs)
            text = (f"the loss of the same outputs is {float(theirs):.9g} in Paddle and "
                    f"{float(ours):.9g} in PyTorch")  # fmt: skip
            self.add("loss", "", "", f"{text}. {cause}" if cause else text, found)
            return
        for pair in root_pairs(dict(reference.outputs), dict(given.outputs)):
            ours_leaf, theirs_leaf = reference.outputs[pair.expected], given.outputs[pair.actual]
            expected = pair.laid(ours_leaf.gradient)
            if expected is None and theirs_leaf.gradient is None:
                continue
            zeros = np.zeros(theirs_leaf.array.shape)
            expected = zeros if expected is None else expected
            actual = zeros if theirs_leaf.gradient is None else theirs_leaf.gradient
            found = gap(expected, actual, floor=1e-13 * float(np.abs(expected).max(initial=0.0)))
            self.check("loss", "gradient of the loss", found.exceed * JUDGE, found.ok)
            if not found.ok and found.relative <= _CODE_ROUNDING:
                self.note_coarse("the loss", found.relative)
            elif not found.ok:
                self.add("loss", "", "", "the loss agrees and its gradient with respect to the "
                         f"outputs does not: {found.words}", found)  # fmt: skip

    def judge_statistics(self, reference: Trace, natural: Trace) -> None:
        """Compare running statistics after one step in train mode."""
        for pair in self.match.pairs:
            name, other = pair.torch[0], pair.paddle[0]
            if name not in reference.buffers or other not in natural.buffers:
                continue
            before = self.torch_values[name]
            if before.dtype.kind != "f":
                continue
            after, actual = reference.buffers[name], natural.buffers[other]
            found = gap(pair.to_paddle({name: after})[other], actual)
            own = paddle_statistic(name, before, reference, self.torch_info)
            if not found.ok and own is not None:
                if gap(own, actual).ok and name.endswith("var"):
                    self.remark("Paddle's batch norm keeps the biased running variance where "
                                "PyTorch keeps the unbiased one: a faithful port differs there")  # fmt: skip
                found = gap(own, actual)
            self.check("forward", f"{name} after a step", found.exceed * JUDGE, found.ok)
            owner = parent(name), parent(other)
            if (
                not found.ok
                and found.relative <= _LAYER_ROUNDING
                and not self.settings_differ(*owner)
            ):
                self.note_coarse(owner[0], found.relative)
            elif not found.ok and not self.found_at(*owner):
                self.add("forward", *owner, f"running statistic {name.rpartition('.')[2]} differs "
                         f"after one step in train mode: {found.words}", found)  # fmt: skip

    def judge_steps(self) -> None:
        """Train both sides and compare losses, rates and parameters after every step."""
        if self.reference.optimizer is None:
            return
        compare_training(self)

    def judge_leftovers(self) -> None:
        """Judge tensors that have no counterpart: at fault if the outputs depend on them."""
        findings, remarks = left_over(self.match, self.expected.gradients, self.torch_info, self.paddle_info,
                                      self.port_gradients(), self.all_agree())  # fmt: skip
        self.result.findings[:0] = findings
        self.result.remarks += remarks

    def port_gradients(self) -> Mapping[str, Array]:
        """Return the port's own gradients of the projection, {} if nothing asks or it does not run."""
        if not self.match.paddle_left:
            return {}
        try:
            return self.run_port(False, "none", None).gradients
        except ModelFailure:
            return {}

    def all_agree(self) -> bool:
        """Tell whether every comparison passed."""
        return all(check.passed for check in self.result.checks)

    def judge_settings(self) -> None:
        """Compare the settings of paired modules; explain findings by them, remark on the rest."""
        for ours, theirs in self.pairs.items():
            found = compare_settings(
                self.torch_info.modules[ours], self.paddle_info.modules[theirs]
            )
            if found:
                self.explain(ours, theirs, found)

    def explain(self, ours: str, theirs: str, found: list[SettingDifference]) -> None:
        """Add the settings that differ to the module's finding; else remark on them."""
        text = "; ".join(difference.message for difference in found)
        for number, finding in enumerate(self.result.findings):
            if (finding.torch_name, finding.paddle_name) == (ours, theirs):
                message = f"{finding.message}. Settings differ: {text}"
                self.result.findings[number] = _with(finding, message)
                return
        self.remark(f"{ours or 'the model'}: settings differ without an effect seen here: {text}")

    # ---------------------------------------------------------------- noting

    def add(self, stage: Stage, ours: str, theirs: str, message: str, found: Gap) -> None:
        """Add a finding."""
        self.result.findings.append(
            Finding(stage, ours, theirs, message, found.difference, found.tolerance)
        )

    def check(self, stage: Stage, what: str, relative: float, passed: bool) -> None:
        """Note a comparison that was made."""
        self.result.checks.append(Check(stage, what, relative, passed))

    def remark(self, text: str) -> None:
        """Note something that is no fault, once."""
        if text not in self.result.remarks:
            self.result.remarks.append(text)

    def found_at(self, ours: str, theirs: str) -> bool:
        """Tell whether a place has a finding."""
        return any((f.torch_name, f.paddle_name) == (ours, theirs) for f in self.result.findings)

    def failed(self, error: ModelFailure) -> None:
        """Add a finding for a port that raised."""
        ours = next((name for name in _upwards(error.path) if name in self.names), "")
        text = f"the Paddle {error.what} raises {error.text}"
        self.check("forward", "the port runs", np.inf, False)
        self.add("forward", self.names.get(ours, ""), error.path, text, Gap(np.inf, 0.0, 0.0, ""))

    def unpaired_outputs(self, reference: Trace, natural: Trace) -> None:
        """Add a finding for outputs of which none can be compared."""
        shapes = [
            [leaf.array.shape for leaf in trace.outputs.values()] for trace in (reference, natural)
        ]
        text = f"no output can be compared: shapes {shapes[0]} in PyTorch, {shapes[1]} in Paddle"
        self.add("forward", "", "", text, Gap(np.inf, 0.0, 0.0, ""))

    def finished(self) -> Report:
        """Return the report with its findings in causal order and its verdict."""
        rank = {stage: number for number, stage in enumerate(STAGES)}
        self.result.findings.sort(key=lambda finding: rank[finding.stage])
        self.result.remarks += [*self.reference.remarks, *self.port.remarks]
        self.result.verdict = "diverges" if self.result.findings else "faithful"
        if self.coarse and not self.result.findings:
            self.result.verdict = "agrees to float32"
        if not self.result.checks:
            raise ReprodError("nothing could be compared")
        return self.result

    # ---------------------------------------------------------------- comparing

    def output_gaps(self, reference: Trace, trace: Trace) -> list[tuple[LeafPair, Gap]]:
        """Compare the models' own outputs."""
        gaps = []
        for pair in root_pairs(dict(reference.outputs), dict(trace.outputs)):
            expected = pair.laid(reference.outputs[pair.expected].array)
            actual = trace.outputs[pair.actual].array
            gaps.append((pair, gap(actual if expected is None else expected, actual)))
        return gaps

    def gradient_gaps(
        self, reference: Trace, trace: Trace, training: bool
    ) -> list[tuple[str, str, Gap]]:
        """Compare the gradients of all paired parameters, in Paddle's layout; none means zero."""
        gaps = self.measured_gradients(reference, trace, {})
        if all(found.ok for *_, found in gaps):
            return gaps
        if training not in self.noise:
            self.noise[training] = self.gradient_noise(reference, training)
        return self.measured_gradients(reference, trace, self.noise[training])

    def gradient_noise(self, reference: Trace, training: bool) -> dict[str, float]:
        """Return how far the reference's gradients move when its weights move by a few ulp."""
        values, source = self.torch_values, np.random.default_rng(_SEED)
        ulps = 4 * float(np.finfo(np.float64 if self.dtype == "float64" else np.float32).eps)
        for name, array in values.items():
            if array.dtype.kind == "f":
                moved = array * (1 + ulps * source.uniform(-1, 1, array.shape))
                self.reference.load({name: moved})
        shaken = self.run_reference(training).gradients
        self.reference.load(values)
        largest = max((_size(gradient) for gradient in reference.gradients.values()), default=0.0)
        moves = {name: _size(shaken[name] - gradient)
                 for name, gradient in reference.gradients.items() if name in shaken}  # fmt: skip
        return {name: move for name, move in moves.items() if move <= 1e-6 * largest}

    def measured_gradients(
        self, reference: Trace, trace: Trace, noise: Mapping[str, float]
    ) -> list[tuple[str, str, Gap]]:
        """Compare the gradients, allowing for noise by PyTorch's names."""
        largest = max((_size(g) for g in reference.gradients.values()), default=0.0)
        gaps = []
        for pair in self.match.pairs:
            known = {**self.torch_zeros(pair.torch), **reference.gradients}
            for other, expected in pair.to_paddle(known).items():
                if not self.paddle_info.tensors[other].is_parameter:
                    continue
                actual = trace.gradients.get(other, np.zeros(expected.shape))
                floor = 1e-13 * largest + _NOISE * max(noise.get(name, 0.0) for name in pair.torch)
                found = gap(expected, actual, floor=floor)
                gaps.append((pair.torch[0], other, found))
        return gaps

    def torch_zeros(self, names: tuple[str, ...]) -> dict[str, Array]:
        """Return zero gradients for the named tensors."""
        return {name: np.zeros(self.torch_values[name].shape) for name in names}


def _upwards(path: str) -> list[str]:
    names = [path]
    while path:
        path = parent(path)
        names.append(path)
    return names


def _worst(gaps: list[Gap]) -> float:
    """Return the largest difference, relative; what is allowed beside JUDGE counts as scale."""
    return max((found.exceed * JUDGE for found in gaps), default=float("inf"))


def _size(array: Array) -> float:
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def _with(finding: Finding, message: str) -> Finding:
    return Finding(
        finding.stage, finding.torch_name, finding.paddle_name, message,
        finding.difference, finding.tolerance,
    )  # fmt: skip
