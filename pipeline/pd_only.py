"""Imported before PaddleNLP by what runs on the Paddle side: PyTorch is neither needed nor looked for.

PaddleNLP imports Hugging Face datasets, which looks for PyTorch unless told not to.
"""

import logging
import os

os.environ.setdefault("USE_TORCH", "0")
logging.getLogger("datasets").setLevel(logging.WARNING)  # it would report that it obeys
