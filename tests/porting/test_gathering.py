"""A file of a package: what its model needs comes along, the rest stays behind."""

import ast
import os
from functools import partial
from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.porting.calls import draft
from reprod_align.porting.gathering import factories, gather, modules, reading
from reprod_align.porting.port import describe_gathered
from reprod_align.porting.source import Source
from tests.porting.conftest import PortSource, WriteSource

import numpy as np
import pytest
import torch
from torch import nn

FILES = {
    "__init__.py": "",
    "sizes.py": "def twice(n):\n    return 2 * n\n",
    "layers.py": '''
import torch
from torch import nn
from .sizes import twice
try:
    from nowhere_at_all import fused
    HAS_FUSED = True
except ImportError:
    HAS_FUSED = False

def scale(x):
    return x * FACTOR

FACTOR = 3.0

def trace(function):
    return function

class Base(nn.Module):
    def load(self, path):
        """Load a checkpoint."""
        return download(path)

    @trace
    def reset(self):
        return download(None)

def download(path):
    return torch.load(path)

class Block(Base):
    @trace
    def forward(self, x):
        if HAS_FUSED:
            return fused(x)
        return scale(x) + twice(1)
''',
    "net.py": '''
from . import sizes
from .layers import Block as Part, nn
from .sizes import twice

def scale(x):
    """Another scale."""
    return x - 1

class Net(nn.Module):
    def __init__(self, width=twice(2)):
        super().__init__()
        self.part = Part()
        self.layer = nn.Linear(width, sizes.twice(1))

    def forward(self, x):
        return self.layer(scale(self.part(x)))

    def restore(self, path):
        return self.part.load(path)

class Unused(nn.Module):
    pass
''',
}


@pytest.fixture
def source(write_source: WriteSource) -> Source:
    return write_source(FILES)


def gathered(source: Source) -> gather.Gathered:
    def run() -> None:
        source.module.Net()(torch.ones(1, 4))

    return gather.gather(source, reading.list_executed(run))


def test_the_file_stands_by_itself(source: Source) -> None:
    made = gathered(source)
    names: dict[str, object] = {"__name__": "alone"}
    exec(compile(made.text, "alone.py", "exec", dont_inherit=True), names)
    torch.manual_seed(0)
    expected = source.module.Net()
    actual = names["Net"]()  # type: ignore[operator]
    actual.load_state_dict(expected.state_dict())
    x = torch.arange(4.0)[None]
    assert torch.equal(actual(x), expected(x))
    package = source.name.rpartition(".")[0]
    assert made.neighbours == (f"{package}.layers",)
    assert f"from {package}.sizes import twice" in made.text and "class Unused" not in made.text
    assert "def scale_2" in made.text and "fused = None" in made.text


def choose_layer(partially: bool) -> object:
    return partial(torch.nn.Linear, 2) if partially else partial(int)


@pytest.mark.parametrize("partially", [True, False])
def test_a_function_that_returns_a_part_of_a_layer_s_call_handles_layers(partially: bool) -> None:
    found = reading.list_executed(lambda: choose_layer(partially))
    line = choose_layer.__code__.co_firstlineno
    assert found.handles(os.path.realpath(__file__), line, line) is partially


def test_what_nothing_runs_says_so(source: Source) -> None:
    made = gathered(source)
    assert made.left_out == ("load", "reset") and "torch.load" not in made.text
    assert '"""Load a checkpoint."""\n        raise NotImplementedError' in made.text
    assert "def reset" not in made.text  # a method that nothing reads


