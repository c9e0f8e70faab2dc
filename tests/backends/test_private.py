"""Private names of the frameworks: one place for each backend, and what a missing one costs."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator

from reprod_align.backends.paddle import private as paddle_private
from reprod_align.backends.torch import private as torch_private
from reprod_align.backends.versions import PrivateName, PrivateNames, look_up
from reprod_align.errors import MissingNameError
from tests.conftest import REPOSITORY, run_warm_python

import paddle
import pytest

HOMES = [f"reprod_align/backends/{one}/private.py" for one in ("torch", "paddle")]
EXEMPT = {
    "reprod_align/selftest/": "plants faults as a user's program would make them",
    "reprod_align/api/topics/": "shows what a user writes",
    "reprod_align/porting/calls/trial.py": "names in the text of a port",
    "reprod_align/porting/calls/layers.py": "names in the text of a port",
    "reprod_align/porting/calls/write.py": "names in the text of a port, and its own notes on its nodes",
}
ON_NODES = {"_site", "_given"}  # what `port` notes on the nodes of a tree
PYTHONS = {"_exit", "_fields", "_getframe", "_listener", "_socket"}
IN_FILES = {"_mean", "_variance", "_weight"}  # tensors are called so in files of weights and traces
LOOKUPS = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "look_up", "replace_attribute"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def list_private(dotted: str) -> list[str]:
    parts = dotted.split(".")
    return [one for one in parts if is_private(one)] if all(map(str.isidentifier, parts)) else []


def texts(*nodes: ast.AST) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def list_defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a file gives to functions, classes, variables and its own attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and is_own(node.value)
        ):
            yield node.attr


def is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def list_used(tree: ast.Module, ours: set[str], frameworks: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of what is looked up in something that is not the library's own."""
    for node in ast.walk(tree):
        found: list[str] = []
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if node.attr not in ours or (node.attr in frameworks and not is_own(node.value)):
                found = [node.attr]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("torch", "paddle")
        ):
            found = [
                one for alias in node.names for one in list_private(f"{node.module}.{alias.name}")
            ]
        elif isinstance(node, ast.Import):
            found = [one for alias in node.names for one in list_private(alias.name)]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [one for text in texts(*node.args) for one in list_private(text)]
            found = [
                one for one in given if one in frameworks or (called in LOOKUPS and one not in ours)
            ]
        elif isinstance(node, ast.Subscript | ast.Compare):
            parts = (
                [node.slice] if isinstance(node, ast.Subscript) else [node.left, *node.comparators]
            )
            found = [
                one for text in texts(*parts) for one in list_private(text) if one in frameworks
            ]
        yield from ((node.lineno, one) for one in found)  # type: ignore[attr-defined]


def read(path: str) -> ast.Module:
    return ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))


def list_places() -> list[str]:
    paths = sorted(
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "reprod_align").rglob("*.py")
    )
    judged = [one for one in paths if one not in HOMES and not one.startswith(tuple(EXEMPT))]
    trees = {path: read(path) for path in judged}
    ours = {name for tree in trees.values() for name in list_defined(tree)} | ON_NODES | PYTHONS
    homes = [read(path) for path in HOMES]
    defined = {name for tree in homes for name in list_defined(tree)}
    written = {
        one
        for tree in homes
        for node in ast.walk(tree)
        for text in (*texts(node), *([node.attr] if isinstance(node, ast.Attribute) else ()))
        for one in list_private(text)
    }
    frameworks = written - defined - IN_FILES
    return [
        f"{path}:{line}: {name}"
        for path, tree in trees.items()
        for line, name in list_used(tree, ours, frameworks)
    ]


def test_a_private_name_of_a_framework_stands_in_one_module_a_backend() -> None:
    assert list_places() == [], f"read it in {HOMES}"


@pytest.mark.parametrize("private", [torch_private, paddle_private])
def test_the_installed_version_has_every_name(private) -> None:
    assert private.NAMES.list_missing() == [] and private.NAMES.rows


def test_a_name_that_a_version_lacks_is_one_line_with_what_is_lost() -> None:
    rows = (
        PrivateName("Tensor._gone", "it is not seen", lambda: paddle.Tensor),
        PrivateName("paddle._gone", "nothing works", lambda: paddle),
        PrivateName("paddle._gone.dropout", "no dropout", lambda: paddle._gone),
        PrivateName("Tensor._newer", "it is not seen", lambda: paddle.Tensor, since=(4, 0)),
        PrivateName("Tensor._shape", "it is not seen", lambda: paddle.Tensor, public="shape"),
    )
    names = PrivateNames("Paddle", "3.9.1", rows)
    assert names.list_missing() == [
        "Paddle 3.9.1 has no Tensor._gone: it is not seen",
        "Paddle 3.9.1 has no paddle._gone: nothing works",
    ]
    assert names.read_or_miss(paddle.ones([1]), "Tensor._gone", 7) == 7
    assert [*names.missed] == ["Paddle 3.9.1 has no Tensor._gone: it is not seen"]
    with pytest.raises(MissingNameError, match="^Paddle 3.9.1 has no paddle._gone: nothing works$"):
        names.read(paddle, "paddle._gone")
    assert look_up(paddle, "_gone", 3) == 3
    assert "Tensor._newer" in PrivateNames("Paddle", "0.0.0", rows).rows, "built from source"


