"""Which tensors of two models hold the same numbers, and how the one becomes the other."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reprod_align.model.layout import Lay, cut, join
from reprod_align.model.trace import Array


@dataclass(frozen=True)
class TensorPair:
    """Tensors of the two models that hold the same numbers; mostly one on each side.

    Several on the Paddle side: the PyTorch tensor is cut along its first axis, and the other way.
    """

    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    lay: tuple[Lay, ...]
    """one per Paddle tensor: how it lies there"""
    sizes: tuple[int, ...] = ()
    """lengths of the parts along the first axis, if the tensor is cut or joined"""
    turned: bool = False
    """PyTorch's tensors are (in, out), as GPT-2's Conv1D keeps them, and are cut or joined by outputs"""
    groups: int = 1
    """into how many groups the whole's rows fall, each with its share of every part: head by head"""
    choices: tuple[tuple[Lay, ...], ...] = ()
    """other ways it could lie, where nothing but the numbers can tell"""

    @property
    def is_fused(self) -> bool:
        """Whether one side keeps whole what the other keeps in parts."""
        return bool(self.sizes)

    def to_paddle(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the Paddle tensors hold, given PyTorch's by name; also right for gradients."""
        ours = [arrays[name].T if self.turned else arrays[name] for name in self.torch]
        if len(self.torch) > 1:
            return {self.paddle[0]: self.lay[0](join(ours, self.groups))}
        parts = cut(ours[0], self.sizes, self.groups) if self.sizes else ours
        return {
            name: lay(part) for name, lay, part in zip(self.paddle, self.lay, parts, strict=True)
        }


@dataclass
class Match:
    """The pairing, and what is left over."""

    pairs: list[TensorPair] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    """modules that hold tensors: PyTorch's name -> Paddle's"""
    modules: Mapping[str, str] = field(default_factory=dict)
    """further modules that are known to stand for each other"""
    torch_left: list[str] = field(default_factory=list)
    paddle_left: list[str] = field(default_factory=list)
    doubts: list[tuple[tuple[str, ...], ...]] = field(default_factory=list)
    """groups of PyTorch owners whose partners could be exchanged, all groups of a pattern alike:
    names and order don't tell"""
    layouts: list[dict[TensorPair, TensorPair]] = field(default_factory=list)
    """other ways in which pairs could be laid out, all pairs of a pattern alike: {pair: instead}"""

    def by_torch(self) -> dict[str, TensorPair]:
        """Return the pair of every PyTorch tensor."""
        return {name: pair for pair in self.pairs for name in pair.torch}

    def paired_names(self) -> set[str]:
        """Return the names of the tensors of both sides that have a partner."""
        return {name for pair in self.pairs for name in (*pair.torch, *pair.paddle)}
