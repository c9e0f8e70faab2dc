"""torchvision's classification models, beside any build of PyTorch.

The index's torchvision is built for CUDA: beside a CPU build of PyTorch its compiled operators do not
load, and its import fails because it describes two of them. They are declared here first; the
classification models use none of them.
"""

from typing import Any

import torch

_OPERATORS = ("nms", "qnms")


def _declare() -> torch.library.Library | None:
    """Declare the operators that the import describes, unless a compiled library does."""
    if torch.version.cuda is not None:
        return None
    library = torch.library.Library("torchvision", "DEF")
    for name in _OPERATORS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


LIBRARY = _declare()  # kept: the declaration lives as long as this


def __getattr__(name: str) -> Any:
    """Return torchvision's model of that name."""
    from torchvision import models

    return getattr(models, name)
