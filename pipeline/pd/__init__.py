"""What the pd_* scripts share. pipeline/pt is its twin, file by file.

Import it before PaddleNLP, which imports Hugging Face datasets, which imports PyTorch unless USE_TORCH is 0.
Where PyTorch has already been imported, as by a check that compares both sides, it stays visible.
"""

import logging
import os
import sys

SIDE = "paddle"  # in the names of this side's records

if "torch" not in sys.modules:
    os.environ.setdefault("USE_TORCH", "0")
logging.getLogger("datasets").setLevel(logging.WARNING)  # it would report USE_TORCH
