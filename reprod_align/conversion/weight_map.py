"""The map of a conversion: which tensors of two models hold the same numbers, and how one becomes the other.

The pairing of two models at work is the map, and a forward pass of both proves what was converted.

A rule converts both ways, bit for bit. It holds no shapes where it needs none, so that a map made with a
small model of an architecture fits a large one. Where the result depends on shapes (parts of different
lengths, heads, merged axes), the rule keeps them, and another shape is refused. The map is a JSON file to
keep, edit and give back; a map that contradicts itself is refused.
"""

import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Final

from reprod_align.alignment import (
    Findings,
    Noise,
    Pairing,
    Runner,
    compare_outputs,
    find_idle,
    pair_models,
)
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.blocks import Array
from reprod_align.base.files import read_json, write_text
from reprod_align.errors import WeightsError
from reprod_align.match import Shape, TensorPair
from reprod_align.model import Inputs, ModelFailure, ModelInfo, Side
from reprod_align.weights import Stored

import numpy as np

_FORMAT: Final = 1
_FLAGS: Final = ("parts", "turned", "groups", "torch_shapes", "paddle_shapes")
_KEYS: Final = {*FRAMEWORKS, "transposed", *_FLAGS, "value"}


def find_shapes(rule: TensorPair, shapes: Sequence[Shape], to: str) -> list[Shape]:
    """Return the shapes that the rule makes of these. Raises WeightsError if they don't fit."""
    empty = [np.empty(shape, "V0") for shape in shapes]  # elements of no bytes
    try:
        made = rule.make(empty, to)
    except ValueError as error:  # numpy's
        found = " + ".join(map(str, shapes))
        raise WeightsError(f"{rule.name}: the map's rule does not fit {found}") from error
    return [array.shape for array in made]


def find_contradiction(rules: Sequence[TensorPair], tied: Mapping[str, Mapping[str, str]]) -> str:
    """Return what is wrong with rules that are well formed one by one, "" if nothing is.

    Two rules may share a tensor (two PyTorch tensors that are one in Paddle): the plan compares what
    they make of it.
    """
    found = [*_list_repeated(rules), *_list_doubtful(rules), *_list_loose(rules, tied)]
    return found[0] if found else ""


def _list_repeated(rules: Sequence[TensorPair]) -> Iterator[str]:
    known: dict[tuple[object, object], int] = {}
    for number, rule in enumerate(rules, 1):
        first = known.setdefault((rule.torch, rule.paddle), number)
        if first != number:
            names = " + ".join(rule.torch) or "nothing", " + ".join(rule.paddle) or "nothing"
            yield f"rules {first} and {number} are both for {' -> '.join(names)}: keep one"


def _list_doubtful(rules: Sequence[TensorPair]) -> Iterator[str]:
    """Yield tensors that one rule says to have no counterpart, and another converts."""
    for side in FRAMEWORKS:
        paired = {name: number for number, rule in enumerate(rules, 1)
                  if rule.torch and rule.paddle for name in getattr(rule, side)}  # fmt: skip
        for number, rule in enumerate(rules, 1):
            for name in getattr(rule, side):
                if paired.get(name, number) != number and not (rule.torch and rule.paddle):
                    yield (
                        f"rule {number} says that {name} has no counterpart, and rule {paired[name]} "
                        "gives it one: keep one"
                    )


