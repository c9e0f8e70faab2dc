"""The map of a conversion: which tensors of two models hold the same numbers, and how one becomes the other.

A rule converts both ways, bit for bit. It holds no shapes where it needs none, so that a map made with a
small model of an architecture fits a large one. Where the result depends on shapes (parts of different
lengths, heads, merged axes), the rule keeps them, and another shape is refused. The map is a JSON file to
keep, edit and give back; a map that contradicts itself is refused.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Final

from reprod_align.base.blocks import transpose
from reprod_align.base.files import read_json, write_text
from reprod_align.errors import WeightsError
from reprod_align.model.tensor_pair import Lay, TensorPair, cut, join, matrix_shape
from reprod_align.weights.stored import Array

import numpy as np

Shape = tuple[int, ...]
_FORMAT: Final = 1
_SIDES: Final = ("torch", "paddle")
_FLAGS: Final = ("transposed", "parts", "turned", "groups", "torch_shapes", "paddle_shapes",
                 "value")  # fmt: skip
_KEYS: Final = {*_SIDES, *_FLAGS}


@dataclass(frozen=True)
class Rule:
    """Tensors that hold the same numbers; mostly one on each side.

    One side may be empty: PyTorch's counter of batches has no counterpart, and buffers that a model
    computes may stand on one side alone.
    """

    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    transposed: tuple[bool, ...] = ()
    """one per Paddle tensor: whether it lies there as (in, out)"""
    parts: tuple[int, ...] = ()
    """lengths, or shares, of the parts along the outputs, if a tensor is cut or joined"""
    turned: bool = False
    """PyTorch's tensors are (in, out) and are cut or joined by outputs"""
    groups: int = 1
    """into how many groups the whole's rows fall, each with its share of every part: head by head"""
    torch_shapes: tuple[Shape, ...] = ()
    """of PyTorch's tensors, where the result hangs on them; () otherwise"""
    paddle_shapes: tuple[Shape, ...] = ()
    value: int | None = None
    """of a counter that one side lacks: what it was, so that the way back has it"""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of both sides."""
        return *self.torch, *self.paddle

    @property
    def words(self) -> str:
        """What happens to the numbers."""
        words = ["transposed"] if any(self.transposed) != self.turned else []
        if len(self.paddle) > 1:
            words.append(f"cut into {len(self.paddle)}")
        if len(self.torch) > 1:
            words.append(f"{len(self.torch)} joined")
        if self.groups > 1:
            words.append(f"in {self.groups} groups")
        if self.torch_shapes and not words:
            words.append("reshaped" if self.torch_shapes != self.paddle_shapes else "")
        return ", ".join(filter(None, words)) or "as it is"

    def make(self, arrays: Sequence[Array], to: str) -> list[Array]:
        """Return what the tensors of the framework `to` hold, given the other's."""
        return self.to_paddle(arrays) if to == "paddle" else self.to_torch(arrays)

    def to_paddle(self, arrays: Sequence[Array]) -> list[Array]:
        """Return what Paddle's tensors hold, given PyTorch's. Raises WeightsError if they don't fit."""
        self._check(arrays, self.torch, self.torch_shapes)
        whole = self._join([array.T if self.turned else array for array in arrays])
        parts = self._cut(whole, len(self.paddle))
        shapes = self.paddle_shapes or (None,) * len(parts)
        return [
            _lay(part, turned, shape)
            for part, turned, shape in zip(parts, self.transposed, shapes, strict=True)
        ]

    def to_torch(self, arrays: Sequence[Array]) -> list[Array]:
        """Return what PyTorch's tensors hold, given Paddle's: the inverse, bit for bit."""
        self._check(arrays, self.paddle, self.paddle_shapes)
        shapes = self._find_inner_shapes()
        straight = [
            _unlay(array, turned, shape, bool(self.parts))
            for array, turned, shape in zip(arrays, self.transposed, shapes, strict=True)
        ]
        parts = self._cut(self._join(straight), len(self.torch))
        return [transpose(part) if self.turned else part for part in parts]

    def _find_inner_shapes(self) -> tuple[Shape | None, ...]:
        """Return the shapes, outputs first, of what lies behind each Paddle tensor."""
        if not self.torch_shapes:
            return (None,) * len(self.paddle)
        first = self.torch_shapes[0][::-1] if self.turned else self.torch_shapes[0]
        if not self.parts:
            return (first,)
        lengths = self.parts if len(self.paddle) > 1 else (sum(self.parts),)
        return tuple((length, *first[1:]) for length in lengths)

    def _join(self, arrays: Sequence[Array]) -> Array:
        if len({array.dtype for array in arrays}) > 1:
            kinds = ", ".join(str(array.dtype) for array in arrays)
            raise WeightsError(f"{self.name}: parts of one tensor have different dtypes: {kinds}")
        return arrays[0] if len(arrays) == 1 else join(arrays, self.groups)

    def _cut(self, whole: Array, count: int) -> list[Array]:
        if count == 1:
            return [whole]
        share, rest = divmod(len(whole), sum(self.parts))
        if rest:
            raise WeightsError(
                f"{self.name}: {len(whole)} rows can't be cut into {count} equal parts"
            )
        return cut(whole, [share * length for length in self.parts], self.groups)

    def _check(
        self, arrays: Sequence[Array], names: Sequence[str], shapes: Sequence[Shape]
    ) -> None:
        for array, name, shape in zip(arrays, names, shapes, strict=False):
            if array.shape != shape:
                raise WeightsError(
                    f"{name}: expected the shape {shape}, got {array.shape}: the map holds for models "
                    "of that shape alone"
                )
        if not shapes and any(self.transposed) and any(array.ndim != 2 for array in arrays):
            raise WeightsError(
                f"{self.name}: only a matrix can be transposed, got {arrays[0].shape}"
            )

    @property
    def name(self) -> str:
        """What to call it."""
        return " + ".join(self.torch or self.paddle)


