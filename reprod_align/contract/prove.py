"""Proves that a port keeps a contract. The reference runs on the batches only after the port's processes
have ended, so that the port cannot find its results anywhere.

1. The reference's process gives its weights and its structure, and ends.
2. The port's process answers every question, and ends; a second one starts from its checkpoint.
3. The reference's process is started again and asked the same; the answers are compared here.
"""

import math
import resource
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from reprod_align.alignment import Pairing, make_pairing
from reprod_align.backends.recipes import Recipe
from reprod_align.base import Framework
from reprod_align.base.blocks import Array
from reprod_align.contract.answers import (
    Answers,
    NoTensorError,
    Outputs,
    Questions,
    Weights,
    ask,
    list_calls,
    run_once,
)
from reprod_align.contract.guard import DottedName
from reprod_align.contract.process import ProofSide, describe_isolation
from reprod_align.contract.proof import (
    ContractProof,
    KnownFault,
    ProofStage,
    Refusal,
)
from reprod_align.contract.screen import screen_files
from reprod_align.contract.terms import ExpectedFailure, Terms, draw_batch
from reprod_align.errors import ReprodError
from reprod_align.match import Evidence, Match, collect_evidence, find_alternatives, match_models
from reprod_align.model import ModelInfo, pair_outputs
from reprod_align.pair.remote import OutOfTime, ProcessEnded
from reprod_align.records.compare import STRICT, Comparison, compare_records
from reprod_align.records.gate import digest
from reprod_align.weights import open_checkpoint

import numpy as np

_PAIRING = (
    0  # the seed of the batch that tells the order of calls: known to all, and compared by none
)
_CHECKPOINT = "checkpoint.pdparams"
_MOVED = "outputs, other weights"
_TRIES = 24  # pairings that names and shapes allow
_BROKEN = 3  # layers that are made to fail
_NARROW = 1e-4  # relative: of float32 outputs, at least
_ROUNDINGS = 64  # of the reference's own rounding in float32
_FAR = 100  # tolerances: by less, other weights may only have grown a rounding
Tell = Callable[[str], None]
StartSide = Callable[[Terms, Recipe | None, Sequence[DottedName], Framework], ProofSide]


def prove(
    terms: Terms,
    seed: int | None = None,
    agreed: str = "",
    python: tuple[str, str] = (sys.executable, sys.executable),
    tell: Tell = lambda text: None,
    start: StartSide | None = None,
) -> ContractProof:
    """Return the proof of a contract.

    seed: of the batches; None draws one now. agreed: the contract's SHA-256 that was agreed on. python:
    the interpreters of PyTorch's side and Paddle's. tell: is given each piece of work before it begins.
    start: starts a side otherwise than in a process of its own.
    Raises ReprodError where the reference itself fails.
    """
    begun = time.monotonic()
    seed = secrets.randbits(48) if seed is None else seed
    proof = ContractProof(
        terms.name,
        terms.digest,
        {path.name: wanted for path, wanted in terms.reference_files.items()},
        {path.name: digest(path) for path in terms.port_files if path.is_file()},
        seed,
        isolation=describe_isolation(),
    )
    proof.refusals += _check_digests(terms, agreed)
    begin = start or partial(_start, python)
    if not proof.refusals:
        _prove_port(terms, proof, begin, tell)
    if terms.expected is not None and not proof.refusals:
        _prove_mended(terms, terms.expected, proof, begin, tell)
    proof.refusals[:] = dict.fromkeys(proof.refusals)  # each once
    proof.seconds = time.monotonic() - begun
    proof.mebibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return proof


def _prove_port(terms: Terms, proof: ContractProof, start: StartSide, tell: Tell) -> None:
    """Read the port's source, then run it, then see whether a file has changed."""
    tell("reading the port's source")
    refusals, lookups = screen_files(terms.port_files, terms.packages)
    proof.refusals += refusals
    if not refusals:
        _Prover(terms, proof, start, lookups, tell).run()
        proof.refusals += _check_unchanged(terms, proof)


def _prove_mended(
    terms: Terms, expected: ExpectedFailure, proof: ContractProof, start: StartSide, tell: Tell
) -> None:
    """Hold a proof against the fault that its contract documents: that, and no other, is in the port."""
    proof.known = KnownFault(expected.stages, expected.report, expected.digest)
    proof.known.hold_against(proof.stages)
    if proof.known.fault:
        return
    other = replace(terms, port=expected.mended, port_files=(expected.mended, *terms.port_files))
    files = {path.name: digest(path) for path in other.port_files}
    mended = ContractProof(proof.name, proof.contract, proof.reference, files, proof.seed)
    _prove_port(other, mended, start, lambda text: tell(f"{text}, the fault mended"))
    proof.known.verdict = mended.verdict
    proof.refusals += mended.refusals