def _list_loose(
    rules: Sequence[TensorPair], tied: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    for side in FRAMEWORKS:
        known = {name for rule in rules for name in getattr(rule, side)}
        for second, first in tied.get(side, {}).items():
            if second in known:
                yield f'"tied": {second} is the second name of {first}, and a rule has it too'
            elif first not in known:
                yield f'"tied": {second} is the second name of {first}, which no rule has'


@dataclass(frozen=True)
class WeightMap:
    """Which tensors of two models hold the same numbers: the pairs of `match`, each a rule of the map."""

    rules: tuple[TensorPair, ...]
    tied: Mapping[str, Mapping[str, str]] = field(
        default_factory=lambda: {s: {} for s in FRAMEWORKS}
    )
    """of either side: second name of a tensor -> the name that stands in the rules"""
    counters: Mapping[str, int] = field(default_factory=dict)
    """what a counter held that one side lacks, so that the way back has it"""

    def names(self, framework: str) -> list[str]:
        """Return the names of one side's tensors, second names last."""
        of_rules = [name for rule in self.rules for name in getattr(rule, framework)]
        return list(dict.fromkeys([*of_rules, *self.tied[framework]]))


def write_map(path: Path, found: WeightMap) -> None:
    """Write the map as JSON, one rule a line."""
    rules = ",\n".join(f"  {json.dumps(_describe(rule, found.counters))}" for rule in found.rules)
    tied = json.dumps({side: dict(found.tied[side]) for side in FRAMEWORKS})
    write_text(path, f'{{"format": {_FORMAT},\n "tied": {tied},\n "rules": [\n{rules}\n]}}\n')


def read_map(path: Path) -> WeightMap:
    """Read a map. Raises MissingInputError, or WeightsError naming what is wrong in it."""
    made = read_json(path, WeightsError)
    if not isinstance(made, dict) or made.get("format") != _FORMAT:
        raise WeightsError(
            f'{path}: expected a map of convert, a JSON object with "format": {_FORMAT}'
        )
    unknown = sorted(made.keys() - {"format", "rules", "tied"})
    if unknown:
        raise WeightsError(f"{path}: {unknown[0]!r} is unknown; known: format, rules, tied")
    rules, tied = made.get("rules"), made.get("tied", {})
    if not isinstance(rules, list) or not rules:
        raise WeightsError(f'{path}: expected a list of rules under "rules"')
    if (
        not isinstance(tied, dict)
        or not FRAMEWORKS.keys() >= tied.keys()
        or not all(map(_is_names, tied.values()))
    ):
        raise WeightsError(f'{path}: "tied" must be {{"torch": {{second: first}}, "paddle": ...}}')
    read = tuple(_read_rule(path, number, rule) for number, rule in enumerate(rules, 1))
    counters = {
        pair.names[0]: rule["value"]
        for pair, rule in zip(read, rules, strict=True)
        if rule.get("value") is not None
    }
    contradiction = find_contradiction(read, tied)
    if contradiction:
        raise WeightsError(f"{path}: {contradiction}")
    return WeightMap(read, {side: tied.get(side, {}) for side in FRAMEWORKS}, counters)


def _describe(rule: TensorPair, counters: Mapping[str, int]) -> dict[str, Any]:
    """Return a rule as JSON has it, without what it leaves at its default."""
    made: dict[str, Any] = {side: _shorten(getattr(rule, side)) for side in FRAMEWORKS}
    if any(rule.transposed):
        made["transposed"] = True if all(rule.transposed) else list(rule.transposed)
    plain = TensorPair((), ())
    for name in _FLAGS:
        value = getattr(rule, name)
        if value != getattr(plain, name):
            made[name] = value
    if not (rule.torch and rule.paddle) and rule.names[0] in counters:
        made["value"] = counters[rule.names[0]]
    return made


def _shorten(names: tuple[str, ...]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _read_rule(path: Path, number: int, made: Any) -> TensorPair:
    def refuse(what: str) -> WeightsError:
        return WeightsError(f"{path}: rule {number} ({json.dumps(made)[:120]}): {what}")

    if not isinstance(made, dict) or not made.keys() >= FRAMEWORKS.keys():
        raise refuse('expected {"torch": name or names, "paddle": name or names, ...}')
    unknown = sorted(made.keys() - _KEYS)
    if unknown:
        raise refuse(f"{unknown[0]!r} is unknown; known: {', '.join(sorted(_KEYS))}")
    torch, paddle = (_read_names(made[side]) for side in FRAMEWORKS)
    transposed = made.get("transposed", False)
    turns = [transposed] * len(paddle or ()) if isinstance(transposed, bool) else transposed
    parts, groups, turned = made.get("parts", []), made.get("groups", 1), made.get("turned", False)
    shapes = [made.get(f"{side}_shapes", []) for side in FRAMEWORKS]
    if torch is None or paddle is None or not (torch or paddle):
        raise refuse("names must be texts")
    if not _are(turns, bool) or len(turns) != len(paddle) or not isinstance(turned, bool):
        raise refuse('"transposed" must be true, false, or one of them for each Paddle tensor')
    if not _are(parts, int) or any(part < 1 for part in parts) or type(groups) is not int:
        raise refuse('"parts" must be whole numbers above 0, "groups" one')
    several = max(len(torch), len(paddle))
    if several > 1 and not (torch and paddle):
        raise refuse("a tensor without a counterpart has a rule of its own")
    if len(parts) != (several if several > 1 else 0) or (len(torch) > 1 and len(paddle) > 1):
        raise refuse('one tensor against several needs "parts", their lengths or shares')
    if groups < 1 or any(part % groups for part in parts if groups > 1):
        raise refuse('"groups" must divide every part')
    if groups > 1 and not parts:
        raise refuse('"groups" needs "parts": a tensor that is neither cut nor joined has none')
    misshapen = _find_misshapen(shapes, [len(torch), len(paddle)])
    if misshapen:
        raise refuse(misshapen)
    value = made.get("value")
    if value is not None and (type(value) is not int or len(torch) + len(paddle) != 1):
        raise refuse('"value" is the whole number that a counter without a counterpart holds')
    if value is not None and not -(2**63) <= value < 2**63:
        raise refuse('"value" is beyond what an int64 holds')
    kept = tuple(tuple(tuple(shape) for shape in side) for side in shapes)
    return TensorPair(torch, paddle, tuple(turns), tuple(parts), turned, groups, kept[0], kept[1])


def _find_misshapen(shapes: list[Any], counts: list[int]) -> str:
    """Return what is wrong with the shapes of both sides' tensors, "" if nothing is."""
    if not all(_are(kept, list) and all(map(_is_shape, kept)) for kept in shapes):
        return "shapes must be lists of whole numbers, one for each tensor"
    if any(shapes) and [len(kept) for kept in shapes] != counts:
        return "give a shape for each tensor of both sides, or for none"
    sizes = [sum(map(prod, kept)) for kept in shapes]
    if sizes[0] != sizes[1]:
        return f"its shapes hold {sizes[0]} elements in PyTorch and {sizes[1]} in Paddle"
    return ""


def _read_names(value: Any) -> tuple[str, ...] | None:
    names = [value] if isinstance(value, str) else value
    return tuple(names) if _are(names, str) else None


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _is_shape(value: Any) -> bool:
    return _are(value, int) and all(0 <= length < 2**31 for length in value)


def _is_names(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value.values())


_COUNTER = "num_batches_tracked"
_SEED = 20213


@dataclass(frozen=True)
class ModelState:
    """One side's state dict."""

    info: ModelInfo
    own: Mapping[str, str]
    """the state dict's name -> the model's own name of the tensor; "" for what is computed"""
    first: Mapping[str, str]
    """the name that stands for all names of a tensor in the model -> the state dict's first of it"""
    tied: Mapping[str, str]
    """the state dict's second names -> its first ones"""

    @property
    def names(self) -> list[str]:
        """The state dict's names, second names left out."""
        return [name for name in self.own if name not in self.tied]

    @property
    def expected(self) -> dict[str, tuple[Shape, bool]]:
        """The shape of each of its tensors, and whether it holds floats."""
        return {
            name: (self.info.tensors[own].shape, self.info.tensors[own].is_float)
            for name, own in self.own.items()
            if own
        }

    def find(self, own: str) -> str:
        """Return what the state dict calls a tensor of the model, "" if it does not hold it."""
        return self.first.get(self.info.tensors[own].tie, "")


def describe_state(side: Side) -> ModelState:
    """Return what a side's state dict holds."""
    info, own = side.describe(), side.saved_names()
    first: dict[str, str] = {}
    tied: dict[str, str] = {}
    ties = {name: info.tensors[held].tie for name, held in own.items() if held}
    for name in sorted(ties, key=lambda name: own[name] != ties[name]):  # the tie's own name first
        if first.setdefault(ties[name], name) != name:
            tied[name] = first[ties[name]]
    return ModelState(info, own, first, tied)


def derive_map(
    pairing: Pairing,
    torch: ModelState,
    paddle: ModelState,
    idle: tuple[Collection[str], Collection[str]] = ((), ()),
) -> tuple[WeightMap, dict[str, str]]:
    """Return the map, and what it lacks: the tensors of the state dicts without a counterpart, in words.

    idle: PyTorch's and Paddle's tensors that need none, since the outputs do not depend on them.
    """
    rules = list(dict.fromkeys(_pair_rules(pairing, torch, paddle)))
    paired = {name for rule in rules if rule.torch and rule.paddle for name in rule.names}
    rules = [rule for rule in rules if (rule.torch and rule.paddle) or not paired & {*rule.names}]
    lacking: dict[str, str] = {}
    sides: list[tuple[ModelState, Framework, Collection[str]]]
    sides = [(torch, "torch", idle[0]), (paddle, "paddle", idle[1])]
    for side, at, unused in sides:
        known = {name for rule in rules for name in getattr(rule, at)}
        for name in side.names:
            if name in known:
                continue
            if side.own[name] in unused or _is_dispensable(side, name):
                rules.append(TensorPair((name,), ()) if at == "torch" else TensorPair((), (name,)))
            else:
                own = side.own[name]
                shape = side.info.tensors[own].shape if own else "which its state_dict computes"
                lacking[name] = f"without a counterpart: {FRAMEWORKS[at]}'s {name} {shape}"
    return WeightMap(tuple(rules), {"torch": torch.tied, "paddle": paddle.tied}), lacking


def _pair_rules(pairing: Pairing, torch: ModelState, paddle: ModelState) -> Iterator[TensorPair]:
    for pair in pairing.match.pairs:
        ours, theirs = tuple(map(torch.find, pair.torch)), tuple(map(paddle.find, pair.paddle))
        if all(ours) and all(theirs):
            yield replace(pair, torch=ours, paddle=theirs).drop_shapes()
        else:
            yield from (TensorPair((name,), ()) for name in ours if name)
            yield from (TensorPair((), (name,)) for name in theirs if name)


def _is_dispensable(side: ModelState, name: str) -> bool:
    """Tell whether a tensor needs no counterpart: integers that a model makes itself, and counters."""
    tensor = side.info.tensors.get(side.own[name])
    if tensor is None:
        return False
    return tensor.role == _COUNTER or not (tensor.is_float or tensor.is_parameter)


@dataclass(frozen=True)
class ModelPair:
    """Two sides, inputs for both, and what the user says of their names."""

    torch: Side
    paddle: Side
    inputs: Inputs
    name_map: Mapping[str, str] | None = None

    def side(self, framework: str) -> Side:
        """Return one side."""
        return self.torch if framework == "torch" else self.paddle


@dataclass(frozen=True)
class Agreement:
    """How far the outputs of the two models are apart, each with its own file's weights."""

    relative: float
    passed: bool
    words: str = ""
    """where they are furthest apart, or why the port does not run"""

    def summary(self) -> str:
        """Return it as a sentence."""
        if self.passed:
            return f"the outputs of both models agree to {self.relative:.1e} (float64, relative)"
        apart = f" by {self.relative:.1e} (float64, relative)" if np.isfinite(self.relative) else ""
        return (
            f"the outputs of the models differ{apart}: {self.words}. "
            "reprod-align pair says where; --no-check writes the file all the same"
        )


class Models:
    """A pair in float64. Made by `work_with`, which gives both models back as they came."""

    def __init__(self, pair: ModelPair) -> None:
        """Note what the two state dicts hold, before anything is changed."""
        self.pair = pair
        self.saved: dict[str, ModelState] = {
            name: describe_state(pair.side(name)) for name in FRAMEWORKS
        }
        self._came_with = {name: pair.side(name).values() for name in self.saved}
        self._runner: Runner | None = None
        self.remarks: list[str] = []

    def read_own_values(self, framework: str, names: list[str]) -> dict[str, Array]:
        """Return what a model came with under these names of its state dict."""
        saved, held = self.saved[framework], self._came_with[framework]
        return {name: held[saved.own[name]] for name in names if saved.own.get(name)}

    def load(self, framework: str, tensors: Mapping[str, Stored]) -> None:
        """Give a model the tensors of a file, one at a time; names that it lacks are passed over."""
        saved, side = self.saved[framework], self.pair.side(framework)
        for name, tensor in tensors.items():
            own = saved.own.get(name)
            if own and saved.info.tensors[own].shape == tensor.shape:
                side.load({own: tensor.values()})

    def stir(self) -> None:
        """Move PyTorch's constant weights (biases of 0, norms of 1): these hide faults."""
        side, saved = self.pair.side("torch"), self.saved["torch"]
        source = np.random.default_rng(_SEED)
        for name, array in side.values().items():
            tensor = saved.info.tensors[name]
            constant = array.size > 0 and bool((array == array.flat[0]).all())
            if tensor.is_float and tensor.is_persistent and array.dtype.kind == "f" and constant:
                noise = source.uniform(0.01, 0.1, array.shape)
                side.load({name: array * (1 + noise) + 0.1 * noise})

    def derive(self) -> tuple[WeightMap, dict[str, str]]:
        """Pair the models as `align` does, with the weights that PyTorch's has now; return the map.

        Beside it: the tensors without a counterpart. Raises ModelFailure if PyTorch's model fails.
        """
        runner = self._pair()
        ours, theirs = find_idle(runner)
        if ours or theirs:
            names = ", ".join([*ours, *(f"{name} (Paddle)" for name in theirs)])
            text = f"left out, since the outputs do not depend on it and it has no counterpart: {names}"
            self.remarks.append(text)
        sides = self.saved["torch"], self.saved["paddle"]
        return derive_map(runner.pairing, *sides, (ours, theirs))

    def compare(self, torch: Mapping[str, Stored], paddle: Mapping[str, Stored]) -> Agreement:
        """Run each model with its own file's weights; say how far they are apart."""
        paired = self._pair()  # first: it gives both models weights of its own
        self.load("torch", torch)
        self.load("paddle", paddle)
        runner = replace(paired, weights=self.pair.torch.values())
        try:
            expected = runner.run_reference(False, keep="outputs")
            actual = runner.run_port(False, "outputs", backward=False)
        except ModelFailure as error:
            return Agreement(np.inf, False, str(error))
        gaps = compare_outputs(runner.pairing, expected, actual, Noise(runner, False))
        if not gaps:
            return Agreement(np.inf, False, "no output of one has a counterpart in the other")
        worst = max((found for _, found in gaps), key=lambda found: found.exceed)
        passed = all(found.ok for _, found in gaps)
        return Agreement(worst.relative, passed, worst.words)

    def _pair(self) -> Runner:
        if self._runner is None:
            findings = Findings()
            pair = self.pair
            self._runner = pair_models(
                pair.torch, pair.paddle, pair.inputs, "float64", pair.name_map, True, findings
            )
            self.remarks += findings.report.remarks
        return self._runner


@contextmanager
def work_with(pair: ModelPair) -> Iterator[Models]:
    """Bring both models to float64, also where they ask for float32; afterwards they are as before."""
    models = Models(pair)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of libraries about themselves
        stack.enter_context(pair.torch.working("float64", throughout=True))
        stack.enter_context(pair.paddle.working("float64", throughout=True))
        yield models
