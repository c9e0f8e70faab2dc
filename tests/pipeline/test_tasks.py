"""Every task of pipeline/tasks.py: its files, labels and metrics, and Step 2 on invented sentences."""

import json
import re
import shutil
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from pipeline import corpus
from pipeline.bert.fake_batch import load_fake_batch
from pipeline.corpus import TaskFile, check_tsv, fetch_corpus, find_task_corpus, find_test
from pipeline.run import Run, make_run
from pipeline.tasks import SST2, TASKS, Layout, Task
from reprod_align import EXACT, ReprodError, compare_records, load_record
from reprod_align.backends import torch as pt_backend
from reprod_align.errors import MissingInputError
from tests.conftest import (
    REPOSITORY,
    Finished,
    one_line_error,
    run_python,
    run_script,
    run_warm_python,
)

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

TEXTS = (
    "The kettle sings before the house wakes up.",
    "A \"quoted word and a lone ' mark",
    "null",
    "007",
    " ".join(["river"] * 90),
    "£14 for two seats, says Zoë.",
    " ".join(["green", "apple"] * 45),
    "这家酒店的早餐很好",
    "NA",
    "Nobody told the ferryman.",
    "x",
)
SCORES = ("0", "5.000", "3.8", "1.25", "2.2", "4.75", "0.6")
NAMES = tuple(TASKS)
PAIRS = tuple(task.name for task in TASKS.values() if len(task.train.texts) == 2)


def lines(task: Task, layout: Layout, rows: int) -> list[str]:
    """Return the lines of a file with invented texts, of which the second begins two further on."""
    labels = cycle(task.labels or SCORES)
    made = ["\t".join(layout.columns)] if layout.header else []
    for row in range(rows):
        cells = {name: f"{name}-{row}" for name in layout.columns}
        for shift, name in enumerate(layout.texts):
            cells[name] = TEXTS[(row + 2 * shift) % len(TEXTS)]
        if layout.label is not None:
            cells[layout.label] = next(labels)
        made.append("\t".join(cells.values()))
    return made