def _start(
    python: tuple[str, str],
    terms: Terms,
    recipe: Recipe | None,
    lookups: Sequence[DottedName],
    framework: Framework,
) -> ProofSide:
    return ProofSide(terms, framework, recipe, python[framework == "paddle"], lookups)


def _check_digests(terms: Terms, agreed: str) -> list[Refusal]:
    found = []
    if agreed and agreed != terms.digest:
        text = f"{terms.path.name} has {terms.digest[:12]}, agreed was {agreed[:12]}"
        found.append(Refusal("contract-changed", text))
    pinned = dict(terms.reference_files)
    if terms.expected is not None:
        pinned[terms.expected.mended] = terms.expected.digest
    for path, wanted in pinned.items():
        if not path.is_file():
            found.append(Refusal("reference-changed", f"{path.name} is missing"))
        elif digest(path) != wanted:
            text = f"{path.name} has {digest(path)[:12]}, the contract says {wanted[:12]}"
            found.append(Refusal("reference-changed", text))
    return found


def _check_unchanged(terms: Terms, proof: ContractProof) -> list[Refusal]:
    """Return what changed on disk while the proof ran."""
    wanted = {terms.path: proof.contract, **terms.reference_files}
    wanted |= {path: proof.port[path.name] for path in terms.port_files}
    changed = [
        path.name for path, one in wanted.items() if not path.is_file() or digest(path) != one
    ]
    return [Refusal("changed-while-running", name) for name in changed]


class CannotStart(ReprodError):
    """The port's process ended before any code of the port ran."""


@dataclass(frozen=True)
class _Structure:
    """What is known of the reference before anything is compared."""

    info: ModelInfo
    weights: Weights
    order: list[str]
    outputs: Outputs
    """of the batch that tells the order: known to all, it decides between pairings and is not judged"""


