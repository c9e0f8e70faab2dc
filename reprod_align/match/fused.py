"""Pairs a tensor that one side keeps whole with the parts that the other keeps apart: q, k and v; experts."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reprod_align.base.text import last_part, parent, similarity, tokens
from reprod_align.match.evidence import Evidence, Owner
from reprod_align.match.owners import are_same_family
from reprod_align.match.tensor_pair import Match, TensorPair
from reprod_align.randomness import Shape

_ORDER = ("q", "k", "v")
_BESIDE = 0.3  # names of modules in the same block are more alike than that
_EXPERT = re.compile(r"(.*)\.(\d+)\.([^.]+)")


def pair_fused(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair wholes with parts, as long as one pairing makes another clear."""
    _pair_stacks(found, torch, paddle)
    directions = _Fusing(found, torch, paddle, True), _Fusing(found, torch, paddle, False)
    while any(direction.pair() for direction in directions):
        pass


@dataclass(frozen=True)
class _Piecing:
    """An owner's tensor, and owners of the other side that could be its parts, in a row."""

    whole: Owner
    role: str
    parts: Sequence[Owner]
    part_role: str

    @property
    def alike(self) -> float:
        """How alike the names around the two are."""
        return similarity(parent(self.whole.path), parent(self.parts[0].path))

    @property
    def is_qkv(self) -> bool:
        """Whether the parts are named q, k and v."""
        return _find_letters(self.parts) == set(_ORDER)

    @property
    def is_named(self) -> bool:
        """Whether the whole is named after its parts: qkv_proj, gate_up_proj."""
        last = [set(tokens(last_part(part.path))) for part in self.parts]
        own = [words.difference(*last[:at], *last[at + 1 :]) for at, words in enumerate(last)]
        name = set(tokens(last_part(self.whole.path)))
        name |= {letter for word in name if set(word) <= set(_ORDER) for letter in word}
        return all(words & name for words in own)

    @property
    def likely(self) -> tuple[bool, int, float]:
        """The larger, the likelier."""
        return self.is_named, len(_find_letters(self.parts)), self.alike


class _Fusing:
    """One direction: the owners of one side as wholes, those of the other as parts."""

    def __init__(
        self, found: Match, torch: Evidence, paddle: Evidence, whole_is_torch: bool
    ) -> None:
        self.found, self.whole_is_torch = found, whole_is_torch
        self.wholes, self.parts = (torch, paddle) if whole_is_torch else (paddle, torch)

    def pair(self) -> bool:
        """Pair wholes with their parts, the likeliest first; tell whether there were any."""
        before = len(self.found.pairs)
        candidates = list(self.list_candidates())
        for piecing in sorted(candidates, key=lambda p: p.likely, reverse=True):
            if self.is_free(piecing) and self.is_clear(piecing):
                self.join(piecing)
        return len(self.found.pairs) > before

    def list_candidates(self) -> Iterator[_Piecing]:
        """Yield what fits by shape; the bias of a layer goes with its weight, see `join`."""
        free = {role: self.list_free(self.parts, role) for role in ("weight", "bias")}
        paired = self.found.paired_names()
        for whole in self.wholes.owners.values():
            for role, tensor in whole.tensors.items():
                wanted = {1: "bias", 2: "weight"}.get(len(tensor.shape), "")
                if not wanted or not tensor.is_parameter or tensor.name in paired:
                    continue
                if role == "bias" and "weight" in whole.tensors:
                    continue
                for run in _list_runs(free[wanted], wanted, _put_outputs_first(whole, role)):
                    if all(are_same_family(whole.kind, part.kind) for part in run):
                        yield _Piecing(whole, role, run, wanted)

    def list_free(self, side: Evidence, role: str) -> list[Owner]:
        """Return the owners of a side whose tensor of that role has no partner."""
        paired = self.found.paired_names()
        return [o for o in side.owners.values()
                if role in o.tensors and o.tensors[role].name not in paired
                and o.tensors[role].tie == o.tensors[role].name]  # fmt: skip

    def is_free(self, piecing: _Piecing) -> bool:
        """Tell whether all of the tensors still lack a partner."""
        parts = {part.tensors[piecing.part_role].name for part in piecing.parts}
        return not self.found.paired_names() & {piecing.whole.tensors[piecing.role].name, *parts}

    def is_clear(self, piecing: _Piecing) -> bool:
        """Tell whether names say that the parts make up the whole, or numbers leave nothing else.

        Nothing else: the side of the whole has more tensors of its shape than the other, and that
        of the parts more of theirs.
        """
        if piecing.is_named and piecing.alike > _BESIDE:
            return True
        ours = _count_shapes(self.list_free(self.wholes, piecing.role), piecing.role)
        theirs = _count_shapes(self.list_free(self.parts, piecing.part_role), piecing.part_role)
        shape = _put_outputs_first(piecing.whole, piecing.role)
        if ours[shape] <= theirs[shape]:
            return False
        needed = _count_shapes(piecing.parts, piecing.part_role)
        return (piecing.is_qkv and piecing.alike > _BESIDE) or all(
            theirs[part] - ours[part] >= times for part, times in needed.items()
        )

    def join(self, piecing: _Piecing) -> None:
        """Pair the whole with its parts, and its bias with theirs."""
        ordered = replace(piecing, parts=_put_in_order(piecing.parts))
        self.found.pairs.append(self.make_pair(ordered))
        biases = replace(ordered, role="bias", part_role="bias")
        have_biases = all("bias" in owner.tensors for owner in (piecing.whole, *piecing.parts))
        if piecing.part_role == "weight" and have_biases and self.is_free(biases):
            self.found.pairs.append(self.make_pair(biases))

    def make_pair(self, piecing: _Piecing) -> TensorPair:
        """Return the pair of a whole and its parts."""
        whole, parts = ([piecing.whole], piecing.role), (piecing.parts, piecing.part_role)
        torch, paddle = (whole, parts) if self.whole_is_torch else (parts, whole)
        ours, theirs = ([owner.tensors[role] for owner in held] for held, role in (torch, paddle))
        return TensorPair(
            tuple(tensor.name for tensor in ours),
            tuple(tensor.name for tensor in theirs),
            transposed=tuple(_is_turned(owner, paddle[1]) for owner in paddle[0]),
            parts=tuple(_put_outputs_first(part, piecing.part_role)[0] for part in piecing.parts),
            turned=_is_turned(torch[0][0], torch[1]),
            torch_shapes=tuple(tensor.shape for tensor in ours),
            paddle_shapes=tuple(tensor.shape for tensor in theirs),
        )


