"""Which entry of the table of APIs a cause leads to, by what the cause says."""

import re
from collections.abc import Sequence
from typing import Final

from reprod_align.api.table import reference

# The first that is found in a cause's words is the one; what they mean stands in the entry alone.
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
    (r"mask is inverted|what is 1 \(True\)", "attention-boolean-mask"),
    (r"causal mask|\(diagonal=", "triu"),
    (r"scaled as dropout|\bdropout\b|only scales by", "dropout-scale"),
    (r"padding (mask )?is (missing|not masked)|padding mask", "attention-boolean-mask"),
    (r"detached", "stop-gradient-scope"),
    (r"transpose", "transpose"),
)


def with_entry(cause: str) -> str:
    """Return the cause and which entry to read; the cause alone where none tells of it."""
    found = next((slug for words, slug in ENTRIES if re.search(words, cause)), "")
    return cause + reference([found])
