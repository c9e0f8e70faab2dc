"""What matching sees of a model: its tensors by the module that holds them, in calling order."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reprod_align.backends import matrix_axes
from reprod_align.base.blocks import Array, read_blocks
from reprod_align.base.text import parent
from reprod_align.model.side import ModelInfo, TensorInfo
from reprod_align.randomness import Shape

import numpy as np

_ROLES = {"_mean": "running_mean", "_variance": "running_var", "_weight": "weight",
          "weight_ho": "weight_hr"}  # fmt: skip
_SCALED = "InstanceNorm"  # Paddle calls its weight `scale`
_COUNTER = "num_batches_tracked"  # Paddle keeps none
_PARAMETRIZED = re.compile(r"(?:(.*)\.)?parametrizations\.(\w+?)(?:\.0)?")
"""torch's parametrizations hold in modules of their own what Paddle's layers hold themselves"""
_PARTS = {"original0": "g", "original1": "v", "original": "orig", "_u": "u", "_v": "v"}
_MATRICES = ("weight", "weight_v", "weight_orig")


@dataclass(frozen=True)
class Owner:
    """A module with tensors of its own: what is paired first."""

    path: str
    kind: str
    tensors: Mapping[str, TensorInfo]
    """by role, in PyTorch's words"""
    axes: Mapping[str, str]
    """of its matrices, by role: "oi", "io", either with "?", or "" (see tensor_pair.find_turns)"""

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of its tensors, sorted."""
        return tuple(sorted(tensor.shape for tensor in self.tensors.values()))

    @property
    def is_own(self) -> bool:
        """Whether it holds a tensor that is not another's under a second name."""
        return any(tensor.tie == tensor.name for tensor in self.tensors.values())


