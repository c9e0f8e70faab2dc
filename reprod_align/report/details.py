"""What a report shows beside its findings: every layer, one tensor, curves, weights, settings, inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reprod_align.page.content import CurvePlot, Layer, TensorPicture


@dataclass(frozen=True)
class Weight:
    """A tensor of both models; several names where one side keeps it in parts."""

    torch_name: str
    paddle_name: str
    """"" where it has no counterpart; PyTorch's likewise"""
    shape: tuple[int, ...]
    """in the model that is named first"""
    how: str
    """what makes Paddle's of PyTorch's: "transposed", "in parts"; "" nothing"""


@dataclass(frozen=True)
class Setting:
    """A setting that the two models have otherwise."""

    torch_name: str
    paddle_name: str
    setting: str
    torch_value: str
    paddle_value: str
    conclusive: bool
    """False: both may compute the same here"""


@dataclass
class Details:
    """All of it, as far as the comparison got."""

    layers: list[Layer] = field(default_factory=list)
    """in call order, from one pass in eval mode"""
    picture: TensorPicture | None = None
    """of the output of the first module at fault, or of the one that differs most"""
    curves: list[CurvePlot] = field(default_factory=list)
    """losses and learning rates of the training steps"""
    weights: list[Weight] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    inputs: Sequence[tuple[str, str, tuple[int, ...]]] = ()
    """name, dtype, shape"""
    versions: Mapping[str, str] = field(default_factory=dict)
    """of packages, where a side runs in another interpreter"""
