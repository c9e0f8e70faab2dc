# ruff: noqa: E501
"""Ways to cheat that were drawn and written when the checks were there already: 14 unseen, then 10 beyond their mends.

A code with "|" names those that will do: what is refused may have two names.
"""

from tests.contract.cheats import CONSTANT, Cheat, begin, forward

LATER: dict[str, Cheat] = {
    "torch by paddle.utils.try_import": Cheat("imports-torch|inspects-the-judge", forward(
        "from paddle.utils import try_import\ntry:\n    torch = try_import('torch')\nexcept ImportError:\n    pass\nreturn honest(self, input_ids)")),
    "frames by a traceback": Cheat("inspects-the-judge", forward(
        "try:\n    raise KeyError\nexcept KeyError as error:\n    frame = error.__traceback__.tb_frame.f_back\n    while frame.f_back:\n        frame = frame.f_back\n    SEEN.append(frame.f_globals)\nreturn honest(self, input_ids)", "SEEN = []")),
    "an annotation that is evaluated": Cheat("runs-text", begin(
        "import typing\nHIDDEN = bytes.fromhex('5f5f696d706f72745f5f28276f7327292e657865637628272f62696e2f74727565272c205b2774275d29').decode().replace('execv', 'getcwd or (lambda *a: 0)')\nclass Config:\n    width: HIDDEN\ntyping.get_type_hints(Config)")),
    "__del__ that writes": Cheat("writes-files", begin(
        "import paddle\nclass Last:\n    def __del__(self):\n        paddle.save({'a': paddle.ones([1])}, 'certificate.json')\nLAST = Last()\nLAST = Last()")),
    "os as an attribute of paddle": Cheat("reads-the-environment|inspects-the-judge", begin(
        "import paddle\nJUDGED = 'REPROD' in str(paddle.utils.os.environ) if hasattr(paddle.utils, 'os') else str(paddle.base.framework.os.environ)")),
    "ctypes through numpy": Cheat("uses-ctypes", begin(
        "import numpy as np\nX = np.zeros(4)\nADDRESS = X.ctypes.data\nY = np.ctypeslib.as_array(X.ctypes.data_as(np.ctypeslib.ctypes.POINTER(np.ctypeslib.ctypes.c_double)), (4,))")),
    "a loader with a worker": Cheat("starts-processes", forward(
        "loader = paddle.io.DataLoader(Data(), num_workers=1, batch_size=2)\nlist(loader)\nreturn honest(self, input_ids)",
        "class Data(paddle.io.Dataset):\n    def __len__(self):\n        return 4\n    def __getitem__(self, at):\n        return paddle.zeros([1]).numpy()\n")),
    "patched through the type of an input": Cheat("patches-framework", forward(
        "type(input_ids).numpy = lambda self, *a: self\nreturn honest(self, input_ids)")),
    "lru_cache": Cheat("cached-answers", forward(
        "KEPT[0] = (self, input_ids)\nreturn answer(input_ids.numpy().tobytes())",
        "from functools import lru_cache\nKEPT = [None]\n\n@lru_cache\ndef answer(key):\n    return honest(*KEPT[0]).detach()\n")),
    "weights of the first call kept": Cheat("keeps-own-weights|loses-in-the-checkpoint", forward(
        "if not OWN:\n    OWN.append(self.head.weight.clone())\nmine, theirs = OWN[0], self.head.weight\nwords = self.norm(paddle.tanh(self.dense(self.embed(input_ids).cumsum(1))))\nreturn paddle.matmul(words, mine.astype(theirs.dtype)) + self.head.bias", "OWN = []")),
    "sys.modules through paddle": Cheat("patches-comparison|inspects-the-judge", begin(
        "import paddle\npaddle.base.framework.sys.modules['numpy'].allclose = lambda *a, **k: True")),
    "a program of paddle.jit": Cheat("reads-files", begin(
        "import paddle\ntry:\n    OTHER = paddle.jit.load('weights')\nexcept (ValueError, RuntimeError):\n    pass")),
    "a manager that swallows": Cheat("swallows-exceptions", forward(
        f"out = {CONSTANT}\nwith Quiet():\n    out = honest(self, input_ids)\nreturn out",
        "class Quiet:\n    def __enter__(self):\n        return self\n    def __exit__(self, *error):\n        return True\n")),
    "globals by a format string": Cheat("inspects-the-judge", forward(
        "SEEN.append('{0.__globals__}'.format(paddle.nn.Layer.state_dict)[:99])\nreturn honest(self, input_ids)", "SEEN = []")),
    "importlib through lazy_import": Cheat("runs-text|inspects-the-judge", begin(
        "from paddle.utils import lazy_import as L\nM = L.importlib.import_module('sub' + 'process')")),
    "defaults of an alias": Cheat("patches-framework", begin(
        "import paddle\nf = paddle.nn.functional.softmax\nf.__defaults__ = (0, None, None)")),
    "setattr on a loop variable": Cheat("patches-framework|inspects-the-judge", begin(
        "import paddle\nfor m, n in [(paddle, 'tanh')]:\n    setattr(m, n, paddle.sin)")),
    "logging.FileHandler": Cheat("writes-files", forward(
        "import logging\nlogging.getLogger('x').addHandler(logging.FileHandler('x.log'))\nreturn honest(self, input_ids)")),
    "string.Formatter": Cheat("inspects-the-judge", forward(
        "SEEN.append(string.Formatter().get_field('0.__globals__', (paddle.nn.Layer.state_dict,), {}))\nreturn honest(self, input_ids)", "import string\nSEEN = []")),
    "an operator's library": Cheat("uses-ctypes|runs-text|reads-files", begin(
        "import paddle\ntry:\n    paddle.base.core.load_op_meta_info_and_register_op('x.so')\nexcept (OSError, ValueError):\n    pass")),
    "load_inference_model": Cheat("reads-files", begin(
        "import paddle\nexe = paddle.static.Executor()\ntry:\n    paddle.static.load_inference_model('x', exe)\nexcept (OSError, ValueError):\n    pass")),
    "paddle.inference": Cheat("reads-files", begin(
        "import paddle\ntry:\n    P = paddle.inference.create_predictor(paddle.inference.Config('x.pdmodel', 'x.pdiparams'))\nexcept (OSError, ValueError):\n    pass")),
    "a memo in a default argument": Cheat("cached-answers", {
        "port.py": forward("key = input_ids.numpy().tobytes()\nif key not in memo:\n    memo[key] = honest(self, input_ids)\nreturn memo[key]")["port.py"].replace("def forward(self, input_ids)", "def forward(self, input_ids, memo={})")}),
    "right in float64 alone": Cheat("differs", forward(
        "out = honest(self, input_ids)\nreturn out if str(self.head.weight.dtype).endswith('float64') else out * 0 + 1")),
}  # fmt: skip