WITHOUT = """
import sys
from reprod_align.backends import versions

gone, own = set(sys.argv[1].split(",")), versions.look_up

def look_up(owner, name, otherwise=None):
    return otherwise if name in gone else own(owner, name, otherwise)

versions.look_up = look_up
"""
PAIR = f"""{WITHOUT}
from reprod_align.commands import main

sys.exit(main(["pair", "examples/pair_mlp.py", "--json"]))
"""
DOCTOR = f"""{WITHOUT}
from reprod_align.commands.doctor import PROBES

exec(next(probe.code for probe in PROBES if probe.name == sys.argv[2]))
"""
FAULTS = ["layer-norm-epsilon", "own-code"]  # the example's, without that of its optimizer
OPERATORS = (
    "paddle._C_ops: random draws are not shared, "
    "and neither operators nor requests for float32 are seen"
)
DISPATCH = "random draws are not shared, and no kernel of PyTorch's is held against itself"
CONTENTS = "sections keep their memory, and buffers that a run adds stay in the model"


def run_without(
    names: str, code: str, *words: str, faulty: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run code with versions of the frameworks that lack these names."""
    return run_warm_python("-W", "ignore", "-c", code, names, *words, FAULTY=faulty)


@pytest.mark.parametrize(
    ("names", "faulty", "codes", "remarks"),
    [
        pytest.param(
            "_is_initialized,_share_data_with,_non_persistable_buffer_names_set,_grad_ivar,_mode,"
            "_non_persistent_buffers_set,_layers,_inner_opt",
            "",
            [],
            [],
            id="those with a public way",
        ),
        pytest.param(
            "_param_groups,_sparse,_optimizer_step_pre_hooks,_learning_rate,_epsilon",
            "",
            [],
            [
                "Optimizer._param_groups: the settings of optimizers are not compared",
                "Optimizer._optimizer_step_pre_hooks: what a hook does before an optimizer's step "
                "is not seen",
                "Embedding._sparse: sparse embeddings are not refused",
                "LayerNorm._epsilon: this setting is not compared",
                "Optimizer._learning_rate: a scheduler that an optimizer holds is not stepped",
            ],
            id="those read off a model",
        ),
        pytest.param(  # asked for where a difference is looked at closely
            "_version", "1", [*FAULTS, "adam-l2"],
            ["Tensor._version: tensors changed in place are not seen"], id="changes",
        ),
        pytest.param("_C_ops", "1", FAULTS, [OPERATORS], id="operators"),
        pytest.param(
            "dropout", "", [], ["paddle._C_ops.dropout: its draws are not shared"], id="dropout"
        ),
        pytest.param("TorchDispatchMode", "", [],
                     [f"torch.utils._python_dispatch.TorchDispatchMode: {DISPATCH}"], id="dispatch"),
        pytest.param("_schema", "", [], [f"OpOverload._schema: {DISPATCH}"],
                     id="schema", marks=pytest.mark.longer),
        pytest.param("_buffers", "", [],
                     [f"Module._buffers: {CONTENTS}", f"Layer._buffers: {CONTENTS}"], id="contents"),
    ],
)  # fmt: skip
def test_a_missing_name_costs_its_feature_alone(
    names: str, faulty: str, codes: list[str], remarks: list[str]
) -> None:
    done = run_without(names, PAIR, faulty=faulty)
    assert done.returncode == (1 if codes else 0), done.stderr
    report = json.loads(done.stdout)
    assert [one["code"] for one in report["findings"]] == codes
    assert report["verdict"] == ("diverges" if codes else "faithful")
    said = [one.removeprefix("the rest was not compared: ") for one in report["remarks"]]
    lines = [re.sub(r"^(PyTorch|Paddle) [\w.+]+ has no ", "", one) for one in said]
    assert lines == remarks
    trained = [one for one in report["checks"] if one["stage"] == "optimizer"]
    assert bool(trained) == (said == report["remarks"]), (
        "all stages, unless a remark says otherwise"
    )


@pytest.mark.parametrize(
    ("probe", "names", "lost"),
    [
        ("private names of PyTorch", "_version", "Tensor._version: tensors changed in place are not"),
        ("private names of Paddle", "_C_ops", OPERATORS),
        ("private names of Paddle", "_coeff,_c_concat",
         "L2Decay._coeff: the settings of optimizers are not compared; "),
        ("private names of Paddle", "_coeff,_c_concat", "mp_ops._c_concat: its layers do not run on CPUs"),
    ],
)  # fmt: skip
def test_the_doctor_lists_what_is_missing(probe: str, names: str, lost: str) -> None:
    done = run_without(names, DOCTOR, probe)
    assert done.returncode == 1 and lost in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.count(" has no ") == len(names.split(","))


def test_a_state_that_cannot_be_read_is_refused_in_one_line() -> None:
    code = f"""{WITHOUT}
import paddle
from reprod_align.backends.paddle.training import optimizer_state

model = paddle.nn.Linear(2, 2)
try:
    optimizer_state(paddle.optimizer.Adam(parameters=model.parameters()), model)
except Exception as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""
    done = run_without("_accumulators", code)
    assert done.stderr == (
        f"MissingNameError: Paddle {paddle.__version__} has no Optimizer._accumulators: "
        "an optimizer's state cannot be read\n"
    )
