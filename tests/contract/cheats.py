# ruff: noqa: E501
"""Ways to cheat a contract: what is done, the name under which it is refused, and who sees it.

"screen": the source is read and never run. "guard": the port's process hears what it asks for. "judge": what
it answers. "digest": before anything runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract.made import FORWARD, PORT

Act = Callable[[Path], None]
"""changes the folder of a contract after it was written"""


@dataclass(frozen=True)
class Cheat:
    """One way to cheat."""

    code: str
    """the refusal"""
    files: Mapping[str, str] = field(default_factory=lambda: {"port.py": PORT})
    act: Act = lambda folder: None  # noqa: E731
    unscreened: str = ""
    """the refusal where the source is not read: by the guard or the judge; "" if they can't tell"""
    needs_process: bool = False
    """whether what it does would end or harm the tests' own process"""


def begin(text: str) -> dict[str, str]:
    """Return a port that does this first."""
    return {"port.py": f"{text}\n{PORT}"}


def forward(text: str, above: str = "") -> dict[str, str]:
    """Return a port with another body of forward(), where `honest(self, input_ids)` is the right one."""
    honest = FORWARD.replace("        ", "    ")
    body = "\n".join(f"        {line}" for line in text.splitlines())
    changed = PORT.replace(FORWARD, body + "\n")
    honest = f"def honest(self, input_ids):\n{honest}"
    return {"port.py": changed.replace("\n\nclass Model", f"\n\n{honest}\n{above}\n\nclass Model")}


def change_reference(folder: Path) -> None:
    """Let the reference make the port's mistake."""
    path = folder / "reference.py"
    path.write_text(path.read_text().replace("torch.tanh", "torch.sin"))


def link_port(folder: Path) -> None:
    """Let the port be the reference's file."""
    (folder / "port" / "port.py").unlink()
    (folder / "port" / "port.py").symlink_to(folder / "reference.py")


CONSTANT = "paddle.zeros([*input_ids.shape, 20], 'float64')"
CHEATS: dict[str, Cheat] = {
    "the reference is changed": Cheat("reference-changed", act=change_reference),
    "torch imported": Cheat("imports-torch", begin("import torch"), unscreened="imports-torch"),
    "torch imported in forward, errors swallowed": Cheat(
        "imports-torch",
        forward("try:\n    import torch\nexcept ImportError:\n    pass\nreturn honest(self, input_ids)"),
        unscreened="imports-torch",
    ),
    "torch by a split name": Cheat(
        "runs-text", begin("import importlib\nname = 'tor' + 'ch'\ntry:\n    importlib.import_module(name)\n"
                           "except ImportError:\n    pass"),
        unscreened="",
    ),
    "torch by __import__": Cheat(
        "runs-text", begin("try:\n    __import__('tor' + 'ch')\nexcept ImportError:\n    pass"),
        unscreened="imports-torch",
    ),
    "the reference's file": Cheat(
        "reads-files", begin("try:\n    TEXT = open('../../reference.py').read()\nexcept OSError:\n    pass"),
        unscreened="reads-files",
    ),
    "/proc of the parent": Cheat(
        "reads-files", begin("import os\nTEXT = open(f'/proc/{os.getppid()}/environ', 'rb').read()"),
        unscreened="reads-proc",
    ),
    "ctypes": Cheat(
        "uses-ctypes", begin("import ctypes\nLIBC = ctypes.CDLL(None)"), unscreened="uses-ctypes"
    ),
    "a subprocess": Cheat(
        "starts-processes", begin("import subprocess\nsubprocess.run(['true'])"),
        unscreened="starts-processes",
    ),
    "a swallowed exception": Cheat(
        "swallows-exceptions",
        forward(f"try:\n    return honest(self, input_ids)\nexcept Exception:\n    return {CONSTANT}"),
        unscreened="swallows-exceptions",
    ),
    "answers cached by input": Cheat(
        "cached-answers",
        forward("key = str(input_ids.tolist())\nif key not in KNOWN:\n"
                "    KNOWN[key] = honest(self, input_ids).detach()\nreturn KNOWN[key]", "KNOWN = {}"),
        unscreened="cached-answers",
    ),
    "paddle patched": Cheat(
        "patches-framework",
        begin("import paddle\npaddle.nn.Layer.__call__ = lambda self, *a, **k: self.forward(*a, **k)"),
        unscreened="patches-framework",
    ),
    "numpy patched": Cheat(
        "patches-comparison", begin("import numpy as np\nnp.allclose = lambda *a, **k: True"),
        unscreened="patches-comparison",
    ),
    "the judge patched": Cheat(
        "imports-the-judge",
        begin("import reprod_align.pair.wire as wire\nwire.pack = wire.unpack"),
        unscreened="ends-the-process", needs_process=True,
    ),
    "os._exit": Cheat(
        "ends-the-process", forward("import os\nos._exit(0)"), unscreened="ends-the-process",
        needs_process=True,
    ),
    "SystemExit at import": Cheat("ends-the-process", begin("raise SystemExit(0)"), unscreened=""),
    "the certificate written": Cheat(
        "reads-files", begin("with open('../certificate.json', 'w') as file:\n    file.write('{}')"),
        unscreened="writes-files",
    ),
    "sitecustomize": Cheat(
        "shadows-a-module", {"port.py": PORT, "sitecustomize.py": "import paddle\n"}
    ),
    "a module shadowed": Cheat("shadows-a-module", {"port.py": PORT, "json.py": "dumps = str\n"}),
    "a link to the reference": Cheat("not-a-plain-file", act=link_port),
    "the environment": Cheat(
        "reads-the-environment", begin("import os\nJUDGED = 'REPROD' in str(os.environ)"), unscreened=""
    ),
    "weights of its own": Cheat(
        "overrides-the-layer",
        {"port.py": PORT.replace("    def forward", "    def set_state_dict(self, *a, **k):\n"
                                 "        return [], []\n\n    def forward")},
        unscreened="",
    ),
    "weights kept from the start": Cheat(
        "cached-answers",
        forward("if not OWN:\n    OWN.append(self.head.weight.clone())\n"
                "return paddle.matmul(self.norm(self.embed(input_ids)).detach() * 0 + "
                "input_ids.unsqueeze(-1).astype('float64'), OWN[0].astype('float64').detach())",
                "OWN = []"),
        unscreened="cached-answers",
    ),
    "a submission's record": Cheat(
        "reads-files",
        begin("import numpy as np\ntry:\n    X = np.load('log_reprod/forward_torch.npy')\n"
              "except OSError:\n    pass"),
        unscreened="reads-files",
    ),
    "the clock": Cheat(
        "reads-the-clock",
        forward("import time\nreturn honest(self, input_ids) * (1 + time.time() % 1)"),
        unscreened="not-deterministic",
    ),
    "numbers of its own": Cheat(
        "reads-the-clock", forward("import random\nreturn honest(self, input_ids) + random.random()")
    ),
    "lost in the checkpoint": Cheat(
        "overrides-the-layer",
        {"port.py": PORT.replace("    def forward", "    def state_dict(self, *a, **k):\n"
                                 "        held = super().state_dict(*a, **k)\n"
                                 "        return {n: v * 0 if n == 'head.bias' else v for n, v in held.items()}\n\n"
                                 "    def forward")},
        unscreened="loses-in-the-checkpoint",
    ),
    "training that does nothing": Cheat(
        "trains-nothing",
        forward("out = honest(self, input_ids)\nreturn out.detach() * 0 if self.training else out"),
        unscreened="trains-nothing",
    ),
    "NaN": Cheat("not-finite", forward("return honest(self, input_ids) * float('nan')"), unscreened="not-finite"),
    "an object that equals everything": Cheat(
        "no-tensor",
        forward("return Same()", "class Same:\n    def __ne__(self, other):\n        return False\n"),
        unscreened="no-tensor",
    ),
    "an infinite loop": Cheat(
        "out-of-time", forward("while True:\n    pass"), unscreened="out-of-time", needs_process=True
    ),
    "inputs ignored": Cheat(
        "ignores-its-inputs",
        forward("return honest(self, input_ids * 0)"), unscreened="ignores-its-inputs",
    ),
    "a connection": Cheat(
        "uses-the-network", begin("import socket\nsocket.socket()"), unscreened="uses-the-network"
    ),
    "hidden text": Cheat("runs-text", begin("exec('A = 1')"), unscreened="runs-text"),
    "a thread": Cheat(  # Python before 3.12 tells no hook of it
        "starts-processes", begin("import threading\nthreading.Thread(target=print).start()")
    ),
    "another framework": Cheat("imports-unlisted", begin("import scipy.special"), unscreened=""),
}  # fmt: skip