@dataclass(frozen=True)
class Evidence:
    """One model as matching sees it."""

    info: ModelInfo
    order: Sequence[str]
    """the modules in the order in which they were first called"""
    values: Mapping[str, Array]
    """what its tensors hold at present"""
    owners: Mapping[str, Owner]
    _prints: dict[str, tuple[float, float] | None] = field(default_factory=dict)

    def fingerprint(self, name: str) -> tuple[float, float] | None:
        """Return two numbers of a matrix that stay the same when it is transposed; None if constant."""
        if name not in self._prints:
            self._prints[name] = _measure_print(self.values[name])
        return self._prints[name]

    def reorder_calls(self, order: Sequence[str]) -> "Evidence":
        """Return the same with its modules called in another order."""
        return replace(self, order=order, owners=_sort_owners(self.info, order, self.owners))

    def tensor_names(self) -> Iterator[str]:
        """Yield the names of tensors that need a partner: parameters and saved float buffers."""
        for tensor in self.info.tensors.values():
            statistic = tensor.is_float and tensor.is_persistent
            if tensor.tie == tensor.name and (tensor.is_parameter or statistic):
                if tensor.role != _COUNTER:
                    yield tensor.name

    def free_names(self, paired: Collection[str]) -> Iterator[str]:
        """Yield the names of tensors that need a partner and have none under any of their names."""
        for name in self.tensor_names():
            if not any(other in paired for other in self.info.other_names(name)):
                yield name

    def find_axes(self, tensor: TensorInfo) -> str:
        """Return the axes of a tensor that an owner holds."""
        path, role = _find_home(self.info, tensor)
        return self.owners[path].axes[role]

    def in_order(self, children: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return each module's children in calling order."""
        places = _find_places(self.info, self.order)
        return {path: sorted(own, key=lambda p: places[p]) for path, own in children.items()}


def collect_evidence(
    info: ModelInfo, order: Sequence[str], values: Mapping[str, Array], framework: str
) -> Evidence:
    """Return a model's tensors grouped by the module that holds them, in calling order."""
    grouped: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for tensor in info.tensors.values():
        if tensor.role != _COUNTER:
            path, role = _find_home(info, tensor)
            grouped[path][role] = tensor
    owners = {
        path: _make_owner(info, path, tensors, framework) for path, tensors in grouped.items()
    }
    return Evidence(info, order, values, _sort_owners(info, order, owners))


def _sort_owners(
    info: ModelInfo, order: Sequence[str], owners: Mapping[str, Owner]
) -> dict[str, Owner]:
    places = _find_places(info, order)
    return dict(sorted(owners.items(), key=lambda item: places[item[0]]))


def open_containers(side: Evidence, other: Evidence) -> Evidence:
    """Return the side with attentions and recurrent networks opened up where the other has parts.

    torch's MultiheadAttention holds its projections itself; an LSTM holds what the other side may
    keep in one cell per layer and direction, or in two Linear layers per cell.
    """
    parts = [part for owner in side.owners.values() for part in _open(owner, other)]
    return replace(side, owners={part.path: part for part in parts})


def _find_home(info: ModelInfo, tensor: TensorInfo) -> tuple[str, str]:
    """Return the layer that a tensor belongs to, and its role there in PyTorch's words.

    weight_norm's and spectral_norm's parts go by the names of Paddle and of torch's older functions:
    weight_g, weight_v; weight_orig, weight_u, weight_v.
    """
    inside = _PARAMETRIZED.fullmatch(tensor.owner)
    if inside is not None and tensor.role in _PARTS:
        return inside[1] or "", f"{inside[2]}_{_PARTS[tensor.role]}"
    kind = info.modules[tensor.owner].kind
    if tensor.role == "scale" and kind.startswith(_SCALED):
        return tensor.owner, "weight"
    return tensor.owner, name_role(tensor.role)


def name_role(name: str) -> str:
    """Return what a layer's tensor is in PyTorch's words: "running_mean" of Paddle's "_mean"."""
    return _ROLES.get(name, name)


def _make_owner(
    info: ModelInfo, path: str, tensors: dict[str, TensorInfo], framework: str
) -> Owner:
    settings = info.modules[path]
    convention = settings.convention or framework
    laid = matrix_axes(settings.kind, settings.class_name, convention, path in info.stock)
    axes = {role: laid if role in _MATRICES else "" for role in tensors}
    for role in tensors:
        if role.startswith("weight_hr"):  # an LSTM's projection: in Paddle a Linear's weight
            axes[role] = matrix_axes("Linear", "", convention)
    return Owner(path, settings.kind, tensors, axes)


def _find_places(info: ModelInfo, order: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return where each module stands: by first call; one never called stands by its parent."""
    called = {path: number for number, path in enumerate(order)}
    places: dict[str, tuple[int, int]] = {}
    for number, path in enumerate(info.modules):
        above = path
        while above not in called and above:
            above = parent(above)
        places[path] = called.get(above, -1), number
    return places


def _open(owner: Owner, other: Evidence) -> list[Owner]:
    """Return the parts in which the other side keeps what this owner holds; itself if it has none."""
    if any(role.startswith("in_proj") or role.endswith("_proj_weight") for role in owner.tensors):
        twin = other.owners.get(owner.path)
        return [owner] if twin and _fit_roles(owner, twin) else _open_projections(owner)
    roles = {role for theirs in other.owners.values() for role in theirs.tensors}
    if "weight_ih_l0" in owner.tensors and "weight_ih_l0" not in roles:
        cells = _open_cells(owner)
        return cells if "weight_ih" in roles else [g for cell in cells for g in _open_gates(cell)]
    if "weight_ih" in owner.tensors and not roles & {"weight_ih", "weight_ih_l0"}:
        return _open_gates(owner)
    return [owner]


def _fit_roles(owner: Owner, twin: Owner) -> bool:
    """Tell whether one owner holds no tensors that the other lacks: a bias for q, k and v, or three."""
    ours, theirs = owner.tensors.keys(), twin.tensors.keys()
    return ours <= theirs or theirs <= ours


def _open_projections(owner: Owner) -> list[Owner]:
    """Return the input projections of torch's attention as Linear layers."""

    def split(role: str) -> tuple[str, str]:
        name, _, kind = role.rpartition("_")
        return (name if kind in ("weight", "bias") else role), kind

    return [_make_linear(owner, name, tensors) for name, tensors in _regroup(owner, split).items()]


def _open_cells(owner: Owner) -> list[Owner]:
    """Return a recurrent network's layers and directions as cells."""

    def split(role: str) -> tuple[str, str]:
        name, _, layer = role.partition("_l")
        return layer, name

    return [
        Owner(f"{owner.path}.l{layer}", f"{owner.kind}Cell", tensors,
              {role: owner.axes[f"{role}_l{layer}"] for role in tensors})
        for layer, tensors in _regroup(owner, split).items()
    ]  # fmt: skip


def _open_gates(cell: Owner) -> list[Owner]:
    """Return a cell's two projections, of the input and of the state, as Linear layers."""

    def split(role: str) -> tuple[str, str]:
        kind, _, name = role.partition("_")
        return name, kind

    return [_make_linear(cell, name, tensors) for name, tensors in _regroup(cell, split).items()]


def _regroup(
    owner: Owner, split: Callable[[str], tuple[str, str]]
) -> dict[str, dict[str, TensorInfo]]:
    """Return the owner's tensors by part and role there; `split` gives both for a role."""
    parts: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for role, tensor in owner.tensors.items():
        part, inner = split(role)
        parts[part][inner] = tensor
    return parts


def _make_linear(owner: Owner, name: str, tensors: dict[str, TensorInfo]) -> Owner:
    axes = {role: "oi" if role == "weight" else "" for role in tensors}
    return Owner(f"{owner.path}.{name}", "Linear", tensors, axes)


def _measure_print(array: Array) -> tuple[float, float] | None:
    if array.ndim < 2 or array.size < 4 or array.dtype.kind != "f":
        return None
    flat, sums, constant = array.reshape(-1), np.zeros(2), True
    for _, part in read_blocks(flat):
        constant = constant and bool((part == flat[0]).all())
        sums += float(np.abs(part).sum()), float(part @ part)
    return None if constant else (float(sums[0]), float(sums[1]))
