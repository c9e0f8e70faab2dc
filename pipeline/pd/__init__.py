"""What the pd_* scripts share. pipeline/pt is its twin, file by file.

Imported before PaddleNLP by what runs on the Paddle side: PyTorch is neither needed nor looked for.
PaddleNLP imports Hugging Face datasets, which looks for PyTorch unless told not to. Where PyTorch has
been imported, as by a check that compares both sides, it is needed and stays visible.
"""

import logging
import os
import sys

if "torch" not in sys.modules:
    os.environ.setdefault("USE_TORCH", "0")
logging.getLogger("datasets").setLevel(logging.WARNING)  # it would report that it obeys