def write(path: Path, rows: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def write_task(folder: Path, task: Task) -> Path:
    write(folder / task.train.file, lines(task, task.train, 17))
    write(folder / task.dev.file, lines(task, task.dev, 14))
    write(folder / task.test.file, lines(task, task.test, 4))
    return folder


# --- what the files look like -------------------------------------------------------------------

READ_BY_THE_LIBRARIES = """
import json, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from pipeline.tasks import TASKS
from paddlenlp.datasets.chnsenticorp import ChnSentiCorp
from paddlenlp.datasets.glue import Glue
from transformers.data.processors.glue import (
    glue_output_modes, glue_processors, glue_tasks_num_labels)

def with_transformers(task, folder, name):
    processor = glue_processors[name]()
    splits = {"train": processor.get_train_examples, "dev": processor.get_dev_examples,
              "test": processor.get_test_examples}
    return {split: [[*filter(None, (e.text_a, e.text_b)), e.label] for e in read(str(folder))]
            for split, read in splits.items()}

def with_paddlenlp(task, folder, builder, splits):
    rows = {}
    for split, (file, key) in splits.items():
        read = builder._read(str(folder / file), key)
        rows[split] = [[*(v for k, v in row.items() if k not in ("labels", "label", "qid")),
                        row.get("labels", row.get("label")) or None] for row in read]
    return rows

said = {}
for task in TASKS.values():
    folder, said[task.name] = Path(sys.argv[1], task.name), {}
    names = {"sst2": "sst-2", "stsb": "sts-b"}
    name = names.get(task.name, task.name)
    half = {"mnli": "_matched", "mnli-mm": "_mismatched"}.get(task.name, "")
    keys = {"train": "train", "dev": f"dev{half}", "test": f"test{half}"}
    files = {"train": task.train.file, "dev": task.dev.file, "test": task.test.file}
    splits = {split: (files[split], keys[split]) for split in files}
    if task.name == "chnsenticorp":
        builder = ChnSentiCorp(lazy=False)
    else:
        said[task.name]["transformers"] = with_transformers(task, folder, name)
        number = glue_tasks_num_labels[name.removesuffix("-mm")]
        processor = glue_processors[name]()
        said[task.name]["facts"] = [glue_output_modes[name], number, processor.get_labels()]
        builder = Glue(lazy=False, name=name.removesuffix("-mm"))
    said[task.name]["paddlenlp"] = with_paddlenlp(task, folder, builder, splits)
    said[task.name]["labels"] = builder.get_labels()
print(json.dumps(said))
"""


def examples(path: TaskFile) -> list[list[str | None]]:
    """Return what our layout reads of a file: the texts and the label."""
    layout, rows = path.layout, path.read_text(encoding="utf-8").splitlines()
    wanted = [*layout.texts, *([layout.label] if layout.label else [])]
    cells = [row.split("\t") for row in rows[int(layout.header) :]]
    found = [[row[layout.columns.index(name)] for name in wanted] for row in cells]
    return found if layout.label else [[*row, None] for row in found]


def test_layouts_are_those_of_transformers_and_paddlenlp(tmp_path: Path) -> None:
    """Both libraries' own readers find the same texts and labels in files made by our layouts."""
    for task in TASKS.values():
        write_task(tmp_path / task.name, task)
    finished = run_warm_python("-W", "ignore", "-c", READ_BY_THE_LIBRARIES, tmp_path)
    assert finished.returncode == 0, finished.stderr
    said = json.loads(finished.stdout.splitlines()[-1])
    for task in TASKS.values():
        files = find_task_corpus(task, tmp_path / task.name)
        ours = {"train": files.train, "dev": files.dev, "test": find_test(task, files.dev.parent)}
        expected = {split: examples(file) for split, file in ours.items()}
        for library in {"transformers", "paddlenlp"} & said[task.name].keys():
            assert said[task.name][library] == expected, (task.name, library)
        assert said[task.name]["labels"] == (list(task.labels) or None)
        if "facts" in said[task.name]:
            mode = "classification" if task.labels else "regression"
            assert said[task.name]["facts"] == [mode, task.num_labels, list(task.labels) or [None]]


def test_criterion_and_main_metric() -> None:
    assert TASKS["stsb"].criterion == "mean_squared_error" and TASKS["stsb"].num_labels == 1
    assert TASKS["mnli"].criterion == "cross_entropy" and TASKS["mnli"].num_labels == 3
    assert all(task.main_metric in task.metric_names for task in TASKS.values())
    assert {task.main_metric for task in TASKS.values()} <= set(TASKS["stsb"].metric_names) | {
        "accuracy",
        "f1",
        "matthews",
    }


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_another_task_are_refused(tmp_path: Path, name: str) -> None:
    task, other = TASKS[name], TASKS["cola" if name != "cola" else "qqp"]
    write_task(tmp_path, other)
    (tmp_path / other.dev.file).rename(tmp_path / task.dev.file)
    with pytest.raises(ReprodError, match=r"dev\w*\.tsv, line 1: "):
        find_task_corpus(task, tmp_path)


def test_questions_are_no_sentences(tmp_path: Path) -> None:
    """QNLI and RTE have as many columns and the same labels: the header tells them apart."""
    write_task(tmp_path, TASKS["qnli"])
    with pytest.raises(ReprodError, match="header must be index<TAB>sentence1<TAB>sentence2"):
        find_task_corpus(TASKS["rte"], tmp_path)


def one_change(task: Task, row: int, column: str | None, value: str) -> list[str]:
    """Return the lines of a dev file with one cell changed, or a whole line if `column` is None."""
    made = lines(task, task.dev, 5)
    cells = made[row].split("\t")
    if column is not None:
        cells[task.dev.columns.index(column)] = value
    made[row] = "\t".join(cells) if column is not None else value
    return made


@pytest.mark.parametrize(
    ("name", "row", "column", "value", "message"),
    [
        ("cola", 0, "label", "2", "line 1: the label must be 0 or 1, not '2'"),
        ("cola", 3, "sentence", " ", "line 4: the sentence is empty"),
        (
            "mnli",
            2,
            "gold_label",
            "-",
            "line 3: the label must be contradiction, entailment or neu",
        ),
        ("mnli-mm", 2, "gold_label", "hidden", "entailment or neutral, not 'hidden'"),
        ("mnli", 2, None, "a\tb", "line 3: 2 columns instead of 16"),
        (
            "qnli",
            4,
            "label",
            "not entailment",
            "line 5: the label must be entailment or not_entail",
        ),
        ("stsb", 1, "score", "5.01", "line 2: the label must be a number from 0 to 5, not '5.01'"),
        ("stsb", 1, "score", "-0.1", "line 2: the label must be a number from 0 to 5"),
        ("stsb", 2, "score", "nan", "line 3: the label must be a number from 0 to 5, not 'nan'"),
        ("stsb", 2, "score", "inf", "line 3: the label must be a number from 0 to 5"),
        ("stsb", 5, "score", "", "line 6: the label must be a number from 0 to 5, not ''"),
        ("stsb", 5, "sentence2", "", "line 6: the sentence2 is empty"),
        ("mrpc", 3, None, "", "line 4: 0 columns instead of 5"),
        ("mrpc", 3, "#1 String", "a\tb", "line 4: 6 columns instead of 5"),
        ("chnsenticorp", 1, "label", "正", "line 2: the label must be 0 or 1, not '正'"),
        ("qqp", 3, "question1", "a\tb", "line 4: 7 columns instead of 6"),
        ("qqp", 3, "is_duplicate", "", "line 4: the label must be 0 or 1, not ''"),
        ("wnli", 0, "label", "labels", "line 1: the header must be index<TAB>sentence1"),
    ],
)
def test_bad_rows_name_file_and_line(
    tmp_path: Path, name: str, row: int, column: str | None, value: str, message: str
) -> None:
    task = TASKS[name]
    path = write(tmp_path / task.dev.file, one_change(task, row, column, value))
    with pytest.raises(ReprodError) as raised:
        check_tsv(path, task, task.dev)
    assert message in str(raised.value) and str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", NAMES)
def test_empty_and_undecodable_files(tmp_path: Path, name: str) -> None:
    task = TASKS[name]
    path = write(tmp_path / task.dev.file, lines(task, task.dev, 0))
    with pytest.raises(ReprodError, match="holds no sentences"):
        check_tsv(path, task, task.dev)
    path.write_bytes("\n".join(lines(task, task.dev, 3)).encode() + b"\n\xff\n")
    with pytest.raises(ReprodError, match=rf"line {4 + task.dev.header}: the file is not UTF-8"):
        check_tsv(path, task, task.dev)


def test_a_line_longer_than_a_field_may_be(tmp_path: Path) -> None:
    task = TASKS["rte"]
    rows = one_change(task, 2, "sentence1", "a" * 200_000)
    with pytest.raises(ReprodError, match="dev.tsv, line 3: field larger"):
        check_tsv(write(tmp_path / "dev.tsv", rows), task, task.dev)


def test_a_byte_order_mark_before_the_header(tmp_path: Path) -> None:
    """The official MRPC file begins with one."""
    task = TASKS["mrpc"]
    path = write(tmp_path / "dev.tsv", ["\ufeff" + row for row in lines(task, task.dev, 2)[:1]])
    with path.open("a", encoding="utf-8") as handle:
        handle.write("\n".join(lines(task, task.dev, 2)[1:]))
    assert check_tsv(path, task, task.dev).skipped == (0,)


def test_cut_rows_of_qqp_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = TASKS["qqp"]
    made = lines(task, task.dev, 4)
    made[2:3] = ["7\t8\t9\tHow do I", '"\twash a cat?\t0']
    path = write(tmp_path / "dev.tsv", made)
    assert check_tsv(path, task, task.dev).skipped == (0, 2, 3)
    assert "left out 2 lines that are cut, the first is line 3" in capsys.readouterr().err
    write(path, made[:1] + made[2:4])
    with pytest.raises(ReprodError, match="no row has 6 columns"):
        check_tsv(path, task, task.dev)


def test_no_built_in_sentences_but_for_sst2() -> None:
    with pytest.raises(MissingInputError, match="CoLA has no built-in sentences: add --data-dir"):
        make_run(task="cola").corpus  # noqa: B018
    assert make_run().corpus.demo.name == "demo.tsv"


# --- metrics ------------------------------------------------------------------------------------


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return predictions and labels (N,): the plain case, and each edge."""
    generator = np.random.default_rng(3)
    labels, chance = generator.integers(0, 2, 20), generator.integers(0, 2, 20)
    first = np.arange(20) == np.flatnonzero(labels)[0]
    zeros, ones = np.zeros_like(labels), np.ones_like(labels)
    return {
        "chance": (chance, labels),
        "right": (labels, labels),
        "wrong": (1 - labels, labels),
        "no false positive": (np.where(first, 0, labels), labels),
        "never predicts 1": (zeros, labels),
        "always predicts 1": (ones, labels),
        "no positive at all": (zeros, zeros),
        "one class, right": (ones, ones),
        "one class, wrong": (ones, zeros),
        "one label": (chance, zeros),
    }


def correlation_cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return scores and labels (N,): the plain case, and each edge."""
    generator = np.random.default_rng(4)
    scores, labels = generator.random(19), np.round(5 * generator.random(19), 2)
    return {
        "no ties": (scores, np.arange(19) * 0.25),
        "ties in both": (np.round(scores, 1), np.round(labels)),
        "far from zero": (scores + 1e5, labels),
        "hardly varies": (2.5 + 0.1 * scores, labels),
        "two": (scores[:2], labels[:2]),
        "constant scores": (np.full(19, 0.3), labels),
        "constant labels": (scores, np.full(19, 2.2)),
    }


def by_sklearn(predicted: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the field's standard values, which transformers uses too."""
    f1 = f1_score(labels, predicted, zero_division=0)
    constant = len({*labels, *predicted}) == 1  # where it warns
    matthews = 0.0 if constant else matthews_corrcoef(labels, predicted)
    return {"accuracy": accuracy_score(labels, predicted), "f1": f1, "matthews": matthews}


def by_scipy(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the field's standard values; where they are undefined ours are 0."""
    if len(set(scores)) == 1 or len(set(labels)) == 1:
        return {"pearson": 0.0, "spearman": 0.0}
    return {"pearson": pearsonr(scores, labels)[0], "spearman": spearmanr(scores, labels)[0]}


SIDES = """
import json, sys
from pipeline.{side} import metrics
from pipeline.tasks import TASKS
import {framework}, numpy as np

tensor = {framework}.{tensor}
said = dict()
for case, (task, predicted, labels) in json.load(open(sys.argv[1])).items():
    task = TASKS[task]
    predicted = np.array(predicted)
    logits = np.eye(task.num_labels)[predicted] if task.labels else predicted[:, None]
    counted = metrics.TaskMetrics(task)
    for begin in range(0, len(labels), 6):  # the last batch holds one example or two
        end = begin + 6
        counted.update(tensor(logits[begin:end]), tensor(np.array(labels[begin:end])))
    counts = {{name: np.asarray(value).tolist() for name, value in counted.counts().items()}}
    said[case] = [counted.values(), counts]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list]]:
    """Return what each side's TaskMetrics says of every case of every kind of task."""
    asked = {}
    for case, (predicted, labels) in cases().items():
        for task in ("cola", "mrpc"):
            asked[f"{task} {case}"] = [task, predicted.tolist(), labels.tolist()]
    for case, (predicted, labels) in correlation_cases().items():
        asked[f"stsb {case}"] = ["stsb", predicted.tolist(), labels.tolist()]
    three = np.random.default_rng(5).integers(0, 3, (2, 20))
    asked["mnli chance"] = ["mnli", *three.tolist()]
    path = tmp_path_factory.mktemp("metrics") / "cases.json"
    path.write_text(json.dumps(asked))
    said = {}
    for side, framework, tensor in (("pt", "torch", "tensor"), ("pd", "paddle", "to_tensor")):
        code = SIDES.format(side=side, framework=framework, tensor=tensor)
        finished = run_warm_python("-W", "ignore", "-c", code, path)
        assert finished.returncode == 0, finished.stderr
        said[side] = json.loads(finished.stdout.splitlines()[-1])
    return said


@pytest.mark.parametrize("case", cases())
def test_metrics_of_classes(case: str, sides: dict[str, dict[str, list]]) -> None:
    predicted, labels = cases()[case]
    expected = by_sklearn(predicted, labels)
    for name in ("cola", "mrpc"):
        task = TASKS[name]
        assert task.metrics(predicted, labels) == pytest.approx(
            {metric: expected[metric] for metric in task.metric_names}, abs=1e-15
        )
        (torch, counts), (paddle, other) = (
            sides["pt"][f"{name} {case}"],
            sides["pd"][f"{name} {case}"],
        )
        assert counts == other
        for metric in task.metric_names:  # torchmetrics divides in float32
            assert torch[metric] == pytest.approx(expected[metric], abs=1e-7), metric
            assert paddle[metric] == pytest.approx(expected[metric], abs=1e-15), metric


@pytest.mark.parametrize("case", correlation_cases())
def test_correlations(case: str, sides: dict[str, dict[str, list]]) -> None:
    scores, labels = correlation_cases()[case]
    expected = by_scipy(scores, labels)
    close = 1e-9 if case in ("far from zero", "hardly varies") else 1e-13
    assert TASKS["stsb"].metrics(scores, labels) == pytest.approx(expected, abs=close)
    for side in ("pt", "pd"):
        assert sides[side][f"stsb {case}"][0] == pytest.approx(expected, abs=close), side


def test_accuracy_of_three_classes(sides: dict[str, dict[str, list]]) -> None:
    predicted, labels = np.random.default_rng(5).integers(0, 3, (2, 20))
    expected = {"accuracy": float((predicted == labels).mean())}
    assert TASKS["mnli"].metrics(predicted, labels) == expected
    (torch, counts), (paddle, other) = sides["pt"]["mnli chance"], sides["pd"]["mnli chance"]
    assert torch == pytest.approx(expected, abs=1e-7) and paddle == expected
    assert counts == other and sum(counts["true_positives"]) == (predicted == labels).sum()


def test_a_nan_stays_a_nan() -> None:
    said = TASKS["stsb"].metrics([0.1, np.nan, 0.3], [1.0, 2.0, 3.0])
    assert np.isnan(said["pearson"]) and np.isnan(said["spearman"])


def test_large_counts_do_not_overflow() -> None:
    labels = np.arange(400_000) % 2
    predicted = np.where(np.arange(400_000) % 7 == 0, 1 - labels, labels)
    expected = matthews_corrcoef(labels, predicted)
    assert TASKS["cola"].metrics(predicted, labels)["matthews"] == pytest.approx(expected)


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((0,), (0,)), ((3, 1), (3,))])
def test_metrics_refuse_other_shapes(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match=r"metrics need two equal \(N,\)"):
        SST2.metrics(*(np.zeros(shape) for shape in shapes))


LIBRARIES = """
import json, warnings
warnings.simplefilter("ignore")
import numpy as np, paddle, torch
from paddlenlp.metrics import AccuracyAndF1, Mcc, MultiLabelsMetric, PearsonAndSpearman
from torchmetrics.classification import BinaryMatthewsCorrCoef
from torchmetrics.regression import PearsonCorrCoef, SpearmanCorrCoef
from pipeline.pd.metrics import F1

def with_torch(metric, *arrays):
    metric.update(*map(torch.tensor, arrays))
    return float(metric.compute())

def with_paddle(metric, *arrays):
    metric.update(metric.compute(*map(paddle.to_tensor, arrays)))
    return list(map(float, np.ravel(metric.accumulate())))

right = np.array([0, 1, 1, 0, 1])
logits = np.eye(2)[right]
ties, scores = np.array([1.0, 1.0, 2.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0, 1.0, 3.0])
near = np.array([[0, 1e-9]], dtype=np.float32), np.array([[1]])
try:
    MultiLabelsMetric(2).compute(paddle.to_tensor(np.eye(2)), paddle.to_tensor([1, 0]))
    pair = "taken"
except ValueError:
    pair = "ValueError"
half = PearsonAndSpearman()
half.update((paddle.to_tensor([0.5]), paddle.to_tensor([0.5])))
try:
    half.accumulate()
    single = "taken"
except TypeError:
    single = "TypeError"
print(json.dumps({
    "paddlenlp Mcc, all right": with_paddle(Mcc(), logits, right[:, None])[0],
    "torchmetrics Matthews, one class": with_torch(BinaryMatthewsCorrCoef(), 0 * right, 0 * right),
    "torchmetrics Matthews, constant": with_torch(BinaryMatthewsCorrCoef(), 0 * right, right),
    "paddlenlp Spearman, ties": with_paddle(PearsonAndSpearman(), scores[:, None], ties[:, None])[1],
    "torchmetrics Spearman, two": with_torch(SpearmanCorrCoef(), scores[:2], ties[1:3]),
    "torchmetrics Pearson, constant": with_torch(PearsonCorrCoef(), 0 * scores, ties),
    "paddlenlp F1, near tie": with_paddle(AccuracyAndF1(), *near)[3],
    "ours F1, near tie": with_paddle(F1(), *near)[3],
    "paddlenlp counts, two examples": pair,
    "paddlenlp correlation, batch of one": single,
}))
"""


def test_where_the_libraries_leave_the_definition() -> None:
    """Why pt_metrics and pd_metrics do not take them as they are: each line fails once it is mended."""
    finished = run_warm_python("-W", "ignore", "-c", LIBRARIES)
    assert finished.returncode == 0, finished.stderr
    said = json.loads(finished.stdout.splitlines()[-1].replace("NaN", '"NaN"'))
    ties, scores = [1, 1, 2, 2, 3], [1, 2, 2, 1, 3]
    assert said["paddlenlp Mcc, all right"] == 0.0  # 1
    assert said["torchmetrics Matthews, one class"] == 1.0  # undefined, 0 for scikit-learn
    assert abs(said["torchmetrics Matthews, constant"]) > 1e-3  # likewise
    assert abs(said["paddlenlp Spearman, ties"] - spearmanr(scores, ties)[0]) > 1e-2
    assert abs(said["torchmetrics Spearman, two"] - 1.0) > 1e-6
    assert said["torchmetrics Pearson, constant"] == "NaN"
    assert (said["paddlenlp F1, near tie"], said["ours F1, near tie"]) == (0.0, 1.0)
    assert said["paddlenlp counts, two examples"] == "ValueError"  # it takes the labels for a row
    assert said["paddlenlp correlation, batch of one"] == "TypeError"


# --- Step 2 -------------------------------------------------------------------------------------

STEP2 = """
import sys
from pathlib import Path
from pipeline.run import make_run
from pipeline.Step2 import {side}_data, {side}_metric

home = Path(sys.argv[1])
for task in sys.argv[2:]:
    run = make_run(home=home, profile="tiny", task=task, data_dir=home / "tsv" / task)
    {side}_data.main(run)
    {side}_metric.main(run)
"""


def both_sides(home: Path, names: tuple[str, ...], fault: str = "") -> None:
    """Run Step 2's scripts of both sides on the tasks in a process each; `fault` breaks Paddle's."""
    for side in ("pt", "pd"):
        code = (fault if side == "pd" else "") + STEP2.format(side=side)
        finished = run_warm_python("-W", "ignore", "-c", code, home, *names)
        assert finished.returncode == 0, finished.stderr


def compared(home: Path, task: str, name: str) -> list[str]:
    """Return the entries of Step 2's records `name` that differ between the sides."""
    run: Run = make_run(home=home, task=task)
    strict_only = name == "data" or task == "sst2"  # sst2's AUC breaks the ties of repeated texts
    dtypes = ("float64",) if strict_only else ("float64", "float32")
    differing = []
    for dtype in dtypes:
        pair = [load_record(run.output(f"{name}_{side}", dtype)) for side in ("torch", "paddle")]
        assert pair[0].keys() == pair[1].keys()
        if name == "data":
            return [result.key for result in compare_records(*pair, rule=EXACT).failures]
        close = 1e-9 if dtype == "float64" else 1e-6
        differing += [
            key for key in pair[0] if not np.allclose(pair[0][key], pair[1][key], 0, close)
        ]
    return differing


CLASSIFIERS = """
import sys
from pathlib import Path
from classifier_weights import generate_classifier_weights
from pipeline.run import make_run
from weights import torch2paddle, torch_bert_weight

home = Path(sys.argv[1])
torch_bert_weight.main(make_run(home=home, profile="tiny"))
own = {"target": "pd_bert", "checkpoint": None, "output": None}
torch2paddle.main(make_run(home=home, profile="tiny", **own))
for task in sys.argv[2:]:
    generate_classifier_weights.main(make_run(home=home, profile="tiny", task=task))
"""


@pytest.fixture(scope="module")
def tasks_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with weights, classifiers of 1, 2 and 3 labels, and invented files of every task."""
    home = tmp_path_factory.mktemp("tasks")
    finished = run_warm_python("-W", "ignore", "-c", CLASSIFIERS, home, "stsb", "mnli", "sst2")
    assert finished.returncode == 0, finished.stderr
    for task in TASKS.values():
        write_task(home / "tsv" / task.name, task)
    return home


def test_classifiers_have_as_many_labels_as_the_task(tasks_home: Path) -> None:
    """The default's numbers are those that its seed has always drawn."""
    for labels, end in ((2, ""), (1, "_1"), (3, "_3")):
        generator = np.random.default_rng(42)
        weight = generator.normal(0.0, 0.2, (labels, 32)).astype(np.float32)
        bias = generator.normal(0.0, 0.2, labels).astype(np.float32)
        folder = tasks_home / "classifier_weights"
        found = pt_backend.read_weights(folder / f"torch_classifier_weights{end}.bin")
        assert np.array_equal(found["classifier.weight"], weight)
        assert np.array_equal(found["classifier.bias"], bias)
        assert (folder / f"paddle_classifier_weights{end}.bin").is_file()


@pytest.fixture(scope="module")
def recorded(tasks_home: Path) -> Path:
    """The same, after Step 2 of every task on both sides."""
    both_sides(tasks_home, NAMES)
    return tasks_home


@pytest.mark.parametrize("name", NAMES)
def test_step2_aligns(recorded: Path, name: str) -> None:
    task = TASKS[name]
    assert compared(recorded, name, "data") == []
    assert compared(recorded, name, "metric") == []
    run = make_run(home=recorded, task=name)
    folder = recorded / "log_reprod" / ("" if task is SST2 else name)
    assert run.output("data_torch") == folder / "strict" / "data_torch.npy"
    data, metric = load_record(run.output("data_torch")), load_record(run.output("metric_torch"))
    assert int(data["length"]) == 14
    longest = max(len(data[f"dataset_{index}_input_ids"]) for index in range(14))
    assert longest == (128 if name in PAIRS else 92)
    assert metric["batch_0_logits"].shape == (6, task.num_labels)
    types = np.concatenate([data[f"dataset_{index}_token_type_ids"] for index in range(14)])
    assert set(types) == ({0, 1} if name in PAIRS else {0})
    values = load_record(run.output("metric_torch", "float32"))
    assert name == "sst2" or set(values) == set(task.metric_names)


def test_step2_labels(recorded: Path) -> None:
    """Labels are the numbers of the task's names, in its order; scores keep their decimals."""
    mnli = load_record(make_run(home=recorded, task="mnli").output("data_paddle"))
    assert [int(mnli[f"dataset_{index}_labels"]) for index in range(4)] == [0, 1, 2, 0]
    stsb = load_record(make_run(home=recorded, task="stsb").output("data_paddle"))
    assert [float(stsb[f"dataset_{index}_labels"]) for index in range(3)] == [
        0.0,
        5.0,
        float(np.float32(3.8)),
    ]


# what: task, script, what of Paddle's is replaced, by what, the entry that shows it
FAULTS = {
    "PaddleNLP cuts pairs its own way": (
        "rte",
        "data",
        "pipeline.pd.loader.PairTokenizer",
        "pd_loader.BertTokenizer",
        r"dataset_\d+_input_ids",
    ),
    "the texts in the other order": (
        "mrpc",
        "data",
        "pipeline.pd.loader.encode",
        "lambda tokenizer, texts, *cut: encode(tokenizer, texts[::-1], *cut)",
        r"dataset_\d+_input_ids",
    ),
    "the second text is forgotten": (
        "qnli",
        "data",
        "pipeline.pd.loader.encode",
        "lambda tokenizer, texts, *cut: encode(tokenizer, texts[:1], *cut)",
        r"dataset_\d+_token_type_ids",
    ),
    "the labels of Hugging Face's data set": (
        "mnli",
        "data",
        "pipeline.tasks.Task.number",
        "lambda task, label: ('entailment', 'neutral', 'contradiction').index(label)",
        r"dataset_\d+_labels",
    ),
    "scores rounded to whole numbers": (
        "stsb",
        "data",
        "pipeline.tasks.Task.number",
        "lambda task, label: float(round(number(task, label)))",
        r"dataset_\d+_labels",
    ),
    "PaddleNLP's ranks": (
        "stsb",
        "metric",
        "pipeline.pd.metrics.Correlations.spearman",
        "PearsonAndSpearman.spearman",
        "spearman",
    ),
    "the other class is the positive one": (
        "mrpc",
        "metric",
        "pipeline.pd.metrics.TaskMetrics.update",
        "lambda self, logits, labels: update(self, logits.flip(-1), 1 - labels)",
        "true_positives",
    ),
}

WITH_FAULTS = """
import json, sys
from pathlib import Path
from unittest.mock import patch
from pipeline.pd import loader as pd_loader
from pipeline.pd import metrics as pd_metrics
from pipeline.run import make_run
from pipeline.Step2 import pd_data, pd_metric
from pipeline.tasks import Task
from paddlenlp.metrics import PearsonAndSpearman

encode, number, update = pd_loader.encode, Task.number, pd_metrics.TaskMetrics.update
scripts = {"data": pd_data, "metric": pd_metric}
for home, (task, script, target, replacement, entry) in json.loads(sys.argv[1]).items():
    run = make_run(home=Path(home), profile="tiny", task=task, data_dir=Path(home, "tsv", task))
    with patch(target, eval(replacement)):
        scripts[script].main(run)
"""


@pytest.fixture(scope="module")
def broken(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each fault a home in which Step 2's Paddle side ran with it."""
    homes = {what: tmp_path_factory.mktemp("broken") for what in FAULTS}
    for what, home in homes.items():
        for folder in ("weights", "classifier_weights", "tsv"):
            (home / folder).symlink_to(recorded / folder)
        task, script, *_ = FAULTS[what]
        kept, copied = (make_run(home=place, task=task) for place in (recorded, home))
        name = f"{script}_torch"
        copied.output(name).parent.mkdir(parents=True)
        shutil.copy(kept.output(name), copied.output(name))
        if script == "metric":
            shutil.copy(kept.output(name, "float32"), copied.output(name, "float32"))
    asked = json.dumps({str(homes[what]): FAULTS[what] for what in FAULTS})
    finished = run_warm_python("-W", "ignore", "-c", WITH_FAULTS, asked)
    assert finished.returncode == 0, finished.stderr
    return homes


@pytest.mark.parametrize("what", FAULTS)
def test_planted_faults_are_seen(broken: dict[str, Path], what: str) -> None:
    task, script, *_, entry = FAULTS[what]
    differing = compared(broken[what], task, script)
    assert any(re.fullmatch(entry, key) for key in differing), differing


def check_step2(home: Path, *options: str) -> Finished:
    return run_script("pipeline/Step2/check_step2.py", home, *options)


def test_the_check_from_the_command_line(recorded: Path) -> None:
    """check_step2 reads the task's own folder; its records are not SST-2's."""
    options = ("--task", "stsb", "--data-dir", str(recorded / "tsv" / "stsb"))
    finished = check_step2(recorded, *options)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "data: aligned" in finished.stdout and "metric: aligned" in finished.stdout
    assert (recorded / "log_reprod" / "stsb" / "metric_diff.log").is_file()


def test_empty_and_cut_questions_of_qqp(tasks_home: Path, tmp_path: Path) -> None:
    """Both sides leave out the same lines, and encode an empty question alike."""
    for folder in ("weights", "classifier_weights"):
        (tmp_path / folder).symlink_to(tasks_home / folder)
    task = TASKS["qqp"]
    made = one_change(task, 2, "question2", "")
    made[3:4] = ["7\t8\t9\tHow do I", '"\twash a cat?\t0', *made[3:4]]
    for layout in (task.train, task.dev):
        write(tmp_path / "tsv" / "qqp" / layout.file, made)
    both_sides(tmp_path, ("qqp",))
    assert compared(tmp_path, "qqp", "data") == []
    data = load_record(make_run(home=tmp_path, task="qqp").output("data_torch"))
    assert int(data["length"]) == 5
    assert list(data["dataset_1_token_type_ids"])[-1] == 1  # [CLS] ... [SEP] [SEP]


def test_a_test_file_has_no_labels(tasks_home: Path) -> None:
    code = """
import sys
from pathlib import Path
from pipeline.corpus import find_test
from pipeline.run import make_run
from pipeline.tasks import TASKS
from pipeline.{side}.loader import data_loader, load_examples, load_tokenizer

run = make_run(home=Path(sys.argv[1]), profile="tiny", task="mnli")
tokenizer = load_tokenizer(run)
examples = load_examples(find_test(run.task, run.home / "tsv" / "mnli"), tokenizer)
(batch,) = data_loader(examples, tokenizer, 4)
print(sorted(batch), tuple(batch["input_ids"].shape))
"""
    for side in ("pt", "pd"):
        finished = run_warm_python("-W", "ignore", "-c", code.format(side=side), tasks_home)
        expected = "['attention_mask', 'input_ids', 'token_type_ids'] (4, 94)"
        assert finished.stdout.strip().endswith(expected), finished.stderr


def test_the_fake_batch_is_for_two_labels(tmp_path: Path) -> None:
    message = r"the fake batch has 2 labels, MNLI \(matched\) 3: run this step without --task"
    with pytest.raises(ReprodError, match=message):
        load_fake_batch(make_run(home=tmp_path, task="mnli"))


def test_a_missing_classifier_names_the_task(tasks_home: Path, tmp_path: Path) -> None:
    (tmp_path / "weights").symlink_to(tasks_home / "weights")
    folder = write_task(tmp_path / "tsv", TASKS["stsb"])
    options = ("--task", "stsb", "--data-dir", str(folder))
    error = one_line_error(run_script("pipeline/Step2/pt_metric.py", tmp_path, *options))
    assert (
        "torch_classifier_weights_1.bin is missing: first run python classifier_weights/" in error
    )
    assert "--task stsb" in error


# --- the hub ------------------------------------------------------------------------------------


class Split(list):
    """A split as datasets.load_dataset returns it, as far as it is used."""

    def __init__(self, rows: list[dict[str, object]], names: list[str] | None) -> None:
        super().__init__(rows)
        self.features = {"label": type("Feature", (), {"names": names} if names else {})()}


def hub(
    task: Task, names: list[str] | None, labels: list[float]
) -> Callable[..., dict[str, Split]]:
    """Return a load_dataset that knows one data set."""
    rows = [
        {name: f"{name} {row}\tand\nmore" for name in task.hub_texts} | {"label": label, "idx": row}
        for row, label in enumerate(labels)
    ]

    def load_dataset(*words: str) -> dict[str, Split]:
        assert words == task.hub
        return {split: Split(rows, names) for split in ("train", task.hub_dev, "test")}

    return load_dataset


@pytest.mark.parametrize(
    ("name", "names", "labels", "written"),
    [
        (
            "mnli-mm",
            ["entailment", "neutral", "contradiction"],
            [0, 2],
            ["entailment", "contradiction"],
        ),
        ("rte", ["entailment", "not_entailment"], [1, 0], ["not_entailment", "entailment"]),
        ("cola", ["unacceptable", "acceptable"], [1, 0], ["1", "0"]),
        ("wnli", ["not_entailment", "entailment"], [1, 0], ["1", "0"]),
        ("stsb", None, [3.799999952316284, 0.0], ["3.799999952316284", "0.0"]),
        ("chnsenticorp", None, [1, 0], ["1", "0"]),
    ],
)
def test_files_from_the_hub(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    names: list[str] | None,
    labels: list[float],
    written: list[str],
) -> None:
    task = TASKS[name]
    monkeypatch.setattr("datasets.load_dataset", hub(task, names, labels))
    folder = fetch_corpus(task, tmp_path)
    files = find_task_corpus(task, folder)
    for file in (files.train, files.dev):
        found = examples(file)
        assert [row[-1] for row in found] == written
        assert found[1][:-1] == [f"{text} 1 and more" for text in task.hub_texts]
    assert (tmp_path / "data" / ".gitignore").read_text() == "*\n"
    monkeypatch.setattr("datasets.load_dataset", None)  # the files are there: nobody asks again
    assert fetch_corpus(task, tmp_path) == folder


def test_both_sides_read_the_files_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.load_dataset", hub(TASKS["mrpc"], None, [1, 0]))
    run = make_run(home=tmp_path, task="mrpc", from_hub=True)
    assert run.corpus.train == tmp_path / "data" / "mrpc" / "train.tsv"
    assert run.command("a.py").endswith(f"a.py --task mrpc --from-hub --home {tmp_path}")


@pytest.mark.parametrize("side", ["pt", "pd"])
def test_offline(tasks_home: Path, tmp_path: Path, side: str) -> None:
    (tmp_path / "weights").symlink_to(tasks_home / "weights")
    script = REPOSITORY / f"pipeline/Step2/{side}_data.py"
    words = (script, "--profile", "tiny", "--home", tmp_path, "--task", "mrpc", "--from-hub")
    finished = run_python(*words, HF_HUB_OFFLINE="1")
    error = one_line_error(finished)
    assert "nyu-mll/glue/mrpc is not in the cache of Hugging Face datasets" in error
    assert "copy the folder data/mrpc here, or pass --data-dir DIR" in error
    assert not (tmp_path / "data").exists()


def test_a_folder_or_the_hub(tmp_path: Path) -> None:
    finished = run_script("pipeline/Step2/pt_data.py", tmp_path, "--from-hub", "--data-dir", "/")
    assert finished.returncode == 2 and "not allowed with argument" in finished.stderr


def test_nothing_is_left_of_a_broken_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TASKS["mrpc"]
    load = hub(task, None, [1, 0])
    monkeypatch.setattr("datasets.load_dataset", load)

    def interrupted(task: Task, layout: Layout, split: Split):
        yield "half a file"
        raise KeyboardInterrupt

    monkeypatch.setattr(corpus, "_lines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_corpus(task, tmp_path)
    assert list((tmp_path / "data").glob("mrpc/*")) == []