def edit(old: str, new: str) -> Mapping[str, str]:
    """Return the honest port with a text replaced."""
    assert old in PORT, old
    return {"port.py": PORT.replace(old, new)}


HONEST: dict[str, Mapping[str, str]] = {
    "plain": {"port.py": PORT},
    "other names": {"port.py": PORT.replace("self.dense", "self.fc").replace("self.head", "self.lm_head")},
    "functional": edit("paddle.tanh(self.dense(words))",
                       "F.tanh(F.linear(words, self.dense.weight, self.dense.bias))")
    | {"port.py": "import paddle.nn.functional as F\n"
       + PORT.replace("paddle.tanh(self.dense(words))",
                      "F.tanh(F.linear(words, self.dense.weight, self.dense.bias))")},
    "two files": {
        "port.py": "from layers import Model\n\n\ndef paddle_model():\n    return Model()\n",
        "layers.py": PORT[: PORT.index("\n\ndef paddle_model")],
    },
    "a dataclass for its configuration": {
        "port.py": "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n    width: int = 8\n\n"
        + PORT.replace("(8)", "(Config().width)")
    },
    "an activation by name": edit("paddle.tanh(", "getattr(nn.functional, 'ta' + 'nh')("),
    "a narrow exception": edit(
        "        words =", "        try:\n            input_ids.shape[1]\n        except IndexError:\n"
        "            input_ids = input_ids.unsqueeze(0)\n        words ="
    ),
    "a Sequential": {"port.py": PORT.replace(
        "        self.dense = nn.Linear(8, 8)\n", "        self.dense = nn.Sequential(nn.Linear(8, 8), nn.Tanh())\n"
    ).replace("paddle.tanh(self.dense(words))", "self.dense(words)")},
    "a dict of outputs": {"port.py": PORT.replace("        return self.head(", "        return dict(logits=self.head(")
                          .replace("(words))))  #", "(words)))))  #")},
    "a loop and a list": edit("self.embed(input_ids).cumsum(1)",
                              "paddle.stack([self.embed(input_ids)[:, : at + 1].sum(1) "
                              "for at in range(input_ids.shape[1])], 1)"),
}  # fmt: skip
