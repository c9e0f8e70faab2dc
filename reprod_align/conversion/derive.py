"""From the pairing of two models to the map of their weights, under the names of their state dicts."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from reprod_align.alignment.pairing import Pairing
from reprod_align.conversion.rule import Rule, Shape, make_rule
from reprod_align.conversion.weight_map import WeightMap
from reprod_align.model.side import ModelInfo, Side

_COUNTER = "num_batches_tracked"


@dataclass(frozen=True)
class Saved:
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

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of its tensors."""
        return {name: self.info.tensors[own].shape for name, own in self.own.items() if own}

    def find(self, own: str) -> str:
        """Return what the state dict calls a tensor of the model, "" if it does not hold it."""
        return self.first.get(self.info.tensors[own].tie, "")


def describe_state(side: Side) -> Saved:
    """Return what a side's state dict holds."""
    info, own = side.describe(), side.saved_names()
    first: dict[str, str] = {}
    tied: dict[str, str] = {}
    ties = {name: info.tensors[held].tie for name, held in own.items() if held}
    for name in sorted(ties, key=lambda name: own[name] != ties[name]):  # the tie's own name first
        if first.setdefault(ties[name], name) != name:
            tied[name] = first[ties[name]]
    return Saved(info, own, first, tied)


def derive_map(
    pairing: Pairing,
    torch: Saved,
    paddle: Saved,
    idle: tuple[Collection[str], Collection[str]] = ((), ()),
) -> tuple[WeightMap, dict[str, str]]:
    """Return the map, and what it lacks: the tensors of the state dicts without a counterpart, in words.

    idle: PyTorch's and Paddle's tensors that need none, since the outputs do not depend on them.
    """
    rules = list(dict.fromkeys(_pair_rules(pairing, torch, paddle)))
    paired = {name for rule in rules if rule.torch and rule.paddle for name in rule.names}
    rules = [rule for rule in rules if (rule.torch and rule.paddle) or not paired & {*rule.names}]
    for side, at, unused in ((torch, "torch", idle[0]), (paddle, "paddle", idle[1])):
        known = {name for rule in rules for name in getattr(rule, at)}
        for name in side.names:
            if name not in known and (side.own[name] in unused or _is_dispensable(side, name)):
                rules.append(Rule((name,), ()) if at == "torch" else Rule((), (name,)))
    found = WeightMap(tuple(rules), torch.tied, paddle.tied)
    lacking = [*_list_lacking(found, torch, "torch"), *_list_lacking(found, paddle, "paddle")]
    return found, dict(lacking)


def _pair_rules(pairing: Pairing, torch: Saved, paddle: Saved) -> Iterator[Rule]:
    for pair in pairing.match.pairs:
        ours, theirs = map(torch.find, pair.torch), map(paddle.find, pair.paddle)
        names = tuple(ours), tuple(theirs)
        if all(names[0]) and all(names[1]):
            shapes = ([torch.shapes[name] for name in names[0]],
                      [paddle.shapes[name] for name in names[1]])  # fmt: skip
            made = make_rule(pair, *shapes)
            yield Rule(*names, made.transposed, made.parts, made.turned, made.groups,
                       made.torch_shapes, made.paddle_shapes)  # fmt: skip
            continue
        for name in filter(None, names[0]):
            yield Rule((name,), ())
        for name in filter(None, names[1]):
            yield Rule((), (name,))


def _is_dispensable(side: Saved, name: str) -> bool:
    """Tell whether a tensor needs no counterpart: integers that a model makes itself, and counters."""
    tensor = side.info.tensors.get(side.own[name])
    if tensor is None:
        return False
    return tensor.role == _COUNTER or not (tensor.is_float or tensor.is_parameter)


def _list_lacking(found: WeightMap, side: Saved, framework: str) -> Iterator[tuple[str, str]]:
    known = {name for rule in found.rules for name in getattr(rule, framework)}
    title = {"torch": "PyTorch", "paddle": "Paddle"}[framework]
    for name in side.names:
        if name not in known:
            shape = side.shapes.get(name, "which its state_dict computes")
            yield name, f"without a counterpart: {title}'s {name} {shape}"
