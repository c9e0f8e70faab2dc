"""Tests that run PaConvert itself: they are skipped where the optional extra is not installed."""

import importlib.util
import shutil

import pytest

needs_paconvert = pytest.mark.skipif(
    not importlib.util.find_spec("paconvert") and not shutil.which("paconvert"),
    reason="paconvert, the extra `port`, is not installed",
)
