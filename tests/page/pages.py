"""A page with every part, and one of a large model."""

import math
import os
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from reprod_align.page import (
    CodeLine,
    CurvePlot,
    Diagnostic,
    Figures,
    Layer,
    Page,
    StepResult,
    Table,
    TensorPicture,
)
from reprod_align.page.html import render_page
from tests.conftest import PATIENCE

import pytest

NARROWEST = 500
FRAME = """<script>addEventListener("message", (event) => document.title = event.data)</script>
<iframe src="page.html" width="{}" height="900" style="border: 0"></iframe>"""
HOSTILE = "</script><script>alert(1)</script>\x1b[31m\u202e\n\"'&"
EXACT, APART = Figures(1e-17, 1e-16, 2e-16), Figures(1e-4, 1e-3, 3e-3)


def make_layers(count: int, wrong: int) -> list[Layer]:
    """Return `count` blocks of two modules each; the one with this number is at diagnostic."""
    layers = [Layer("", "", "Net", forward=APART, introduced=0.0, inherited=3e-3)]
    for block in range(count):
        for part in ("fc", "norm"):
            name = f"layers.{block}.{part}"
            layer = Layer(name, name.replace("layers", "blocks"), "Linear", floor=1e-16)
            layer.forward = APART if block >= wrong else EXACT
            layer.failed = block == wrong and part == "norm"
            layer.introduced = 3e-3 if layer.failed else 0.0
            layer.inherited = 3e-3 if block > wrong else 0.0
            layer.backward = APART if block <= wrong else EXACT
            layers.append(layer)
    return layers


def make_page(blocks: int = 6, name: str = "mine.py") -> Page:
    diagnostic = Diagnostic(
        "forward", f"layers.{blocks // 2}.norm", "its inputs agree and its output does not",
        (CodeLine("PyTorch", "net.py:1", "one(x)"), CodeLine("Paddle", "net.py:2", "two(x)")),
        "difference 0.1, tolerance 1e-9", ("layers.7", "layers.8"), f"layers.{blocks // 2}.norm",
    )  # fmt: skip
    return Page(
        name, "diverges", False, "2 findings; the first is where the two models diverge",
        steps=[StepResult("1 forward", "failed", "passed", "failed", "logits", "1.0e-02", "3.0")],
        diagnostics=[diagnostic, Diagnostic("backward", "head", "the gradient diverges here")],
        meaning=["output: 3 of 8 predictions flip"],
        layers=make_layers(blocks, blocks // 2), limit=1e-9,
        picture=TensorPicture("layers.3.norm", (4, 2), [[0.0, 1e-3], [math.inf, 1e-5]],
                              [0.0, 1.0, 2.0], [3, 5], [4, 4]),
        curves=[CurvePlot("loss", [0, 1, 2], [1.0, 0.5, 0.2], [1.0, 0.5, math.nan], [1e-9] * 3, 2)],
        tables=[Table("Weights", ("PyTorch", "Paddle"), [(f"w{n}", f"v{n}") for n in range(50)],
                      frozenset({0, 49}))],
        remarks=["a remark"], unjudged=["an output"], facts=[("date", "today")],
    )  # fmt: skip


def open_page(
    tmp_path: Path, page: Page, script: str = "", width: int = 1280, dark: bool = False
) -> str:
    """Return the page's document after its script, and `script`, ran in a browser.

    Fails on any word on the browser's console. Skips where there is no browser.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    text = render_page(page)
    if script:  # the page's own policy lets in nothing else
        digest = b64encode(sha256(script.encode()).digest()).decode()
        text = text.replace("script-src '", f"script-src 'sha256-{digest}' '")
        text = text.replace("</body>", f"<script>{script}</script></body>")
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    if width < NARROWEST:  # no window is so narrow, but a frame can be
        path.with_name("frame.html").write_text(FRAME.format(width))
        path = path.with_name("frame.html")
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--enable-logging=stderr",
             f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000", "--lang=en",
             "--dump-dom", path.as_uri()]  # fmt: skip
    environment = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert said == [], said
    return done.stdout
