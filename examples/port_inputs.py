"""Inputs for `reprod-align port` of the two twins in models/; see docs/porting.md."""

import numpy as np


def tokens():
    """Return two rows of token ids with padding, and their mask: (2, 20) each."""
    drawn = np.random.default_rng(0).integers(1, 50, (2, 20))
    mask = np.ones_like(drawn)
    mask[1, 15:] = drawn[1, 15:] = 0
    return {"input_ids": drawn, "attention_mask": mask}


def series():
    """Return x_enc, x_mark_enc, x_dec, x_mark_dec of an Informer with 7 columns."""
    source = np.random.default_rng(0)

    def marks(length):
        return np.stack([source.integers(1, most, (2, length)) for most in (13, 29, 7, 24)], -1)

    return source.normal(size=(2, 24, 7)), marks(24), source.normal(size=(2, 16, 7)), marks(16)
