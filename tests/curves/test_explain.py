"""`reprod-align curves A B --explain FILE.py`: each fault that is planted is named, and no other part."""

import importlib
import json
import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from reprod_align.commands import main
from reprod_align.curves.explain import LoggedGap, StepRange, _choose_span
from tests.conftest import REPOSITORY, one_line_error, run_warm_python
from tests.pipeline.runs import tiny_run, write_sentences

import numpy as np
import pytest
from paddle.utils import unique_name

# Hugging Face datasets leaves the files open that it reads; here it does so in the tests' own process
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
TRAINING = (REPOSITORY / "tests" / "pairs" / "small_training.py").read_text()
Told = dict[str, Any]
Explain = Callable[..., Told]


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    """Return a function that trains with faults, explains the logs, and returns the explanation."""

    def explained(
        *planted: str, save: tuple[int, ...] = (), words: str = "", more: str = ""
    ) -> Told:
        path = written(tmp_path, *planted, more=more)
        unique_name.switch()  # the layers of a run are numbered from 0, and those of the command
        runpy.run_path(path)["train"](save)
        unique_name.switch()
        logs = [str(tmp_path / f"{side}.jsonl") for side in ("torch", "paddle")]
        code = main(["curves", *logs, "--explain", path, "--json", *words.split()])
        said = capsys.readouterr()
        assert code == 1, said.err
        found: Told = json.loads(said.out)["explanation"]
        return found

    return explained


def written(folder: Path, *planted: str, change: tuple[str, str] = ("", ""), more: str = "") -> str:
    text = TRAINING.replace("PLANTED = ()", f"PLANTED = {planted!r}").replace(*change)
    path = folder / "training.py"
    path.write_text(text + more)
    return str(path)


def rows(found: Told) -> dict[str, tuple[float, float]]:
    return {row["part"]: (row["left"], row["made"]) for row in found["rows"]}


