"""Planted faults and faithful settings of ports on several ranks, each on two models."""

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

_TEMPLATE = Path(__file__).with_name("pair_template.py")
MODELS = ("mlp", "decoder")


@dataclass(frozen=True)
class Case:
    """One pair: a fault, or none, under some ranks."""

    model: str
    name: str
    mesh: str
    fault: str = ""
    options: dict[str, object] = field(default_factory=dict)
    culprits: tuple[str, ...] = ()
    """parts of names, one of which the first findings must hold: the parameter's or the layer's"""
    axis: str = ""

    def write(self, folder: Path) -> Path:
        """Write the pair file."""
        head = f"MODEL, FAULT, OPTIONS = {self.model!r}, {self.fault!r}, {self.options!r}\n"
        path = folder / f"{self.model}_{self.name}.py"
        path.write_text(head + _TEMPLATE.read_text())
        return path


_UP, _DOWN, _NORM = ("up",), ("down",), ("norm2",)
_DP = {"dp": True}
_SP = {"sp": True}
_CLIP = {"clip": 0.05}
_FAULTS: dict[str, tuple[str, dict[str, object], tuple[str, ...], str]] = {
    "identity-missing": ("tp=2", {}, ("up", "norm2"), "tp"),
    "identity-twice": ("tp=2", {}, ("up", "norm2"), "tp"),
    "bias-missing": ("tp=2", {}, ("up", "qkv"), "tp"),
    "one-rank-scaled": ("tp=2", {}, _UP, "tp"),
    "row-scaled": ("tp=2", {}, _DOWN, "tp"),
    "reduce-missing": ("tp=2", {}, _DOWN, "tp"),
    "bias-on-each-rank": ("tp=2", {}, _DOWN, "tp"),
    "reduce-averages": ("tp=2", {}, _DOWN, "tp"),
    "offset": ("tp=2", {}, ("embed",), "tp"),
    "gather-order": ("tp=2", {}, _UP, "tp"),
    "norm-gradient-summed": ("tp=2", {}, _NORM, "tp"),
    "norm-gradient-averaged": ("tp=2", {}, _NORM, "tp"),
    "norm-gradient-cut": ("tp=2", {}, _NORM, "tp"),
    "shard-gradient-summed": ("tp=2", {}, _UP, "tp"),
    "frozen-on-a-rank": ("tp=2", {}, _DOWN, "tp"),
    "rank-of-another": ("tp=2", {}, _DOWN, "tp"),
    "shards-exchanged": ("tp=2", {}, _UP, "tp"),
    "shard-order": ("tp=2", {}, _UP, "tp"),
    "loss-over-ranks": ("tp=2", {}, ("loss", "the model"), ""),
    "loss-by-batch": ("tp=2", {}, ("loss", "the model"), ""),
    "loss-of-own-part": ("tp=2", {}, ("loss", "the model", "head"), ""),
    "dropout-shared": ("tp=2", {}, ("drop", "inner"), "tp"),
    "dropout-apart": ("tp=2", {}, ("drop",), "tp"),
    "drift": ("tp=2", {}, ("norm", "bias"), "tp"),
    "rate-on-a-rank": ("tp=2", {}, ("rate",), ""),
    "decay-of-shards": ("tp=2", {}, ("weight", "decay"), ""),
    "clip-of-own-part": ("tp=2", _CLIP, ("clip", "norm"), ""),
    "clip-counts-twice": ("tp=2", _CLIP, ("clip", "norm"), ""),
    "tie-cut": ("tp=2", {"tied": True}, ("embed", "head"), ""),
    "dp-unreduced": ("dp=2", _DP, ("",), "dp"),
    "dp-summed": ("dp=2", {**_DP, "sgd": True}, ("",), ""),
    "dp-same-data": ("dp=2", _DP, ("examples",), ""),
    "dp-overlap": ("dp=2", _DP, ("examples",), ""),
    "dp-one-parameter": ("dp=2", _DP, _NORM, "dp"),
    "dp-mean-of-means": ("dp=2", _DP, ("loss", "the model"), ""),
    "dp-over-tp": ("dp=2,tp=2", _DP, ("",), "dp"),
    "sp-norm-unmarked": ("tp=2,sp", _SP, _NORM, "tp"),
    "sp-bias-unmarked": ("tp=2,sp", _SP, _DOWN, "tp"),
    "sp-norm-twice": ("tp=2,sp", _SP, _NORM, "tp"),
    "sp-scatter-order": ("tp=2,sp", _SP, ("the model", "blocks.0"), ""),
    "sp-gather-sums": ("tp=2,sp", _SP, ("norm",), "tp"),
}

FAITHFUL: dict[str, tuple[str, dict[str, object]]] = {
    "plain": ("tp=2", {}),
    "without-dropout": ("tp=2", {"dropout": 0.0}),
    "gathered": ("tp=2", {"gather": True}),
    "tied": ("tp=2", {"tied": True}),
    "padded": ("tp=2", {"vocabulary": 23}),
    "padded-tied": ("tp=2", {"vocabulary": 23, "tied": True}),
    "sgd": ("tp=2", {"sgd": True}),
    "clipped": ("tp=2", _CLIP),
    "scheduled": ("tp=2", {"schedule": True}),
    "ignored-labels": ("tp=2", {"ignored": True}),
    "replicas": ("dp=2", _DP),
    "replicas-interleaved": ("dp=2", {**_DP, "interleaved": True}),
    "replicas-clipped": ("dp=2", {**_DP, **_CLIP}),
    "replicas-sgd": ("dp=2", {**_DP, "sgd": True}),
    "replicas-uneven-tokens": ("dp=2", {**_DP, "ignored": True}),
    "sequence": ("tp=2,sp", _SP),
    "sequence-clipped": ("tp=2,sp", {**_SP, **_CLIP}),
    "sequence-without-dropout": ("tp=2,sp", {**_SP, "dropout": 0.0}),
    "both": ("dp=2,tp=2", _DP),
    "both-clipped": ("dp=2,tp=2", {**_DP, **_CLIP}),
}

CASES = [
    *(Case(model, fault, mesh, fault, options, culprits, axis)
      for fault, (mesh, options, culprits, axis) in _FAULTS.items() for model in MODELS),
    *(Case(model, f"faithful-{name}", mesh, "", options)
      for name, (mesh, options) in FAITHFUL.items() for model in MODELS),
]  # fmt: skip


def is_set_aside(fault: str) -> bool:
    """Tell whether a kind of fault was set aside before the judge was developed: a third of them."""
    return int(sha256(fault.encode()).hexdigest(), 16) % 3 == 0