def _pair_stacks(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair PyTorch's tensors of a layer's experts, (experts, out, in), with Paddle's of one expert each."""
    fusing, paired = _Fusing(found, torch, paddle, whole_is_torch=True), found.paired_names()
    experts: dict[str, dict[int, list[Owner]]] = defaultdict(lambda: defaultdict(list))
    for owner in fusing.list_free(paddle, "weight"):
        if place := _EXPERT.fullmatch(owner.path):
            experts[place[1]][int(place[2])].append(owner)
    for whole in torch.owners.values() if experts else ():
        for role, tensor in whole.tensors.items():
            if len(tensor.shape) != 3 or not tensor.is_parameter or tensor.name in paired:
                continue
            near = experts[max(experts, key=lambda path: similarity(whole.path, path))]
            shares = [
                _list_shares(role, near.get(number, ()), tensor.shape[1:])
                for number in range(len(near))
            ]
            piecing = _Piecing(whole, role, [part for share in shares for part in share], "weight")
            if len(shares) == tensor.shape[0] and all(shares) and fusing.is_free(piecing):
                found.pairs.append(fusing.make_pair(piecing))


def _list_shares(role: str, expert: Sequence[Owner], share: Shape) -> list[Owner]:
    """Return an expert's tensors that fill its share of a stack; none if they do not.

    They stand in the order of the stack's name (gate_up_proj), or of their own (w1, w3).
    """
    shapes = [(part, _put_outputs_first(part, "weight")) for part in expert]
    alike = [part for part, shape in shapes if len(shape) == 2 and shape[1] == share[1]
             and shape[0] * [other for _, other in shapes].count(shape) == share[0]]  # fmt: skip
    named = tokens(role)
    own = {part.path: set(tokens(last_part(part.path))) for part in alike}
    places = {
        path: [at for at, word in enumerate(named) if word in words] for path, words in own.items()
    }
    return sorted(alike, key=lambda part: (places[part.path][:1], last_part(part.path)))


def _put_outputs_first(owner: Owner, role: str) -> Shape:
    """Return the shape of an owner's tensor with its outputs first."""
    shape = owner.tensors[role].shape
    return shape[::-1] if _is_turned(owner, role) else shape


def _is_turned(owner: Owner, role: str) -> bool:
    return owner.axes.get(role, "").startswith("io") and len(owner.tensors[role].shape) == 2


def _count_shapes(owners: Sequence[Owner], role: str) -> Counter[Shape]:
    """Return how often each shape occurs among the tensors of that role, outputs first."""
    return Counter(_put_outputs_first(owner, role) for owner in owners)


def _list_runs(owners: Sequence[Owner], role: str, whole: Shape) -> Iterator[list[Owner]]:
    """Yield two or three owners in a row whose outputs add up to the whole's."""
    for size in (3, 2):
        for start in range(len(owners) - size + 1):
            run = list(owners[start : start + size])
            shapes = [_put_outputs_first(owner, role) for owner in run]
            outs = sum(shape[0] for shape in shapes if shape)
            if outs == whole[0] and {shape[1:] for shape in shapes} == {whole[1:]}:
                yield run


def _find_letters(run: Sequence[Owner]) -> set[str]:
    """Return which of q, k and v the owners are named."""
    words = [[w for w in tokens(owner.path) if w in _ORDER][-1:] for owner in run]
    return {word[0] for word in words if word}


def _put_in_order(run: Sequence[Owner]) -> list[Owner]:
    """Return q, k, v in that order where the names say which is which."""
    known = {word: owner for owner in run for word in tokens(owner.path) if word in _ORDER}
    ordered = [known[word] for word in _ORDER if word in known]
    return ordered if len(ordered) == len(run) else list(run)