FAULTS = {
    "data": ("data", "data: step 1: Paddle reads what PyTorch reads at step 2"),
    "order": ("data", "data: step 1: the same examples in another order within the batch"),
    "gelu": ("forward", r"gelu \(approximate='tanh'\) in Paddle and gelu \(erf\).* hands to drop"),
    "eps of the norm": ("forward", "forward: norm: .*eps: PyTorch 1e-05, Paddle 0.001"),
    "reduction": ("loss", r"the rows are summed \(reduction='sum'\) in Paddle and averaged"),
    "detach": ("backward", "the gradient is stopped in Paddle .* before hidden"),
    "decay": ("optimizer", "optimizer: the model: weight_decay: 0.125 in PyTorch, 0.25 in Paddle"),
    "eps": ("optimizer", "optimizer: the model: eps: 1e-08 in PyTorch, 1e-06 in Paddle"),
    "warm-up": ("schedule", "learning rate at step 0: 0.0025 in PyTorch, 0.00166666667 in Paddle"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(fault: str, explain: Explain) -> None:
    part, words = FAULTS[fault]
    found = explain(fault)
    assert found["guilty"] == [part]
    for name, (left, made) in rows(found).items():
        if name == part:
            assert made == pytest.approx(found["whole"]) and left < 1e-11
        else:
            assert left == pytest.approx(found["whole"]) and made < 1e-11, name
    name = {"forward": "forward pass", "backward": "backward pass"}.get(part, part)
    assert found["sentence"].startswith(f"the {name} explains it: with PyTorch's in its place")
    assert re.search(words, " ".join(found["findings"])), found["findings"]
    assert all(replay["apart"] < 1e-11 for replay in found["replays"]) and not found["remarks"]


def test_all_at_once(explain: Explain) -> None:
    found = explain("data", "gelu", "reduction", "detach", "decay", "warm-up")
    parts = {"data", "forward", "loss", "backward", "optimizer", "schedule"}
    assert set(found["guilty"]) == parts
    assert "explain it together, the largest first: with PyTorch's in their" in found["sentence"]
    assert found["together"] < 1e-11 < found["whole"]
    assert found["guilty"][0] == "loss"  # a sum in place of a mean


def test_forward_and_backward(explain: Explain) -> None:
    """What the one does to the gradients is not taken for the other's fault."""
    assert set(explain("gelu", "detach")["guilty"]) == {"forward", "backward"}


def test_a_late_fault_from_a_checkpoint(explain: Explain) -> None:
    """Of the checkpoints the last before the gap that leaves room for an update is taken."""
    found = explain("labels", save=(3, 7, 8, 12))
    assert (found["step"], found["restored"], found["begin"], found["last"]) == (9, 7, 7, 10)
    assert found["guilty"] == ["data"]
    assert found["findings"] == ["data: step 9: targets differs: 1 of 8 elements"]
    assert all(replay["apart"] < 1e-13 for replay in found["replays"])


def test_runs_in_float32_are_explained_in_float64(explain: Explain) -> None:
    """Their checkpoints hold float32, and are gone on from in float64."""
    found = explain("labels", save=(7,), words="--at 9", more='\nDTYPE = "float32"\n')
    assert found["restored"] == 7 and found["guilty"] == ["data"]
    assert rows(found)["data"][0] < 1e-11
    assert 0 < found["weights_apart"] < 1e-4 and not found["remarks"]
    assert all(0 < replay["apart"] < 1e-5 for replay in found["replays"])


def test_a_late_fault_replayed_from_the_start(explain: Explain) -> None:
    found = explain("labels", "eps of the norm", words="--at 15")
    assert (found["step"], found["restored"], found["begin"]) == (15, 0, 13)
    assert found["guilty"] == ["data", "forward"]


def test_optimizers_carry_their_state_over(explain: Explain) -> None:
    """Adam's averages and its count of steps begin on both sides with PyTorch's."""
    found = explain("decay", save=(10,), words="--at 12")
    assert found["restored"] == 10 and found["guilty"] == ["optimizer"]
    assert rows(found)["optimizer"][0] < 1e-11
    assert found["weights_apart"] > 1e-6 and found["replayed"] > found["whole"]


OPTIMIZERS = {  # 0.875: Paddle keeps a momentum in float32, where 0.9 is another number
    "momentum": (
        "torch.optim.SGD(model.parameters(), RATE, 0.875)",
        "paddle.optimizer.Momentum(RATE, 0.875, model.parameters())",
    ),
    "Adagrad": (
        "torch.optim.Adagrad(model.parameters(), RATE, eps=1e-6)",
        "paddle.optimizer.Adagrad(RATE, 1e-6, model.parameters())",
    ),
    "amsgrad": (
        "torch.optim.Adam(model.parameters(), RATE, amsgrad=True)",
        "paddle.optimizer.Adam(RATE, parameters=model.parameters(), amsgrad=True)",
    ),
    "NAdam": (
        "torch.optim.NAdam(model.parameters(), RATE)",
        "paddle.optimizer.NAdam(RATE, parameters=model.parameters())",
    ),
}


def optimizers(name: str) -> str:
    return "".join(
        f"\n\ndef {side}_optimizer(model):\n    import {side}\n\n    return {code}\n"
        for side, code in zip(("torch", "paddle"), OPTIMIZERS[name], strict=True)
    )


@pytest.mark.parametrize("name", ["momentum", "Adagrad", "amsgrad"])
def test_other_optimizers_carry_theirs_over(name: str, explain: Explain) -> None:
    found = explain("labels", save=(7,), more=optimizers(name))
    assert found["restored"] == 7 and found["guilty"] == ["data"]
    assert rows(found)["data"][0] < 1e-11


def test_an_optimizer_whose_state_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, more=optimizers("NAdam"))
    unique_name.switch()
    runpy.run_path(path)["train"]((2,))
    unique_name.switch()
    words = r"the optimizers' state \(mu_product.*cannot be carried from PyTorch to Paddle"
    assert failed(tmp_path, path, capsys, words)


def test_made_before_the_checkpoint(explain: Explain) -> None:
    """Weights that something moved between two steps: no step makes the gap, and it is said."""
    found = explain("memory", save=(10,), words="--at 12")
    assert not found["guilty"] and not found["rows"]
    assert "the checkpoints of step 10 differ already" in found["sentence"]


def test_something_that_the_file_does_not_tell(explain: Explain) -> None:
    found = explain("memory")
    assert found["step"] == 10 and not found["guilty"] and found["whole"] < 1e-12
    assert "comes from something that is not in the file" in found["sentence"]
    assert [one for one in found["remarks"] if one.startswith("Paddle's replay does not give")]
    assert not [one for one in found["remarks"] if one.startswith("PyTorch's")]


def test_rounding_of_float32(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, change=('"float64"', '"float32"'))
    runpy.run_path(path)["train"]()
    logs = [str(tmp_path / f"{side}.jsonl") for side in ("torch", "paddle")]
    assert main(["curves", *logs, "--tolerance", "1e-12", "--explain", path]) == 1
    told = capsys.readouterr().out
    assert "no part explains it: replayed in float64" in told and "rounding or chance" in told
    assert "remark: PyTorch's replay" not in told


def test_the_table_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = written(tmp_path, "decay"), tmp_path / "page.html"
    runpy.run_path(path)["train"]()
    logs = [str(tmp_path / f"{side}.jsonl") for side in ("torch", "paddle")]
    assert main(["curves", *logs, "--explain", path, "--report", str(page)]) == 1
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("which part of a step makes loss differ at step 2?")
    assert lines[start + 2].split() == (
        "part swapped gap left with PyTorch's gap that Paddle's makes alone".split()
    )
    assert [line.split()[0] for line in lines[start + 3 : start + 9]] == [
        "data", "forward", "loss", "backward", "optimizer", "schedule",
    ]  # fmt: skip
    assert lines[start + 7].endswith("<- makes it")
    assert lines[start + 10].startswith("the optimizer explains it: ")
    assert lines[start + 11].startswith("align: optimizer: the model: weight_decay: 0.125")
    text = page.read_text()
    assert (
        "Which part of a step makes loss differ at step 2<" in text
        and "weight_decay: 0.125" in text
    )


BAD = {
    "no batch": (("def torch_batch", "def own_batch"), "defines no function batch\\(step\\)"),
    "no loss": (("def paddle_loss", "def own_loss"), "no function paddle_loss\\(output, targets\\)"),
    "no optimizer": (("def torch_optimizer", "def own"), "no function torch_optimizer\\(model\\)"),
    "a batch without targets": (
        ("def torch_batch(step):\n    return examples(step)", "def torch_batch(step):\n    return [1]"),
        "torch_batch\\(1\\) must return \\(inputs, targets\\)",
    ),
    "no restore": (("def paddle_restore", "def own"), "no function paddle_restore\\(model,"),
    "raises": (("def draws(step):", "def draws(step):\n    raise KeyError(step)"), "line \\d+: KeyError"),
    "no such checkpoint": (
        ("    return [int(path", "    return [1]\n    return [int(path"),
        "torch_1.pt",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_files(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, words = BAD[what]
    path = written(tmp_path, change=change)
    assert failed(tmp_path, path, capsys, words, first=4)


def test_a_damaged_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    (tmp_path / "torch_2.pt").write_bytes(b"cut off")
    assert failed(tmp_path, path, capsys, "training.py, line \\d+: ", first=4)


def test_a_state_of_other_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Paddle finds an optimizer's state by the numbers of the layers, which another process gave."""
    path = written(tmp_path)
    runpy.run_path(path)["train"]((2,))
    words = "paddle_restore: the optimizer's state does not fit .*make the model as that run did"
    assert failed(tmp_path, path, capsys, words)


def test_too_far_from_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "step 12 lies 12 steps after the start of training.*add --replay 13"
    assert failed(tmp_path, written(tmp_path), capsys, words, "--replay", "10", first=12)


@pytest.mark.parametrize(
    ("checkpoints", "step", "span"),
    [
        ([], 3, (0, 0)),
        ([3, 7, 8, 12], 9, (7, 7)),  # step 8's leaves no room for an update
        ([2], 20, (2, 18)),  # so far from it, the last steps alone are swapped
        ([1], 1, (0, 0)),
    ],
)
def test_the_span_that_is_swapped(checkpoints: list[int], step: int, span: tuple[int, int]) -> None:
    gap = LoggedGap("loss", step, step - 1, 30, {})
    assert _choose_span(checkpoints, gap, 200) == StepRange(*span, step + 1)


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "none.py", tmp_path / "drawn.svg"
    assert failed(tmp_path, str(path), capsys, "none.py is missing", "--report", str(picture))
    assert picture.is_file()  # what the logs say can be drawn all the same


def test_logs_that_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = logged(tmp_path, first=99)
    assert main(["curves", *logs, "--explain", str(tmp_path / "none.py")]) == 0
    assert capsys.readouterr().err == "--explain: no curve leaves its band: nothing to explain\n"


def test_only_the_evaluation_diverges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = logged(tmp_path, first=99)
    for log, value in zip(logs, (0.5, 0.6), strict=True):
        line = json.dumps({"step": 20, "accuracy": value})
        Path(log).write_text(f"{Path(log).read_text()}{line}\n")
    assert main(["curves", *logs, "--explain", written(tmp_path)]) == 2
    assert "the losses agree and accuracy does not" in capsys.readouterr().err


def logged(folder: Path, first: int) -> list[str]:
    """Return two logs of 20 steps whose losses diverge at step `first`."""
    losses = np.linspace(1.0, 0.5, 20) ** 2
    apart = losses + 0.01 * (np.arange(1, 21) >= first)
    paths = [folder / "torch.jsonl", folder / "paddle.jsonl"]
    for path, column in zip(paths, (losses, apart), strict=True):
        lines = [json.dumps({"step": n, "loss": value}) for n, value in enumerate(column, 1)]
        path.write_text("\n".join(lines) + "\n")
    return [str(path) for path in paths]


def failed(
    folder: Path,
    path: str,
    capsys: pytest.CaptureFixture[str],
    words: str,
    *options: str,
    first: int = 4,
) -> bool:
    """Explain logs that diverge at step `first`; return True if it ends with one line that says `words`."""
    code = main(["curves", *logged(folder, first), "--explain", path, *options])
    said = capsys.readouterr()
    assert code == 2 and said.out.startswith(f"verdict: loss leaves the noise band at step {first}")
    (line,) = said.err.splitlines()
    assert re.search(words, line), line
    return True


# ------------------------------------------------------------------ Step 5 of the pipeline

PIPELINE = "pipeline/pair_training.py"
OPTIONS = "--dtype float64 --epochs 1 --batch-size 4 --grad-accum 2 --lr 1e-3 --clip 0.5 --warmup 2"


@pytest.fixture(scope="module")
def step5(
    aligned_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, pytest.MonkeyPatch]]:
    """Return a folder in which Step 5 has run with another epsilon in Paddle, which is still there."""
    folder, patch = tmp_path_factory.mktemp("step5"), pytest.MonkeyPatch()
    write_sentences(folder, 36, 4)
    shutil.copytree(aligned_home, folder / "home")
    patch.setenv("PIPELINE_HOME", str(folder / "home"))
    patch.setenv("PIPELINE_DATA_DIR", str(folder))
    words = f"{OPTIONS} --save-every 1 --keep 3 --data-dir {folder} --output {folder / 'runs'}"
    for side in ("pt", "pd"):  # imported here: Paddle's hide torch unless it came first
        script = importlib.import_module(f"pipeline.Step5.{side}_train_many")
        if side == "pd":
            library = importlib.import_module("pipeline.pd.optimizer")
            patch.setattr(library, "AdamW", partial(changed, library.AdamW))
        script.main(tiny_run(folder / "home", *words.split()))
    yield folder, patch
    patch.undo()


def changed(optimizer: Callable[..., Any], **given: Any) -> Any:
    return optimizer(**given | {"epsilon": 1e-4})


def step5_logs(folder: Path) -> list[str]:
    return [str(folder / "runs" / side / "float64" / "log.jsonl") for side in ("torch", "paddle")]


def test_step_5_of_the_pipeline(step5, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = step5
    assert main(["curves", *step5_logs(folder), "--explain", PIPELINE, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["explanation"]
    assert found["restored"] == 0 and found["guilty"] == ["optimizer"]
    assert found["together"] < 1e-12 < found["whole"]
    assert "eps: 1e-06 in PyTorch, 0.0001 in Paddle" in " ".join(found["findings"])
    assert all(
        replay["apart"] < 1e-13 for replay in found["replays"]
    )  # clipped, in parts, dropout on


def test_step_5_from_checkpoints(step5, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = step5
    kept = sorted(path.name for path in (folder / "runs/torch/float64").glob("step_*"))
    assert kept == [f"step_{step}.safetensors" for step in (3, 4, 5)]
    words = ["curves", *step5_logs(folder), "--explain", PIPELINE, "--at", "5", "--json"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)["explanation"]
    assert found["restored"] == 3 and found["guilty"] == ["optimizer"]
    assert all(replay["apart"] < 1e-13 for replay in found["replays"])


def damage(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-100])
    return path


SPOILT = {
    "no checkpoint": (lambda f: f.joinpath("last.safetensors").unlink(), "last.safetensors is missing"),
    "a damaged checkpoint": (lambda f: damage(f / "step_3.safetensors"), "step_3.safetensors is damaged"),
    "of the other side": (
        lambda f: shutil.copy(f / "last.safetensors", f.parents[1] / "torch/float64"), "another side"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_spoilt_checkpoints(what: str, step5, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(step5[0] / "runs", folder / "runs")
    spoil, words = SPOILT[what]
    spoil(folder / "runs/paddle/float64")
    command = (
        "-m",
        "reprod_align",
        "curves",
        *step5_logs(folder),
        "--explain",
        PIPELINE,
        "--at",
        "5",
    )
    home, data = str(step5[0] / "home"), str(step5[0])
    finished = run_warm_python(*command, PIPELINE_HOME=home, PIPELINE_DATA_DIR=data)
    assert words in one_line_error(finished)


def test_checkpoints_of_other_sentences(step5, capsys: pytest.CaptureFixture[str]) -> None:
    folder, patch = step5
    with patch.context() as other:
        other.delenv("PIPELINE_DATA_DIR")
        assert main(["curves", *step5_logs(folder), "--explain", PIPELINE]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "last.safetensors was made with another train.tsv" in line
    assert line.endswith("PIPELINE_HOME and PIPELINE_DATA_DIR must be where that run's files are")


def step5_with(step5, output: Path, *paddles: str) -> list[str]:
    """Train Paddle's side again with more options; return the two logs."""
    folder, _ = step5
    shutil.copytree(folder / "runs" / "torch", output / "torch")
    words = f"{OPTIONS} --save-every 1 --keep 3 --data-dir {folder} --output {output}".split()
    script = importlib.import_module("pipeline.Step5.pd_train_many")
    script.main(tiny_run(folder / "home", *words, *paddles))
    return [str(output / side / "float64" / "log.jsonl") for side in ("torch", "paddle")]


@pytest.mark.parametrize(
    ("option", "guilty", "words"),
    [
        (("--clip", "0.4"), {"optimizer"}, ""),
        (("--scheduler", "constant"), {"schedule"}, "schedule: "),
        (("--batch-size", "2"), {"data"}, "data: "),
    ],
)
def test_sides_with_other_options(
    option: tuple[str, str],
    guilty: set[str],
    words: str,
    step5,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs = step5_with(step5, tmp_path, *option)
    capsys.readouterr()
    assert main(["curves", *logs, "--explain", PIPELINE, "--at", "4", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["explanation"]
    assert guilty <= set(found["guilty"])
    assert words in " ".join(found["findings"])


def test_sides_with_other_seeds(step5, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = step5_with(step5, tmp_path, "--seed", "7")
    capsys.readouterr()
    assert main(["curves", *logs, "--explain", PIPELINE]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--seed 42 and 7" in line
