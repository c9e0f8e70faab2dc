"""Divides a pair of models into sections: modules whose weights fit, with their counterparts.

The sections cover the modules that hold weights; what is around them, the code of the models'
containers and what these hold themselves, stays in every run.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import prod

from reprod_align.base.text import ancestors, is_within, parent
from reprod_align.match import TensorPair
from reprod_align.model import ModelInfo


@dataclass(frozen=True)
class Section:
    """A module of PyTorch's model, and its counterpart in Paddle's."""

    torch: str
    paddle: str


@dataclass(frozen=True)
class Piece:
    """Sections that are judged together."""

    sections: tuple[Section, ...]

    @property
    def name(self) -> str:
        """The first and the last section, by PyTorch's names."""
        names = [section.torch for section in self.sections]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


class Ties:
    """Which tensors lie within the modules of one side; one with several names counts once."""

    def __init__(self, info: ModelInfo) -> None:
        """Take the side's modules and tensors."""
        self.info = info
        self._within: dict[str, set[str]] = defaultdict(set)
        for tensor in info.tensors.values():
            if tensor.is_parameter:
                for path in (tensor.owner, *ancestors(tensor.owner)):
                    self._within[path].add(tensor.tie)

    def within(self, path: str) -> Set[str]:
        """Return the parameters within a module."""
        return self._within.get(path, set())

    def count(self, *paths: str) -> int:
        """Return the number of elements of the parameters within modules, each parameter once."""
        ties = {tie for path in paths for tie in self.within(path)}
        return sum(prod(self.info.tensors[tie].shape) for tie in ties)

    def names(self, names: Sequence[str]) -> frozenset[str]:
        """Return the tensors of these names."""
        return frozenset(self.info.tensors[name].tie for name in names)


@dataclass(frozen=True)
class Cover:
    """Two models that are to be divided."""

    torch: Ties
    paddle: Ties
    pairs: Sequence[TensorPair]
    modules: Mapping[str, str]
    """paired: PyTorch's name -> Paddle's"""
    callable_torch: Set[str]
    """the modules that compute something themselves; a list of modules does not"""
    callable_paddle: Set[str]

    def choose(self, limit: int, path: str = "") -> list[Section]:
        """Return the outermost modules within `path` of at most `limit` parameters that have a counterpart.

        A module without children is one whatever it holds, and so is a module with a child that has
        no counterpart of its own.
        """
        partner = self._find_partner(path) if path in self.callable_torch else ""
        children = self._children.get(path, ())
        if partner and self.torch.count(path) <= limit:
            return [Section(path, partner)]
        inner = [section for child in children for section in self.choose(limit, child)]
        covered = {tie for section in inner for tie in self.torch.within(section.torch)}
        wanted = {tie for child in children for tie in self.torch.within(child)}
        if partner and (not children or not wanted <= covered):
            return [Section(path, partner)]
        return inner

    def _find_partner(self, path: str) -> str:
        """Return Paddle's module that holds what is paired with this one's tensors, and nothing else.

        "" if there is none.
        """
        ours = self.torch.within(path)
        theirs: set[str] = set()
        for first, second in self._paired_ties:
            if first & ours:
                if not first <= ours:
                    return ""
                theirs |= second
        if not path or not theirs:
            return ""
        known = self.modules.get(path)
        fitting = [
            other
            for other in self.callable_paddle
            if other and self.paddle.within(other) & self._paddle_paired == theirs
        ]
        if known in fitting:
            return known
        same = self.torch.info.modules[path].class_name
        alike = [p for p in fitting if self.paddle.info.modules[p].class_name == same]
        free = set(self.modules.values())
        return min((p for p in alike or fitting if p not in free), key=len, default="")

    @cached_property
    def _paired_ties(self) -> list[tuple[frozenset[str], frozenset[str]]]:
        return [(self.torch.names(p.torch), self.paddle.names(p.paddle)) for p in self.pairs]

    @cached_property
    def _paddle_paired(self) -> frozenset[str]:
        return frozenset(tie for _, theirs in self._paired_ties for tie in theirs)

    @cached_property
    def _children(self) -> Mapping[str, Sequence[str]]:
        children: dict[str, list[str]] = defaultdict(list)
        for path in self.torch.info.modules:
            if path:
                children[parent(path)].append(path)
        return children

    # ------------------------------------------------------------------ pieces

    def group(self, sections: Sequence[Section], limit: int) -> list[Piece]:
        """Return the sections in pieces of up to `limit` parameters; those that share one together."""
        groups: list[list[Section]] = []
        for tied in self._join_tied(sections):
            together = [*(groups[-1] if groups else []), *tied]
            if groups and self.torch.count(*(section.torch for section in together)) <= limit:
                groups[-1].extend(tied)
            else:
                groups.append(list(tied))
        return [Piece(tuple(group)) for group in groups]

    def _join_tied(self, sections: Sequence[Section]) -> list[list[Section]]:
        """Return the sections, those that share a parameter on either side in one group."""
        groups: list[tuple[set[tuple[int, str]], list[Section]]] = []
        for section in sections:
            held = {(0, tie) for tie in self.torch.within(section.torch)}
            held |= {(1, tie) for tie in self.paddle.within(section.paddle)}
            joined = [section]
            for group in [group for group in groups if group[0] & held]:
                groups.remove(group)
                held, joined = held | group[0], [*group[1], *joined]
            groups.append((held, joined))
        order = {section: at for at, section in enumerate(sections)}
        return sorted((joined for _, joined in groups), key=lambda group: order[group[0]])


def is_inside(name: str, sections: Sequence[str]) -> bool:
    """Tell whether a module or tensor lies within one of the sections."""
    return any(is_within(name, section) for section in sections)