REGISTERED = {
    "__init__.py": "",
    "registry.py": """
from functools import wraps

MODELS = {}

def register(model):
    if model.__name__ in MODELS:
        raise ValueError(f"{model.__name__} is there already")
    MODELS[model.__name__] = model
    return model

def twice(function):
    @wraps(function)
    def inner(*given):
        return 2 * function(*given)
    return inner
""",
    "net.py": """
import torch
from torch import nn
from . import kinds
from .layers import Base
from .registry import register, twice

class Act(nn.Module):
    @twice
    def forward(self, x):
        return torch.relu(x)

@register
class Net(Base):
    def forward(self, x):
        return self.tail(self.layer(self.act(x)))

class Other(Net):
    pass
""",
    "layers.py": """
from typing import Optional, get_type_hints
from torch import nn

MADE = []

def note(kind):
    MADE.append(kind.__name__)

class Base(nn.Module):
    act: Optional[nn.Module]

    def __init_subclass__(cls):
        note(cls)
        get_type_hints(cls)

    def __init__(self):
        super().__init__()
        from . import net
        self.act, self.layer = net.Act(), nn.Linear(4, 2)
        self.tail = Kind.made["Double"]()

class Kind(nn.Module):
    made = {}

    def __init_subclass__(cls):
        Kind.made[name_kind(cls)] = cls

def name_kind(kind):
    return kind.__name__
""",
    "kinds.py": """
from .layers import Kind

class Double(Kind):
    def forward(self, x):
        return 2 * x
""",
}


def test_what_runs_on_import_comes_along_and_registers_stay_behind(
    write_source: WriteSource,
) -> None:
    source = write_source(REGISTERED)
    inputs = (torch.ones(1, 4).numpy(),)

    def run() -> None:
        source.module.Net()(torch.ones(1, 4))

    made = gather.gather(
        source, reading.list_executed(run), lambda text: draft.rehearse(source, inputs, text)
    )
    assert draft.rehearse(source, inputs, made.text) == ""
    assert "@register" not in made.text and "@twice" in made.text
    assert "MADE.append" in made.text and "class Double(Kind)" in made.text
    assert "from typing import Optional" in made.text  # an annotation alone reads it


BY_FACTORY = {
    "__init__.py": "",
    "sizes.py": """
from dataclasses import dataclass

@dataclass
class Sizes:
    kind: str
    width: int
    fast: bool = False
""",
    "steps.py": "def take_slowly(x):\n    return x + x\n",
    "kinds.py": """
from torch import nn
from .steps import take_slowly

class Doubled(nn.Module):
    def __init__(self, sizes, bias=True):
        super().__init__()
        self.layer, self.sizes = nn.Linear(sizes.width, 2, bias), sizes

    def forward(self, x):
        return 2 * self.layer(x) if self.sizes.fast else take_slowly(self.layer(x))
""",
    "choice.py": """
import importlib
from dataclasses import replace

class Chosen:
    @classmethod
    def make(cls, sizes, hint="", **rest):
        home = importlib.import_module(f"{__package__}.kinds")
        return getattr(home, sizes.kind)(replace(sizes, fast=True), **rest)
""",
    "net.py": """
from torch import nn
from .choice import Chosen
from .sizes import Sizes

class Net(nn.Module):
    def __init__(self, kind="Doubled"):
        super().__init__()
        sizes = Sizes(kind, 4)
        self.part = Chosen.make(
            sizes,
            hint="of no account")
        self.last = nn.Linear(2, 1)

    def forward(self, x):
        return self.last(self.part(x))
""",
}


def test_a_class_that_a_factory_chooses_is_written_in_its_place(write_source: WriteSource) -> None:
    source = write_source(BY_FACTORY)
    inputs = (torch.ones(1, 4).numpy(),)

    def watch(net: type) -> reading.Executed:
        return reading.list_executed(lambda: net()(torch.ones(1, 4)))

    made = gather.gather(
        source, watch(source.module.Net), lambda text: draft.rehearse(source, inputs, text), (),
        lambda module: watch(module.execute().Net),
    )  # fmt: skip
    assert draft.rehearse(source, inputs, made.text) == ""
    assert "self.part = Doubled(sizes" in made.text and "class Doubled(nn.Module)" in made.text
    assert "Chosen" not in made.text and "importlib" not in made.text
    (said,) = (one for one in describe_gathered(made) if one.startswith("written as"))
    assert "Chosen.make(" in said and "-> Doubled(sizes" in said
    assert "def take_slowly" in made.text  # which the factory's own copy did without