def make_rule(
    pair: TensorPair, torch_shapes: Sequence[Shape], paddle_shapes: Sequence[Shape]
) -> Rule:
    """Return the rule of a pair of tensors with these shapes."""
    transposed = tuple(lay.transposed for lay in pair.lay)
    shapes = tuple(torch_shapes), tuple(paddle_shapes)
    if _depends_on_shapes(pair, *shapes):
        parts, kept = tuple(pair.sizes), shapes
    else:
        parts, kept = (1,) * len(pair.sizes), ((), ())
    return Rule(pair.torch, pair.paddle, transposed, parts, pair.turned, pair.groups, *kept)


def _depends_on_shapes(pair: TensorPair, ours: Sequence[Shape], theirs: Sequence[Shape]) -> bool:
    if pair.groups > 1 or len(set(pair.sizes)) > 1:
        return True
    if any(lay.transposed for lay in pair.lay):
        return any(len(shape) != 2 for shape in (*ours, *theirs))
    return not pair.sizes and tuple(ours) != tuple(theirs)


def _lay(array: Array, turned: bool, shape: Shape | None) -> Array:
    """Return the array as Paddle keeps it; where the rule has no shapes, a view that is laid when written."""
    if shape is None:
        return array.T if turned else array
    return Lay(turned, shape)(array)


def _unlay(array: Array, turned: bool, shape: Shape | None, is_part: bool) -> Array:
    """Return what `_lay` was given; shape: its own, None where a matrix was."""
    if not turned:
        return array if shape is None else array.reshape(shape)
    if shape is None:
        return transpose(array) if is_part else array.T
    return transpose(array.reshape(prod(matrix_shape(shape)[1:]), -1)).reshape(shape)


def find_shapes(rule: Rule, shapes: Sequence[Shape], to: str) -> list[Shape]:
    """Return the shapes that the rule makes of these. Raises WeightsError if they don't fit."""
    empty = [np.empty(shape, "V0") for shape in shapes]  # elements of no bytes
    try:
        made = rule.make(empty, to)
    except ValueError as error:  # numpy's
        found = " + ".join(map(str, shapes))
        raise WeightsError(f"{rule.name}: the map's rule does not fit {found}") from error
    return [array.shape for array in made]


def find_contradiction(rules: Sequence[Rule], tied: Mapping[str, Mapping[str, str]]) -> str:
    """Return what is wrong with rules that are well formed one by one, "" if nothing is.

    Two rules may share a tensor (two PyTorch tensors that are one in Paddle): the plan compares what
    they make of it.
    """
    found = [*_list_repeated(rules), *_list_doubtful(rules), *_list_loose(rules, tied)]
    return found[0] if found else ""


def _list_repeated(rules: Sequence[Rule]) -> Iterator[str]:
    known: dict[tuple[object, object], int] = {}
    for number, rule in enumerate(rules, 1):
        first = known.setdefault((rule.torch, rule.paddle), number)
        if first != number:
            names = " + ".join(rule.torch) or "nothing", " + ".join(rule.paddle) or "nothing"
            yield f"rules {first} and {number} are both for {' -> '.join(names)}: keep one"


