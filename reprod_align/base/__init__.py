"""What every package needs: comparing arrays, whole files, text and JSON, and the two frameworks' names."""

from typing import Final, Literal

Framework = Literal["torch", "paddle"]
FRAMEWORKS: Final[dict[Framework, str]] = {"torch": "PyTorch", "paddle": "Paddle"}
"""name in code -> in words; the reference's first"""