class _Prover:
    """Runs one proof, and fills it."""

    def __init__(
        self,
        terms: Terms,
        proof: ContractProof,
        start: StartSide,
        lookups: Sequence[DottedName],
        tell: Tell,
    ) -> None:
        self.terms, self.proof, self.tell = terms, proof, tell
        self.questions = Questions(terms, proof.seed)
        training = terms.training
        self.recipe = replace(training.recipe, seed=proof.seed) if training else None
        self.start: Callable[[Framework], ProofSide] = partial(start, terms, self.recipe, lookups)
        self.restored: Outputs = {}
        self.export: Comparison | None = None

    def run(self) -> None:
        """Ask the reference for its weights, the port for its answers, the reference for the same."""
        structure = self._read_reference()
        moved = self.questions.move(structure.weights, _list_parameters(structure.info))
        try:
            pairing, given = self._ask_port(structure, moved)
        except OutOfTime as error:
            return self._refuse("out-of-time", error)
        except CannotStart:
            raise
        except ProcessEnded as error:
            return self._refuse("ends-the-process", error)
        except NoTensorError as error:
            return self._refuse("no-tensor", error)
        except ReprodError as error:  # of the model itself: it raised
            self.proof.stages.append(ProofStage("outputs", False, str(error)[:300]))
            return
        if pairing is None or given is None:
            return
        expected = self._ask_reference(structure, moved, pairing)
        self._judge(expected, given)

    def _refuse(self, code: str, error: ReprodError) -> None:
        self.proof.refusals.append(Refusal(code, str(error)))

    # ------------------------------------------------------------------ the reference

    def _read_reference(self) -> _Structure:
        self.tell("the reference's weights")
        with self.start("torch") as side:
            self.proof.versions = dict(side.hello.versions)
            with side.working("float64"):
                weights, info = side.values(), side.describe()
                trace = run_once(side, draw_batch(self.terms.inputs, _PAIRING, 0))
        return _Structure(info, weights, list_calls(trace), trace.outputs)

    def _ask_reference(self, known: _Structure, moved: Weights, pairing: Pairing) -> Answers:
        self.tell("the reference answers")
        places = {place: place for place in pairing.places.values()}
        with self.start("torch") as side:
            with side.working("float64"):
                answers = ask(side, self.questions, known.weights, moved, places)
            answers.narrow = self._ask_narrow(side, known.weights)
        return answers

    def _ask_narrow(self, side: ProofSide, weights: Weights) -> Outputs:
        """Return the outputs of the first batch in float32, which users run and float64 does not show."""
        with side.working("float32"):
            side.load(weights)
            return run_once(side, self.questions.list_batches()[0]).outputs

    # ------------------------------------------------------------------ the port

    def _ask_port(self, known: _Structure, moved: Weights) -> tuple[Pairing | None, Answers | None]:
        self.tell("the port answers")
        with self.start("paddle") as side:
            try:
                return self._ask_guarded(side, known, moved)
            except ProcessEnded as error:
                self.proof.refusals += side.list_refusals()
                if not side.armed:  # before any code of the port ran
                    raise CannotStart(str(error)) from error
                raise
            except ReprodError:
                with suppress(ReprodError):  # what it changed may be why it fails
                    self.proof.refusals += side.list_changes()
                raise
            finally:
                self.proof.refusals += side.list_refusals()

    def _ask_guarded(
        self, side: ProofSide, known: _Structure, moved: Weights
    ) -> tuple[Pairing | None, Answers | None]:
        self.proof.versions = {**self.proof.versions, **side.hello.versions}
        self.proof.refusals += side.list_changes()
        with side.working("float64"):
            pairing = self._pair(side, known)
            if pairing is None:
                return None, None
            first, second = pairing.convert(known.weights), pairing.convert(moved)
            self._check_kept(side, first)
            answers = ask(side, self.questions, first, second, pairing.places)
            side.load(first)
            self._break_layers(side)
            checkpoint = side.save(_CHECKPOINT) if self.terms.round_trip else None
            names, info = side.saved_names(), side.describe()
        answers.narrow = self._ask_narrow(side, first)
        self.proof.refusals += side.list_changes()
        if checkpoint is not None:
            self._come_back(checkpoint, names, info, first)
        return pairing, answers

    def _pair(self, side: ProofSide, known: _Structure) -> Pairing | None:
        """Pair the tensors by names and the order of calls; a failed stage where some are left."""
        info, held = side.describe(), side.values()
        torch = collect_evidence(known.info, known.order, known.weights, "PyTorch")
        order = list_calls(run_once(side, draw_batch(self.terms.inputs, _PAIRING, 0)))
        paddle = collect_evidence(info, order, held, "Paddle")
        match = match_models(torch, paddle, self.terms.name_map)
        pairing = self._choose_pairing(side, known, match, torch, paddle)
        used = self._find_used(side, match.paddle_left, held)
        left = [*match.torch_left, *(f"{name} (Paddle)" for name in used)]
        if left:
            figure = f"without a counterpart: {', '.join(left[:5])}"
            self.proof.stages.append(ProofStage("weights", False, figure))
            return None
        if match.paddle_left:
            names = ", ".join(match.paddle_left[:5])
            self.proof.remarks.append(
                f"without a counterpart, and without effect on outputs: {names}"
            )
        self.proof.stages.append(ProofStage("weights", True, f"{len(match.pairs)} paired"))
        return pairing

    def _choose_pairing(
        self, side: ProofSide, known: _Structure, match: Match, torch: Evidence, paddle: Evidence
    ) -> Pairing:
        """Return the pairing; where names and shapes allow several, the one with the nearest outputs."""
        batch = draw_batch(self.terms.inputs, _PAIRING, 0)

        def measure(pairing: Pairing) -> float:
            side.load(pairing.convert(known.weights))
            return _measure_distance(known.outputs, run_once(side, batch).outputs)

        chosen = make_pairing(match, torch, paddle)
        if not match.is_doubtful or measure(chosen) <= self.terms.tolerance:
            return chosen
        others = islice(find_alternatives(match), _TRIES)
        return min([chosen, *(make_pairing(one, torch, paddle) for _, one in others)], key=measure)

    def _find_used(self, side: ProofSide, names: Sequence[str], held: Weights) -> Sequence[str]:
        """Return the port's tensors, of those named, if its outputs depend on any of them."""
        if not names:
            return names
        batch = draw_batch(self.terms.inputs, _PAIRING, 0)
        side.load(held)
        before = run_once(side, batch).outputs
        source = np.random.default_rng(self.proof.seed)
        side.load({name: source.standard_normal(held[name].shape) for name in names})
        return [] if _are_equal(before, run_once(side, batch).outputs) else names

    def _check_kept(self, side: ProofSide, given: Weights) -> None:
        """Refuse a port that does not hold what it was given."""
        side.load(given)
        held = side.values()
        for name, array in given.items():
            if name not in held or not np.array_equal(held[name], array):
                self.proof.refusals.append(Refusal("keeps-own-weights", f"{name} was not taken"))
                return

    def _break_layers(self, side: ProofSide) -> None:
        """Refuse a port that goes on after a layer of it has failed."""
        batch = draw_batch(self.terms.inputs, self.proof.seed, 0)
        called = list_calls(run_once(side, batch))
        leaves = [one for one in called if not any(other.startswith(f"{one}.") for other in called)]
        chosen = list(dict.fromkeys(leaves[:1] + leaves[len(leaves) // 2 :][:1] + leaves[-1:]))
        if not chosen:
            self.proof.remarks.append("no layer could be made to fail: the port calls none")
        for path in side.break_layers(batch, chosen[:_BROKEN]):
            text = f"{path} was made to raise, and the model returned all the same"
            self.proof.refusals.append(Refusal("swallows-exceptions", text))

    def _come_back(
        self, checkpoint: Path, names: Mapping[str, str], info: ModelInfo, given: Weights
    ) -> None:
        """Let a new process start from the checkpoint, and read here what it holds."""
        ties = {info.tensors[own].tie for own in names.values() if own}
        saved = {name for name, one in info.tensors.items() if one.tie in ties}
        self.tell("the port comes back from its checkpoint")
        held = {name: one.values() for name, one in open_checkpoint(checkpoint).tensors.items()}
        wanted = {name: given[own] for name, own in names.items() if own in given}
        kept = {
            own
            for own in given
            if info.tensors[own].is_parameter or info.tensors[own].is_persistent
        }
        wanted |= {own: given[own] for own in kept - saved}
        found = {name: held[name] for name in wanted if name in held}
        self.export = compare_records(wanted, found, rule=STRICT)
        with self.start("paddle") as side:
            with side.working("float64"):
                try:
                    side.restore(checkpoint)
                except (OutOfTime, ProcessEnded):
                    raise
                except ReprodError as error:
                    return self._refuse("loses-in-the-checkpoint", error)
                self.restored = run_once(side, self.questions.list_batches()[0]).outputs
            self.proof.refusals += side.list_refusals()

    # ------------------------------------------------------------------ the verdict

    def _judge(self, expected: Answers, given: Answers) -> None:
        self.proof.tokens, self.proof.losses = given.tokens, given.losses
        self._look_for_tricks(expected, given)
        for number, (ours, theirs) in enumerate(zip(expected.outputs, given.outputs, strict=True)):
            self._add_outputs(f"outputs, batch {number + 1}", ours, theirs)
        self._add_outputs(_MOVED, expected.moved, given.moved)
        self._check_moved()
        self._add_narrow(expected, given)
        if self.terms.tokens:
            same = expected.tokens == given.tokens
            count = f"{self.terms.tokens.count} tokens of {len(given.tokens)} rows"
            figure = (
                f"{count}, all equal" if same else f"{count}: {_name_first_token(expected, given)}"
            )
            self.proof.stages.append(ProofStage("first tokens, greedy", same, figure))
        if self.terms.round_trip:
            self._add_round_trip(given)
        if self.terms.training:
            wanted, found = np.array(expected.losses), np.array(given.losses)
            self._add(f"losses of {len(wanted)} steps", {"losses": wanted}, {"losses": found})

    def _check_moved(self) -> None:
        """Refuse a port that is right with the first weights alone."""
        stages = {one.name: one for one in self.proof.stages}
        first = [one for name, one in stages.items() if name.startswith("outputs, batch")]
        other = stages[_MOVED]
        if all(one.passed for one in first) and not other.passed \
                and (other.value is None or other.value > _FAR * self.terms.tolerance):  # fmt: skip
            text = "right with the first weights, and wrong with every weight moved by about 5%"
            self.proof.refusals.append(Refusal("keeps-own-weights", text))

    def _look_for_tricks(self, expected: Answers, given: Answers) -> None:
        """Refuse what no honest port does, whatever the figures say."""
        refuse = self.proof.refusals.append
        tensors = [leaf.array for one in given.outputs for leaf in one.values()]
        if not all(given.outputs) or any(a.size == 0 for a in tensors):
            refuse(Refusal("no-tensor", "a batch has no output"))
            return
        if not all(np.isfinite(a).all() for a in tensors if a.dtype.kind == "f"):
            if all(np.isfinite(leaf.array).all() for one in expected.outputs for leaf in one.values()
                   if leaf.array.dtype.kind == "f"):  # fmt: skip
                refuse(Refusal("not-finite", "the reference's outputs are"))
                return
        if _are_equal(given.outputs[0], given.outputs[1]) and not _are_equal(*expected.outputs[:2]):
            refuse(Refusal("ignores-its-inputs", "two batches, bit for bit the same outputs"))
        elif _are_equal(given.outputs[0], given.moved) and not _are_equal(
            expected.outputs[0], expected.moved
        ):
            text = "every weight was moved, and the outputs are the same bit for bit"
            refuse(Refusal("cached-answers", text))
        if not _are_near(given.outputs[0], given.again):
            refuse(Refusal("not-deterministic", "the first batch, asked again, has other outputs"))
        if len(set(given.losses)) == 1 and len(set(expected.losses)) > 1:
            refuse(Refusal("trains-nothing", f"every loss is {given.losses[0]:.6g}"))

    def _add_outputs(self, name: str, expected: Outputs, given: Outputs) -> None:
        counted = self._count(expected)
        pairs = pair_outputs(counted, given)
        ours = {at or "output": leaf.array for at, leaf in counted.items()}
        theirs = {(pair.expected or "output"): given[pair.actual].array for pair in pairs}
        self._add(name, ours, theirs)

    def _add_narrow(self, expected: Answers, given: Answers) -> None:
        """Add a stage that holds the port's float32 outputs against float64's, as far as float32 can tell."""
        own = _measure_distance(self._count(expected.outputs[0]), self._count(expected.narrow))
        found = _measure_distance(self._count(expected.outputs[0]), given.narrow)
        passed = found <= max(_NARROW, _ROUNDINGS * own)
        figure = f"{found:.1e} relative, the reference's own rounding is {own:.1e}"
        kept = found if math.isfinite(found) else None
        self.proof.stages.append(ProofStage("outputs in float32", passed, figure, kept))

    def _count(self, outputs: Outputs) -> Outputs:
        """Return the outputs that count."""
        named = self.terms.outputs
        return {at: leaf for at, leaf in outputs.items() if not named or at in named}

    def _add(self, name: str, expected: Mapping[str, Array], given: Mapping[str, Array]) -> None:
        """Add a stage that compares arrays under the contract's tolerance."""
        rule = replace(STRICT, name="contract", max_rel=self.terms.tolerance)
        found = compare_records(expected, given, rule=rule)
        worst = found.worst
        value = worst.difference.max_rel if worst is not None and worst.difference else None
        if not found.passed:
            figure = found.reason[:300]
        else:
            absolute = max(one.difference.max_abs for one in found.results if one.difference)
            figure = f"max {absolute:.1e} absolute, {value or 0.0:.1e} relative ({rule.max_rel:g} allowed)"
        kept = value if value is not None and math.isfinite(value) else None
        self.proof.stages.append(ProofStage(name, found.passed, figure, kept))

    def _add_round_trip(self, given: Answers) -> None:
        assert self.export is not None
        same = _are_equal(given.outputs[0], self.restored)
        near = same or _are_near(given.outputs[0], self.restored)
        if self.export.passed and near:
            bits = "bit for bit" if same else "to rounding"
            figure = f"{len(self.export.results)} tensors back, outputs the same {bits}"
            self.proof.stages.append(ProofStage("checkpoint round trip", True, figure))
            return
        text = "outputs differ in a new process" if self.export.passed else self.export.reason[:200]
        self.proof.refusals.append(Refusal("loses-in-the-checkpoint", text))
        self.proof.stages.append(ProofStage("checkpoint round trip", False, text))


def _list_parameters(info: ModelInfo) -> dict[str, str]:
    return {name: one.tie for name, one in info.tensors.items() if one.is_parameter}


def _measure_distance(expected: Outputs, given: Outputs) -> float:
    """Return the largest difference of two models' float outputs, relative; inf without a counterpart."""
    pairs = pair_outputs(expected, given)
    found = [math.inf]
    for pair in pairs:
        ours, theirs = expected[pair.expected].array, given[pair.actual].array
        if ours.dtype.kind == "f" and ours.shape == theirs.shape:
            scale = float(np.abs(ours).max(initial=0.0)) or 1.0
            found.append(float(np.abs(ours - theirs).max(initial=0.0)) / scale)
    return max(found[1:], default=math.inf)


def _are_equal(one: Outputs, other: Outputs) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[at].array, other[at].array) for at in one
    )


def _are_near(one: Outputs, other: Outputs) -> bool:
    """Tell whether two runs of one model agree to rounding; a thread may add in another order."""
    ours, theirs = (
        {at or "output": leaf.array for at, leaf in each.items()} for each in (one, other)
    )
    return compare_records(ours, theirs, rule=STRICT).passed


def _name_first_token(expected: Answers, given: Answers) -> str:
    for row, (ours, theirs) in enumerate(zip(expected.tokens, given.tokens, strict=True)):
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one != other:
                return f"row {row + 1}, token {at + 1} is {other}, not {one}"
    return "of different length"
