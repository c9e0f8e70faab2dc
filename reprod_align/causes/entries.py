"""The entries of the table of APIs that causes lead to; each cause names its own."""

from typing import Final

from reprod_align.api.table import refer_to

# The first name found in a function's words decides.
_FUNCTIONS: Final = {
    "gelu (": "gelu",
    "SELU": "selu",
    "Hardsigmoid": "hardsigmoid",
    "Hardswish": "hardswish",
    "Hardtanh": "clamp",
    "LeakyReLU": "leaky-relu-at-zero",
}
ENTRIES: Final = frozenset({
    *_FUNCTIONS.values(), "attention-boolean-mask", "batch-norm-epsilon",
    "batch-norm-running-variance", "clamp",
    "cross-entropy-axis", "cross-entropy-ignored", "cross-entropy-smoothing",
    "cross-entropy-soft-label", "cross-entropy-use-softmax", "cross-entropy-weight", "ctc-loss",
    "dropout-scale", "embedding-padding-idx", "layer-norm-epsilon", "linear-weight", "rms-norm",
    "smooth-l1", "softmax-axis", "stop-gradient-scope", "transpose", "triu", "variance",
})  # fmt: skip
"""that a cause may cite"""


def cite(cause: str, entry: str) -> str:
    """Return the cause and the command that shows this entry; a cause that is "" stays so.

    Raises KeyError for an entry that is not in ENTRIES.
    """
    if entry not in ENTRIES:
        raise KeyError(entry)
    return cause + refer_to([entry]) if cause else ""


def cite_function(cause: str) -> str:
    """Return the cause and the entry of the function that it names, if there is one."""
    entry = next((slug for name, slug in _FUNCTIONS.items() if name in cause), "")
    return cite(cause, entry) if entry else cause
