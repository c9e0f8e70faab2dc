"""Which entry of the table of APIs a cause leads to, by the words of the cause."""

import re
from collections.abc import Sequence
from typing import Final

from reprod_align.api.table import refer_to

# The first pattern found in a cause decides.
ENTRIES: Final[Sequence[tuple[str, str]]] = (
    (r"Linear weight is \(out, in\)", "linear-weight"),
    (r"batch norm by the (un)?biased variance", "batch-norm-running-variance"),
    (r"unbiased (variance|standard deviation)", "variance"),
    (r"RMS norm", "rms-norm"),
    (r"norm with epsilon", "layer-norm-epsilon"),
    (r"axis -?\d+ instead of|instead of axis|the softmax is over the", "softmax-axis"),
    (r"gelu \(", "gelu"),
    (r"SELU", "selu"),
    (r"Hardsigmoid", "hardsigmoid"),
    (r"Hardswish", "hardswish"),
    (r"Hardtanh|clips the values", "clamp"),
    (r"LeakyReLU", "leaky-relu-at-zero"),
    (r"mask is inverted", "attention-boolean-mask"),
    (r"causal mask|\(diagonal=", "triu"),
    (r"\bdropout\b|only scales by", "dropout-scale"),
    (r"padding (mask )?is (missing|not masked)|padding mask", "attention-boolean-mask"),
    (r"detached", "stop-gradient-scope"),
    (r"transpose", "transpose"),
)


def add_entry(cause: str) -> str:
    """Return the cause and the command that shows its API entry; the cause alone if it has none."""
    found = next((slug for words, slug in ENTRIES if re.search(words, cause)), "")
    return cause + refer_to([found])