def _list_doubtful(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield tensors that one rule says to have no counterpart, and another converts."""
    for side in _SIDES:
        paired = {name: number for number, rule in enumerate(rules, 1)
                  if rule.torch and rule.paddle for name in getattr(rule, side)}  # fmt: skip
        for number, rule in enumerate(rules, 1):
            for name in getattr(rule, side):
                if paired.get(name, number) != number and not (rule.torch and rule.paddle):
                    yield (
                        f"rule {number} says that {name} has no counterpart, and rule {paired[name]} "
                        "gives it one: keep one"
                    )


def _list_loose(rules: Sequence[Rule], tied: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for side in _SIDES:
        known = {name for rule in rules for name in getattr(rule, side)}
        for second, first in tied.get(side, {}).items():
            if second in known:
                yield f'"tied": {second} is the second name of {first}, and a rule has it too'
            elif first not in known:
                yield f'"tied": {second} is the second name of {first}, which no rule has'


@dataclass(frozen=True)
class WeightMap:
    """Which tensors of two models hold the same numbers."""

    rules: tuple[Rule, ...]
    torch_tied: Mapping[str, str] = field(default_factory=dict)
    """second name of a tensor -> the name that stands in the rules"""
    paddle_tied: Mapping[str, str] = field(default_factory=dict)

    def names(self, framework: str) -> list[str]:
        """Return the names of one side's tensors, second names last."""
        of_rules = [name for rule in self.rules for name in getattr(rule, framework)]
        return list(dict.fromkeys([*of_rules, *self.tied(framework)]))

    def tied(self, framework: str) -> Mapping[str, str]:
        """Return one side's second names."""
        return self.torch_tied if framework == "torch" else self.paddle_tied


def keep_counters(found: WeightMap, counters: Mapping[str, int]) -> WeightMap:
    """Return the map with what the counters hold that are left out."""
    rules = (replace(rule, value=counters.get(rule.names[0], rule.value)) for rule in found.rules)
    return replace(found, rules=tuple(rules))


def write_map(path: Path, found: WeightMap) -> None:
    """Write the map as JSON, one rule a line."""
    rules = ",\n".join(f"  {json.dumps(_describe(rule))}" for rule in found.rules)
    tied = json.dumps({"torch": dict(found.torch_tied), "paddle": dict(found.paddle_tied)})
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
        or not {*_SIDES} >= tied.keys()
        or not all(map(_is_names, tied.values()))
    ):
        raise WeightsError(f'{path}: "tied" must be {{"torch": {{second: first}}, "paddle": ...}}')
    read = tuple(_read_rule(path, number, rule) for number, rule in enumerate(rules, 1))
    contradiction = find_contradiction(read, tied)
    if contradiction:
        raise WeightsError(f"{path}: {contradiction}")
    return WeightMap(read, tied.get("torch", {}), tied.get("paddle", {}))


def _describe(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON has it, without what it leaves at its default."""
    made: dict[str, Any] = {side: _shorten(getattr(rule, side)) for side in _SIDES}
    if any(rule.transposed):
        made["transposed"] = True if all(rule.transposed) else list(rule.transposed)
    plain = Rule((), ())
    for name in _FLAGS[1:]:
        value = getattr(rule, name)
        if value != getattr(plain, name):
            made[name] = value
    return made


def _shorten(names: tuple[str, ...]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _read_rule(path: Path, number: int, made: Any) -> Rule:
    def refuse(what: str) -> WeightsError:
        return WeightsError(f"{path}: rule {number} ({json.dumps(made)[:120]}): {what}")

    if not isinstance(made, dict) or _SIDES[0] not in made or _SIDES[1] not in made:
        raise refuse('expected {"torch": name or names, "paddle": name or names, ...}')
    unknown = sorted(made.keys() - _KEYS)
    if unknown:
        raise refuse(f"{unknown[0]!r} is unknown; known: {', '.join(sorted(_KEYS))}")
    torch, paddle = (_read_names(made[side]) for side in _SIDES)
    transposed = made.get("transposed", False)
    turns = [transposed] * len(paddle or ()) if isinstance(transposed, bool) else transposed
    parts, groups, turned = made.get("parts", []), made.get("groups", 1), made.get("turned", False)
    shapes = [made.get(f"{side}_shapes", []) for side in _SIDES]
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
    return Rule(torch, paddle, tuple(turns), tuple(parts), turned, groups, kept[0], kept[1], value)


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
