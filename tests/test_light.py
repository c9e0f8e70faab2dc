"""What an import costs: a few modules of ours, and no framework that was not asked for."""

import ast
import inspect
import json
from pathlib import Path

import reprod_align
from tests.conftest import run_python

import pytest

MOST = 12  # modules of ours that recording or comparing may load
COUNT = "import json, sys; print(json.dumps(sorted(sys.modules)))"
FRAMEWORKS = {"torch", "paddle", "transformers", "paddlenlp"}


def loaded_by(code: str) -> list[str]:
    """Return the modules that a fresh interpreter has loaded after `code`."""
    finished = run_python("-c", f"{code}\n{COUNT}")
    assert finished.returncode == 0, finished.stderr
    modules: list[str] = json.loads(finished.stdout.splitlines()[-1])
    return modules


def test_public_names_are_sorted_and_resolve():
    assert sorted(reprod_align.__all__) == reprod_align.__all__
    for name in reprod_align.__all__:
        assert (
            getattr(reprod_align, name).__name__ if name.islower() else getattr(reprod_align, name)
        )
        assert name in dir(reprod_align)


def test_every_listed_name_is_there():
    for path in Path(reprod_align.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        given = [node for node in tree.body if isinstance(node, ast.Assign)]
        listed = [one.value for one in given if ast.unparse(one.targets[0]) == "__all__"]
        stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        stored |= {getattr(node, "name", "") for node in tree.body}
        imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        stored |= {one.asname or one.name for node in imports for one in node.names}
        for names in (one for one in listed if isinstance(one, ast.List)):
            assert {ast.literal_eval(name) for name in names.elts} <= stored, path


def test_type_checkers_see_every_public_name():
    """A stub's `import name as name` is what they take for a name that the package gives on."""
    (block,) = (node for node in ast.parse(inspect.getsource(reprod_align)).body
                if isinstance(node, ast.If))  # fmt: skip
    imported = [one for node in block.body for one in node.names]
    assert [one.asname for one in imported] == [one.name for one in imported]
    assert sorted(one.name for one in imported) == reprod_align.__all__


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'Recoder'"):
        _ = reprod_align.Recoder


@pytest.mark.parametrize(
    "code",
    [
        "from reprod_align import Recorder",
        "from reprod_align import Recorder, compare_records, load_record",
    ],
    ids=["Recorder", "compare_records"],
)
def test_records_load_few_modules_and_no_framework(code: str):
    modules = loaded_by(code)
    ours = [name for name in modules if name.partition(".")[0] == "reprod_align"]
    assert len(ours) <= MOST, ours
    assert not FRAMEWORKS & set(modules)


@pytest.mark.parametrize(
    ("script", "framework"),
    [
        ("Step1/pt_forward_bert", "torch"), ("Step1/pd_forward_bert", "paddle"),
        ("Step3/pt_loss", "torch"), ("Step3/pd_loss", "paddle"),
        ("Step4/pt_bp", "torch"), ("Step4/pd_bp", "paddle"),
    ],
)  # fmt: skip
def test_a_step_script_loads_its_own_framework_and_no_engine(script: str, framework: str):
    modules = loaded_by(f"import runpy; runpy.run_path('pipeline/{script}.py', run_name='script')")
    other = {"torch": "paddle", "paddle": "torch"}[framework]
    assert framework in modules
    assert other not in modules
    rooms = {name.split(".")[1] for name in modules if name.startswith("reprod_align.")}
    assert not rooms & {"alignment", "causes", "match", "pair", "curves", "selftest"}, rooms
    assert f"reprod_align.backends.{other}" not in modules


def test_align_loads_no_statistics():
    """`scipy.stats` takes half a second, which only initialisations and curves ask for."""
    code = "from reprod_align import alignment; from reprod_align.backends import torch, paddle"
    assert "scipy.stats" not in loaded_by(code)
