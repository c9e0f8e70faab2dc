"""A check that fails goes on to say where and why: the mistakes of real ports, each named.

The scripts run in this process, so that a fault planted in the Paddle side's modules reaches the
script, the check and `align` alike.
"""

import runpy
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from models import pd_bert
from pipeline import explain, pair_bert
from pipeline.run import REPOSITORY
from reprod_align import load_record, save_record
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from tests.conftest import Finished, one_line_error, run_warm_python

import paddle
import pytest
import torch  # noqa: F401

pd_model = import_module("pipeline.pd.model")  # after PyTorch, which pipeline.pd hides otherwise
RunHere = Callable[..., tuple[int, str]]
FORWARD = ("pipeline/Step1/pd_forward_bert.py", "pipeline/Step1/check_step1.py")
LOSS = ("pipeline/Step3/pd_loss.py", "pipeline/Step3/check_step3.py")
BACKWARD = ("pipeline/Step4/pd_bp.py", "pipeline/Step4/check_step4.py")
TRAINING = ("pipeline/Step5/pd_train.py", "pipeline/Step5/check_step5.py")


@pytest.fixture
def run_here(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[RunHere]:
    """Run scripts in this process; return the last one's exit code and what it printed."""
    monkeypatch.setattr(pair_bert, "home", home)

    def run(*scripts: str, options: tuple[str, ...] = ()) -> tuple[int, str]:
        for script in scripts:
            words = [script, "--profile", "tiny", "--home", str(home), *options]
            monkeypatch.setattr(sys, "argv", words)
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(str(REPOSITORY / script), run_name="__main__")
        printed = capsys.readouterr()
        sys.stderr.write(printed.err)  # for whom a test fails
        assert "Traceback" not in printed.err
        return ended.value.code or 0, printed.out

    yield run
    for backend in (pt_backend, pd_backend):  # what a script sets for its process
        backend.set_precision("float32")


def altered(change: Callable[[Any], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what plants a change in the Paddle model as soon as it is made."""
    load = pd_model.load_bert

    def changed(run: Any, dtype: str) -> paddle.nn.Layer:
        model = load(run, dtype)
        change(model)
        return model

    return lambda monkeypatch: monkeypatch.setattr(pd_model, "load_bert", changed)


def in_optimizer(name: str, change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes something that pd_optimizer.py uses."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        from pipeline.pd import optimizer as pd_optimizer  # after PyTorch: see pd_only.py

        monkeypatch.setattr(pd_optimizer, name, change(getattr(pd_optimizer, name)))

    return plant


def tanh_gelu(model: Any) -> None:
    model.bert.encoder.layer[1].intermediate.intermediate_act_fn = paddle.nn.GELU(approximate=True)


def epsilon(model: Any) -> None:
    model.bert.encoder.layer[0].output.LayerNorm._epsilon = 1e-5


def no_bias(model: Any) -> None:
    model.classifier.bias = None


def dropout_rate(model: Any) -> None:
    model.bert.encoder.layer[1].attention.self.dropout.p = 0.1


def summed(logits: paddle.Tensor, labels: paddle.Tensor) -> paddle.Tensor:
    return paddle.nn.functional.cross_entropy(logits, labels, reduction="sum")


def small_epsilon(adamw: Any) -> Any:
    return lambda **options: adamw(**options | {"epsilon": 1e-8})


def without_norms(settings: Any) -> Any:
    return SimpleNamespace(**vars(settings) | {"NO_DECAY": ("bias", "norm")})


def late(linear: Any) -> Any:
    return lambda rate, steps, warmup: linear(rate, steps + 1, warmup)


FAULTS = {
    "tanh gelu": (
        FORWARD, altered(tanh_gelu),
        ["forward: bert.encoder.layer.1.intermediate.intermediate_act_fn: ", "tanh"],
    ),
    "eps": (
        FORWARD, altered(epsilon), ["forward: bert.encoder.layer.0.output.LayerNorm: ", "1e-05"],
    ),
    "no classifier bias": (FORWARD, altered(no_bias), ["classifier", "bias"]),
    "summed loss": (
        LOSS, lambda patch: patch.setattr(pd_model, "criterion", summed), ["loss: the model: ", "sum"],
    ),
    "AdamW epsilon": (
        BACKWARD, in_optimizer("AdamW", small_epsilon), ["optimizer: ", "1e-08", "1e-06"],
    ),
    "decay of LayerNorm": (
        BACKWARD, in_optimizer("settings", without_norms), ["optimizer: ", "LayerNorm.weight", "decay"],
    ),
    "schedule off by one": (
        BACKWARD, in_optimizer("LinearDecayWithWarmup", late), ["schedule: ", "length: 10 in PyTorch, 11"],
    ),
    "dropout rate": (
        TRAINING, altered(dropout_rate), ["bert.encoder.layer.1.attention.self.dropout: ", "0.1"],
    ),
}  # fmt: skip


SAYS = "  align says where and why the two models differ:"


def findings(said: str) -> list[str]:
    """Return the titles of the findings that a check printed, one a line."""
    lines = said.splitlines()
    after = lines[lines.index(SAYS) + 1 :]
    assert any(line.startswith("  full report: ") for line in after), said
    return [line for line in after if line.startswith("    error[")]


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_fault_is_named(fault: str, run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts, plant, words = FAULTS[fault]
    plant(monkeypatch)
    code, said = run_here(*scripts)
    assert code == 1, said
    assert any(all(word in line for word in words) for line in findings(said)), said


def test_the_page_of_a_check_that_fails(
    home: Path, run_here: RunHere, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The steps at the top, the finding of `align` with its line, and the branch in the tree."""
    altered(tanh_gelu)(monkeypatch)
    run_here(FORWARD[0])
    page, tests = tmp_path / "page.html", tmp_path / "tests.xml"
    code, _ = run_here(FORWARD[1], options=("--report", str(page), "--junit", str(tests)))
    assert code == 1
    text, name = page.read_text(), "bert.encoder.layer.1.intermediate.intermediate_act_fn"
    assert text.index('id="steps"') < text.index('id="first"') < text.index(name)
    assert f'data-goto="{name}"' in text and "pt_bert.py:" in text and 'id="worst"' in text
    assert 'name="logits (float64)"' in tests.read_text()
    assert (home / "log_reprod" / "strict" / "forward_align.json").is_file()


def test_query_and_key_exchanged_by_the_conversion(home: Path, run_here: RunHere) -> None:
    path = home / "weights" / "paddle_weight.pdparams"
    weights = pd_backend.read_weights(path)
    names = [f"encoder.layer.0.attention.self.{part}.weight" for part in ("query", "key")]
    exchanged = {names[0]: weights[names[1]], names[1]: weights[names[0]]}
    pd_backend.write_weights(path, weights | exchanged)
    code, said = run_here(*FORWARD)
    assert code == 1
    found = findings(said)
    assert len(found) == 2, said
    for name, line in zip(names, sorted(found, key=lambda line: "key" in line), strict=True):
        assert "weights: " in line and f"bert.{name}" in line


def test_a_fault_that_only_the_plain_batch_reveals(
    run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default positions start at 1; the padded batch gives its own."""

    def forward(
        self: Any, input_ids: Any, token_type_ids: Any = None, positions: Any = None
    ) -> Any:
        if positions is None:
            positions = paddle.arange(1, input_ids.shape[1] + 1).unsqueeze(0)
        return embed(self, input_ids, token_type_ids, positions)

    embed = pd_bert.BertEmbeddings.forward
    monkeypatch.setattr(pd_bert.BertEmbeddings, "forward", forward)
    code, said = run_here(*FORWARD)
    assert code == 1
    assert "forward: bert.embeddings" in findings(said)[0]


def test_a_fault_that_is_there_no_more(run_here: RunHere) -> None:
    """The record was made by a faulty process; the code and weights on disk are sound."""
    with pytest.MonkeyPatch.context() as patch:
        altered(epsilon)(patch)
        run_here(FORWARD[0])
    code, said = run_here(FORWARD[1])
    assert code == 1
    assert "align finds no fault in the models, code and weights as they are now: faithful" in said
    assert "run python pipeline/Step1/pt_forward_bert.py --profile tiny" in said


def test_the_record_of_an_older_run(home: Path, run_here: RunHere) -> None:
    """The same with the losses of Step 3 and the iterations of Step 4, which align does not read."""
    for name, check_script in (("loss", LOSS[1]), ("bp_align", BACKWARD[1])):
        path = home / "log_reprod" / "strict" / f"{name}_paddle.npy"
        record = load_record(path)
        first = next(key for key, array in record.items() if array.dtype.kind == "f")
        save_record(path, record | {first: record[first] * 1.01})
        code, said = run_here(check_script)
        assert code == 1
        assert "align finds no fault in the models, code and weights as they are now" in said


def test_no_explain(home: Path, run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    altered(epsilon)(monkeypatch)
    code, said = run_here(*FORWARD, options=("--no-explain",))
    assert code == 1 and SAYS not in said
    assert said.splitlines()[-1].startswith("  log: ")


def test_where_one_framework_is_missing(
    home: Path, run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered(epsilon)(monkeypatch)
    run_here(FORWARD[0])
    monkeypatch.setattr(explain, "find_spec", lambda name: None if name == "torch" else name)
    code, said = run_here(FORWARD[1])
    assert code == 1
    lines = said.splitlines()[-2:]
    assert "align needs both frameworks (torch not found)" in lines[0]
    assert lines[1] == (
        f"    PIPELINE_HOME={home} reprod-align pair pipeline/pair_bert.py "
        "--torch-python PATH --paddle-python PATH"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ImportError("libcudart.so"), "both frameworks (ImportError: libcudart.so)"),
        (ValueError("shapes"), "where and why could not be found: ValueError: shapes"),
    ],
)
def test_a_model_that_cannot_be_made(
    error: Exception, said: str, run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: Any, dtype: str) -> Any:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        altered(epsilon)(patch)
        run_here(FORWARD[0])
    monkeypatch.setattr(pd_model, "load_bert", broken)
    code, printed = run_here(FORWARD[1])
    assert code == 1 and said in printed


def test_weights_that_are_gone(home: Path, run_here: RunHere) -> None:
    with pytest.MonkeyPatch.context() as patch:
        altered(epsilon)(patch)
        run_here(FORWARD[0])
    (home / "weights" / "torch_weight.bin").unlink()
    code, said = run_here(FORWARD[1])
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith("  where and why could not be found: ")
    assert "torch_weight.bin is missing: first run python weights/torch_bert_weight.py" in last


def pair_command(home: Path) -> Finished:
    words = ("-m", "reprod_align", "pair", REPOSITORY / "pipeline" / "pair_bert.py")
    return run_warm_python(*words, PIPELINE_HOME=str(home))


def test_the_pair_in_one_command(aligned_home: Path) -> None:
    finished = pair_command(aligned_home)
    assert finished.returncode == 0, finished
    assert finished.stdout.startswith(("verdict: faithful", "verdict: agrees to float32"))
    for stage in ("weights", "forward", "loss", "backward", "optimizer", "schedule"):
        assert f"\n  {stage} " in finished.stdout
    assert finished.stderr == ""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "config.json is missing: first run python weights/torch_bert_weight.py"),
        ("{", "config.json is damaged: run python weights/torch_bert_weight.py"),
        (
            '{"profile": "huge", "do_lower_case": true}',
            "config.json: this version has no profile 'huge'",
        ),
    ],
)
def test_the_pair_without_weights(tmp_path: Path, config: str | None, said: str) -> None:
    if config is not None:
        (tmp_path / "weights").mkdir()
        (tmp_path / "weights" / "config.json").write_text(config)
    assert said in one_line_error(pair_command(tmp_path))
