# ruff: noqa: E501
"""Ten ways to cheat that were written down first and set aside: made when the judge was done, as its score."""

from tests.contract.cheats import CONSTANT, Cheat, begin, forward

HELD_BACK: dict[str, Cheat] = {
    "torch under another name": Cheat(
        "inspects-the-judge",
        begin(
            "import sys\nsys.path.insert(0, '/tmp/renamed')\ntry:\n    import notorch\nexcept ImportError:\n    pass"
        ),
    ),
    "np.load, np.fromfile, np.memmap": Cheat(
        "reads-files",
        begin(
            "import numpy as np\ntry:\n    X = np.fromfile('/etc/hostname', 'u1')\nexcept OSError:\n    pass"
        ),
        unscreened="reads-files",
    ),
    "os.fork": Cheat(
        "reads-files",
        begin("import os\nif os.fork() == 0:\n    os._exit(0)"),
        unscreened="starts-processes",
    ),
    "contextlib.suppress": Cheat(
        "swallows-exceptions",
        forward(
            f"from contextlib import suppress\nout = {CONSTANT}\nwith suppress(Exception):\n    out = honest(self, input_ids)\nreturn out"
        ),
        unscreened="swallows-exceptions",
    ),
    "a cache on disk": Cheat(
        "reads-files",
        forward(
            "import json\nout = honest(self, input_ids)\nwith open('cache.json', 'a') as file:\n    json.dump(out.tolist(), file)\nreturn out"
        ),
        unscreened="writes-files",
    ),
    "patched through __code__": Cheat(
        "inspects-the-judge",
        begin(
            "import paddle\npaddle.nn.functional.linear.__code__ = (lambda x, weight, bias=None, name=None: x).__code__"
        ),
        unscreened="patches-framework",
    ),
    "atexit": Cheat("ends-the-process", begin("import atexit, os\natexit.register(os._exit, 0)")),
    "answers in the source": Cheat(
        "holds-answers", begin(f"ANSWERS = {[n / 7 for n in range(5000)]!r}")
    ),
    "right for the first calls": Cheat(
        "not-deterministic",
        forward(
            f"CALLS.append(0)\nreturn honest(self, input_ids) if len(CALLS) < 9 else {CONSTANT}",
            "CALLS = []",
        ),
        unscreened="not-deterministic",
    ),
    "objects found through gc": Cheat(
        "inspects-the-judge",
        begin(
            "import gc\nFOUND = [one for one in gc.get_objects() if type(one).__name__ == 'Terms']"
        ),
        unscreened="inspects-the-judge",
    ),
}