LOADED = {
    "__init__.py": "",
    "hub.py": """
from functools import wraps
from torch import nn
from typing import get_type_hints

def counted(function):
    @wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call

class Config:
    width = 4

    @classmethod
    def load(cls, name):
        return cls()

class Loadable(nn.Module):
    def __init_subclass__(cls):
        get_type_hints(cls)

    @classmethod
    @counted
    def load(cls, name, config=None, **rest):
        return cls(Config.load(name), **rest)
""",
    "net.py": """
from hub_of_models.hub import Config, Loadable
from torch import nn

class Part(Loadable):
    config: Config

    def __init__(self, config, bias=True):
        super().__init__()
        self.layer = nn.Linear(config.width, 2, bias)

    def forward(self, x):
        return self.layer(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part.load("small", bias=False)

    def forward(self, x):
        return self.part(x)
""",
}


def test_a_method_that_loads_a_class_of_the_file_goes(
    write_source: WriteSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hub_of_models").mkdir()
    (tmp_path / "hub_of_models" / "hub.py").write_text(LOADED["hub.py"], "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    source = write_source({"net.py": LOADED["net.py"]})

    def watch(net: type) -> reading.Executed:
        return reading.list_executed(lambda: net()(torch.ones(1, 4)))

    inputs = (torch.ones(1, 4).numpy(),)
    made = gather.gather(
        source, watch(source.module.Net), lambda text: draft.rehearse(source, inputs, text), (),
        lambda module: watch(module.execute().Net),
    )  # fmt: skip
    assert 'self.part = Part(Config.load("small"), bias=False)' in made.text
    assert draft.rehearse(source, inputs, made.text) == ""


def test_a_factory_may_give_the_original_of_a_class_that_the_file_has() -> None:
    kind = type("Part", (nn.Module,), {"__module__": "package.parts"})
    made = factories.Made("net.py", (1, 0, 1, 9), kind, (), ())
    library = modules.Library(reading.Executed(made=(made,)))
    held = {("package.parts", "Part")}
    assert library.list_lacking(modules.describe_foreign(kind), held) == [made]
    assert library.list_lacking("another error", held) == []
    assert library.list_lacking("another error", set()) == [made]


def test_a_layer_of_a_class_that_stays_imported_is_said(write_source: WriteSource) -> None:
    source = write_source(BY_FACTORY)
    package = source.name.rpartition(".")[0]
    text = f"from {package}.choice import Chosen\nfrom {package}.sizes import Sizes\n"
    text += "import torch\n\ndef Net():\n    part = Chosen.make(Sizes('Doubled', 4))\n"
    text += "    return torch.nn.Sequential(part)\n"
    said = draft.rehearse(source, (torch.ones(1, 4).numpy(),), text)
    assert said == f"a layer of {package}.kinds.Doubled is made by what stays imported"


def test_a_name_of_a_comprehension_s_own_is_another_s_elsewhere() -> None:
    text = "def f():\n    import m as one\n    a = [one for one in found]\n    return one.Kind, a\n"
    reads = reading.list_reads(ast.parse(text).body[0], lambda node: True)
    assert reads.later == {"one.Kind", "found"}


def test_of_two_imports_of_one_name_each_has_its_own(write_source: WriteSource) -> None:
    log = {"sizes.py": "class logging:\n    level = 2\n"}
    layers = "import torch\nimport logging\n\nclass part(torch.nn.Module):\n"
    layers += "    def forward(self, x):\n        logging.getLogger('part')\n        return x\n"
    net = "from torch import nn\nfrom .layers import part\nfrom .sizes import logging\n\n"
    net += "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    net += "        self.held, self.layer = part(), nn.Linear(4, logging.level)\n\n"
    net += "    def forward(self, x):\n        return self.layer(self.held(x))\n"
    made = gathered(write_source({**log, "layers.py": layers, "net.py": net}))
    assert "import logging as logging_2" in made.text
    names: dict[str, type] = {}
    exec(compile(made.text, "alone.py", "exec", dont_inherit=True), names)
    names["Net"]()(torch.ones(1, 4))


def test_a_class_may_have_the_name_of_the_one_that_it_is_derived_from(
    write_source: WriteSource,
) -> None:
    base = "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return 2 * x\n"
    net = (
        "from torch import nn\nfrom .base import Net\n\nclass Net(Net):\n    def __init__(self):\n"
    )
    net += "        super().__init__()\n        self.layer = nn.Linear(4, 4)\n\n"
    net += "    def forward(self, x):\n        return self.layer(super().forward(x))\n"
    made = gathered(write_source({"base.py": base, "net.py": net}))
    names: dict[str, type] = {}
    exec(compile(made.text, "alone.py", "exec", dont_inherit=True), names)
    assert names["Net"]()(torch.ones(1, 4)).shape == (1, 4) and len(names["Net"].__mro__) == 4


def test_a_function_that_asks_for_a_class_of_the_file_comes_along(
    write_source: WriteSource,
) -> None:
    columns = "import torch\n\nclass Column:\n    def pick(self, x):\n        return torch.relu(x[:, :2])\n\n"
    columns += (
        "def count(columns):\n    return [isinstance(one, Column) for one in columns].count(True)\n"
    )
    net = "from torch import nn\nfrom .columns import Column, count\n\nclass Net(nn.Module):\n"
    net += "    def __init__(self):\n        super().__init__()\n        self.column = Column()\n"
    net += "        self.layer = nn.Linear(2, 3 * count([self.column]))\n\n"
    net += "    def forward(self, x):\n        return self.layer(self.column.pick(x))\n"
    made = gathered(write_source({"columns.py": columns, "net.py": net}))
    names: dict[str, type] = {}
    exec(compile(made.text, "alone.py", "exec", dont_inherit=True), names)
    assert names["Net"]()(torch.ones(1, 4)).shape == (1, 3)


def test_a_stand_in_for_a_package_that_is_missing_may_raise_at_any_attribute(
    write_source: WriteSource,
) -> None:
    files = "class Missing:\n    def __getattr__(self, name):\n        raise RuntimeError\n\n"
    files += "reader = Missing()\n\ndef download(x):\n    return reader.read(x)\n"
    net = "from torch import nn\nfrom .files import download, reader\n\nclass Net(nn.Module):\n"
    net += "    def __init__(self, url=None):\n        super().__init__()\n"
    net += "        self.layer = nn.Linear(4, 3)\n"
    net += "        self.held = reader if url is None else download(reader.find(url))\n\n"
    net += "    def forward(self, x):\n        return self.layer(x)\n"
    made = gathered(write_source({"files.py": files, "net.py": net}))
    names: dict[str, type] = {}
    exec(compile(made.text, "alone.py", "exec", dont_inherit=True), names)
    assert names["Net"]()(torch.ones(1, 4)).shape == (1, 3)


def test_a_file_that_needs_no_neighbour_is_taken_whole(write_source: WriteSource) -> None:
    net = "import torch\nfrom .sizes import ONE, TWO as two\n\nclass Net:\n    pass  # kept\n"
    source = write_source({"sizes.py": "TWO = 2\nONE = 1\n", "net.py": net})
    made = gather.gather(source, reading.Executed())
    sizes = source.name.replace("net", "sizes")
    imports = f"from {sizes} import ONE\nfrom {sizes} import TWO as two\n"
    assert made.text == f"import torch\n{imports}\nclass Net:\n    pass  # kept\n"


def test_imports_are_written_as_statements() -> None:
    assert str(modules.Import("F", "torch.nn.functional")) == "import torch.nn.functional as F"
    assert str(modules.Import("torch", "torch")) == "import torch"
    assert str(modules.Import("b", "a", "c")) == "from a import c as b"
    several = [modules.Import(one, "os", one) for one in ("sep", "curdir")]
    several += [modules.Import("nowhere", "nowhere_at_all", "x"), modules.Import("p", "os.path")]
    written = modules.write_imports([*several, modules.Import("up", "os", "pardir"), several[0]])
    assert written[:2] == ["from os import curdir, pardir as up, sep", "import os.path as p"]
    assert written[2].startswith("try:\n    from nowhere_at_all import x as nowhere\n")
    long = [modules.Import(f"a_name_for_a_separator_{n}", "os", "sep") for n in range(4)]
    assert modules.write_imports(long)[0].startswith("from os import (\n    sep as a_name_for")


def test_what_is_read_at_once_and_what_when_it_is_called() -> None:
    text = """
@register(size=Size)
class Net(Base, metaclass=Kind):
    width: Annotation = make(WIDTH)
    def run(self, x: Other = DEFAULT) -> Result: return act(x)
    def rest(self): return unused()
"""
    (statement,) = ast.parse(text).body
    reads = reading.list_reads(statement, lambda node: node.name == "run")
    at_once = {"register", "Size", "Base", "Kind", "width", "make", "WIDTH", "DEFAULT"}
    assert (reads.first, reads.later) == (at_once, {"act"})  # x is its own
    assert [node.name for node in reads.skipped] == ["rest"]
    called = {name for name in at_once if reading.is_called(name, [statement])}
    assert called == {"register", "Size", "make"}


def test_a_name_bound_in_branches_is_the_one_that_has_run(write_source: WriteSource) -> None:
    text = (
        "import os\nif os.sep:\n    from math import sqrt as root\n"
        "else:\n    from cmath import sqrt as root\n"
    )
    source = write_source(text, "root(4)")
    module = modules.Module(source.name, source.path, Code(text))
    assert module.imports["root"].module == "math"


LOOKED_UP = {
    "__init__.py": "",
    "acts.py": """
import torch
from torch import nn

class Soft(nn.Module):
    def forward(self, x):
        return torch.tanh(x)

class Unused(nn.Module):
    pass
""",
    "norms.py": """
import sys
from torch import nn

class ScaledNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return 2 * self.norm(x)

class Other(nn.Module):
    pass

scaled = ScaledNorm

def get(name):
    return globals().get(name) or getattr(sys.modules[__name__], "Other")
""",
    "net.py": """
from torch import nn
from . import acts, norms

class Net(nn.Module):
    def __init__(self, norm="scaled", act="Soft"):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), norms.get(norm)(4)
        self.act = getattr(acts, act)()

    def forward(self, x):
        return self.act(self.norm(self.layer(x)))
""",
}


def test_what_is_looked_up_by_its_name_comes_along(write_source: WriteSource) -> None:
    source = write_source(LOOKED_UP)
    made = gathered(source)
    assert "scaled = ScaledNorm" in made.text and "class Soft(" in made.text
    assert "globals()[act]" in made.text and source.name.partition(".")[0] not in made.text
    assert "class Unused" not in made.text


LISTED = {
    "norms.py": """
import torch

class Scale(torch.nn.Module):
    def forward(self, x):
        return 2 * x
""",
    "net.py": """
import torch

def find(name):
    from . import norms as found
    return next(one for one in vars(found).values() if getattr(one, "__name__", "") == name)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = find("Scale")()

    def forward(self, x):
        return self.scale(x)
""",
}


def test_what_is_listed_of_a_module_comes_along(write_source: WriteSource) -> None:
    made = gathered(write_source(LISTED))
    assert "class Scale(" in made.text and "globals().values()" in made.text


def test_declarations_of_overloads_stay_behind(tmp_path: Path) -> None:
    text = (
        "from torch.jit import _overload as overload\n\n\n"
        "@overload\ndef loops(edges: int) -> int:\n    pass\n\n\n"
        '@overload\ndef loops(edges: str) -> str:\n    """Of texts."""\n\n\n'
        "def loops(edges):\n    return edges\n"
    )
    found = modules.Module("overloads", tmp_path / "overloads.py", Code(text)).define("loops")
    assert found is not None
    (statement,) = found.statements
    assert ast.unparse(statement) == "def loops(edges):\n    return edges"


OPTIONAL = {
    "mixture.py": """
from torch.nn import Module, Linear

try:
    from nowhere_at_all import Mixture
    Base = Mixture
except ImportError:
    Base = Module

class Mixture(Base):
    def __init__(self):
        super().__init__()
        self.layer = Linear(4, 4)

    def forward(self, x):
        return self.layer(x)
""",
    "net.py": """
from .mixture import Base, Mixture

class Net(Base):
    def __init__(self):
        super().__init__()
        self.part = Mixture()

    def forward(self, x):
        return self.part(x)
""",
}


SCRIPTED = {
    "pick.py": """
from dataclasses import dataclass
from typing import Optional
import torch

@dataclass(init=False)
class Pick:
    rows: torch.Tensor
    weight: Optional[torch.Tensor] = None

    def __init__(self, rows: torch.Tensor, weight: Optional[torch.Tensor] = None):
        self.rows = rows
        self.weight = weight

Pick = torch.jit.script(Pick)
""",
    "net.py": """
import torch
from .pick import Pick

class Net(torch.nn.Module):
    def forward(self, x):
        return Pick(x * 2).rows
""",
}


def test_what_is_scripted_runs_as_it_is_written(write_source: WriteSource) -> None:
    source = write_source(SCRIPTED)
    inputs = (torch.ones(1, 4).numpy(),)
    assert draft.rehearse(source, inputs, gathered(source).text) == ""


CHOSEN = {
    "choose.py": """
import torch
import torch.nn.functional as F

def choose(name):
    return {"gelu": F.gelu, "silu": F.silu}[name]

def square(name):
    return torch.square
""",
    "net.py": """
import torch
from .choose import choose, square

class Net(torch.nn.Module):
    def forward(self, x):
        return choose("gelu")(x) + square("")(x)
""",
}


def test_functions_that_give_pytorch_s_functions_come_along(write_source: WriteSource) -> None:
    made = gathered(write_source(CHOSEN))
    assert "def choose(" in made.text and "def square(" in made.text


def test_a_name_that_is_imported_where_it_is_installed_and_defined_else(
    write_source: WriteSource,
) -> None:
    source = write_source(OPTIONAL)
    inputs = (torch.ones(1, 4).numpy(),)
    assert draft.rehearse(source, inputs, gathered(source).text) == ""


BOTH_FRAMEWORKS = """
def torch_model():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return torch.tanh(self.layer(x))

    return Net()


def paddle_model():
    from paddle import nn

    return nn.Linear(2, 2)
"""


def test_what_a_function_imports_for_itself_is_not_imported_at_the_top(
    port_source: PortSource,
) -> None:
    made, text = port_source(BOTH_FRAMEWORKS, (np.ones((3, 2)),), "torch_model()")
    assert made.passed, made.left
    assert text.count("from paddle import nn") == 1
    assert text.index("import paddle\n") < text.index("from paddle import nn")


NEEDED = {
    "__init__.py": "",
    "parts.py": """
import torch

def inner(x):
    return x + 1

def outer(x):
    return inner(x)

def pick(x):
    return x if isinstance(x, torch.Tensor) else outer(x)
""",
    "net.py": """
from torch import nn
from .parts import pick

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(pick(x))
""",
}


def test_a_function_that_the_port_needs_brings_those_that_it_calls(
    write_source: WriteSource,
) -> None:
    source = write_source(NEEDED)
    executed = reading.list_executed(lambda: source.module.Net()(torch.ones(1, 4)))
    assert gather.gather(source, executed).left_out == ("outer",)
    made = gather.gather(source, executed, needed=[f"outer {gather.NOT_PORTED}"])
    assert not made.left_out and "return x + 1" in made.text
