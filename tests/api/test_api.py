"""The table of the two frameworks' APIs: every entry holds, its pages are what running it gives."""

import importlib.util
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pipeline  # noqa: F401  (quietens what follows)
from reprod_align import align
from reprod_align.alignment.audit import compare_settings, describe_differences
from reprod_align.api import (
    TOPICS,
    conventions,
    find_entry,
    find_named,
    list_entries,
    optimizer_arguments,
    optimizer_settings,
    read_title,
    search_entries,
)
from reprod_align.api.entry import (
    DIFFERS,
    EQUAL,
    NOT_RUN,
    OUT_OF_DATE,
    Entry,
    EntryOutcome,
    measure_difference,
    numbers,
    paddle,
    run_entry,
    torch,
)
from reprod_align.api.pages import make_pages
from reprod_align.backends.paddle.settings import module_settings as paddle_settings
from reprod_align.backends.torch.settings import module_settings as torch_settings
from reprod_align.causes import explain_forward, explain_gradient, explain_mask
from reprod_align.commands import main
from reprod_align.errors import ReprodError
from reprod_align.initialisation.family import read_facts
from tests.conftest import REPOSITORY, run_python

import numpy as np
import pytest

SLUGS = [entry.slug for entry in list_entries()]

# What the documents tell of, in their order: (what, the entry). Sections without an API are left out.
QUICK_START = {
    "1.1 num_classes": "num-labels",
    "1.1 pad_to_max_seq_len": "tokenizer-padding",
    "1.1 BatchSampler": "samplers",
    "1.1 labels [[label]]": "cross-entropy-shape",
    "1.1 clear_grad": "gradient-accumulation",
    "1.1 load_dataset": "dataset-scripts",
    "1.2 L2Decay": "l2-decay",
    "3.1 Module": "containers",
    "3.1 step 2 MultiHeadAttention": "attention-weights",
    "3.1 step 3 bias": "linear-bias",
    "3.1 step 4 epsilon": "layer-norm-epsilon",
    "3.1 step 5 Hardswish": "hardswish",
    "3.1 step 5 Dropout": "dropout-inplace",
    "3.1 step 6 initialisers": "initialiser-call",
    "3.1 step 6 padding_idx": "embedding-padding-idx",
    "3.1 Softmax": "softmax-axis",
    "3.1 Embedding max_norm": "embedding-max-norm",
    "3.1 Embedding scale_grad_by_freq": "embedding-scale-grad-by-freq",
    "3.1 Embedding": "embedding-weight",
    "3.1 TransformerEncoderLayer": "transformer-encoder-layer",
    "3.2 transpose": "linear-weight",
    "3.2 save": "save-load",
    "3.2 predictions.decoder": "shared-weights",
    "3.3 load_dict": "load-dict",
    "3.3 set_device": "device",
    "4.2 Dataset": "dataset-class",
    "4.2 pin_memory": "data-loader-pin-memory",
    "4.2 SequentialSampler": "samplers",
    "4.2 DataCollatorWithPadding": "padding-collator",
    "4.2 max_seq_len": "tokenizer-length",
    "4.3 Pad, Stack, Dict": "pad-stack",
    "5.1 load_metric": "load-metric",
    "5.1 Accuracy": "accuracy-metric",
    "5.1 Auc": "auc-metric",
    "5.1 Precision, Recall": "precision-recall",
    "5.2 CrossEntropyLoss(output, labels)": "cross-entropy-called",
    "5.2 soft labels": "cross-entropy-soft-label",
    "5.2 softmax axis": "cross-entropy-axis",
    "5.2 to_tensor": "to-tensor-dtype",
    "5.2 int64": "dtype-names",
    "5.3 AdamW": "adamw-eps",
    "5.3 apply_decay_param_fun": "decay-filter",
    '5.3 "norm"': "decay-filter-names",
    "5.3 SGD": "sgd",
    "5.3 Momentum": "sgd-momentum",
    "5.3 dampening": "sgd-dampening",
    "5.3 grad_clip": "clip-global-norm",
    "5.3 StepDecay": "step-decay",
    "5.4 order": "schedule-order",
    "5.4 get_lr": "schedule-get-lr",
    "5.4 linear": "linear-warmup",
    "5.4 cosine": "cosine-warmup",
    "5.4 polynomial": "polynomial-warmup",
    "5.5 CrossEntropy": "cross-entropy-class",
    "5.5 transformers.AdamW": "transformers-adamw",
}
GUIDE = {
    "3.1.3 eval": "eval-mode",
    "3.2 DataLoader": "data-loader-batches",
    "3.3 metrics": "accuracy-metric",
    "3.3 Mcc": "matthews-metric",
    "3.3 Spearman": "spearman-metric",
    "3.6 order": "schedule-order",
    "3.7 L1Decay": "l1-decay",
    "3.7 params groups": "parameter-groups",
    "3.7 ParamAttr": "parameter-learning-rate",
    "3.8 gradients": "retain-grads",
    "3.9 seeds": "seeds",
    "3.10 KaimingNormal": "kaiming-normal",
    "3.10 KaimingUniform": "kaiming-uniform-slope",
    "3.10 XavierNormal": "xavier-normal",
    "3.10 XavierUniform": "xavier-uniform",
    "3.12.1 DistributedBatchSampler": "distributed-sampler",
    "3.12.2 get_world_size": "world-size",
    "4.0 stack": "stack-slices",
    "4.0 StepDecay": "step-decay",
    "4.0 set_device": "device",
    "4.1.1 Linear": "linear-weight",
    "4.1.1 masked_fill": "masked-fill",
    "4.1.1 pack_padded_sequence": "pack-padded-sequence",
    "4.1.2 names and shapes": "load-state-dict",
    "4.2 truncation": "tokenizer-length",
    "4.3 drop_last": "data-loader-batches",
    "4.3 sort": "sort-ties",
    "4.4 bool index": "boolean-index",
    "4.4 axis": "cross-entropy-axis",
    "4.4 MaxPooling": "max-pool-second-gradient",
    "4.4 no_grad": "loss-accumulation",
    "4.5 params_groups": "parameter-groups",
    "4.5 accumulation": "gradient-accumulation",
    "4.5 no weight decay": "decay-filter",
    "4.6 ParamAttr": "parameter-learning-rate",
    "4.7 no decay": "parameter-regularizer",
    "4.8 register_hook": "register-hook",
    "4.8 w.backward()": "backward-of-vector",
    "4.9.2 seeds": "shuffle-order",
    "4.10 initialisation": "linear-initialisation",
}
FAQ = {
    "stop_gradient": "stop-gradient",
    "stop_gradient, what it reaches": "stop-gradient-scope",
    "matmul": "matmul-multiply",
    "gather": "gather",
    "inplace": "inplace-gradient",
    "not training a layer": "freeze-parameter",
    "ParamAttr learning_rate": "parameter-learning-rate",
    "fluid": "fluid",
    "py_reader": "py-reader",
    "clipping": "clip-global-norm",
    "masked_fill": "masked-fill",
    "pack_padded_sequence": "pack-padded-sequence",
    "einsum": "einsum",
    "BatchNorm's checkpoint": "load-state-dict",
}
STEP_4 = {
    "linear": "linear-warmup",
    "cosine": "cosine-warmup",
    "polynomial": "polynomial-warmup",
}
INFORMER = {
    "Linear": "linear-weight",
    "BatchNorm names": "batch-norm-names",
    "circular": "conv-padding-mode",
}
CHECKLISTS = {
    "quick start": QUICK_START,
    "guide": GUIDE,
    "FAQ": FAQ,
    "step 4": STEP_4,
    "Informer log": INFORMER,
}


@cache
def outcome(slug: str) -> EntryOutcome:
    return run_entry(find_entry(slug))


@pytest.mark.parametrize("slug", SLUGS)
def test_the_entry_holds(slug: str) -> None:
    found = outcome(slug)
    assert found.result == (DIFFERS if find_entry(slug).has_trap else EQUAL), found.measured


def test_the_committed_pages_are_what_the_entries_give() -> None:
    folder = REPOSITORY / "docs" / "api"
    pages = make_pages({slug: outcome(slug) for slug in SLUGS})
    assert sorted(pages) == sorted(path.name for path in folder.glob("*.md"))
    stale = [n for n, text in pages.items() if (folder / n).read_text(encoding="utf-8") != text]
    assert stale == [], "run `reprod-align api --write docs/api`"


def test_there_are_many_and_each_is_whole() -> None:
    assert len(SLUGS) == len(set(SLUGS)) >= 200
    for entry in list_entries():
        assert entry.differs.endswith(".") and "\n" not in entry.differs, entry.slug
        assert entry.chinese.endswith("。") and len(entry.apis) == 2, entry.slug
        assert (entry.tolerance == 1e-12) == (not entry.because), entry.slug
        assert not entry.raises or entry.has_trap, entry.slug


def test_every_module_of_topics_is_a_topic_with_two_titles() -> None:
    names = {path.stem for path in (REPOSITORY / "reprod_align/api/topics").glob("*.py")}
    assert names - {"__init__"} == set(TOPICS)
    assert all(read_title(topic) and read_title(topic, chinese=True) for topic in TOPICS)


@pytest.mark.parametrize("document", CHECKLISTS)
def test_what_the_documents_tell_of_is_covered(document: str) -> None:
    lacking = [
        (what, slug)
        for what, slug in CHECKLISTS[document].items()
        if not any(source.startswith(document) for source in find_entry(slug).sources)
    ]
    assert lacking == []


@pytest.mark.parametrize(
    ("slug", "case"),
    [
        ("kaiming-normal", "kaiming_normal_ on Linear"),
        ("kaiming-uniform-slope", "kaiming_uniform_ a on Linear"),
        ("xavier-normal", "xavier_normal_ on Linear"),
        ("xavier-uniform", "xavier_uniform_ on Linear"),
        ("embedding-fans", "kaiming_uniform_ on Embedding"),
        ("uniform-defaults", "uniform_ on Linear"),
        ("linear-initialisation", "Linear by default"),
        ("embedding-initialisation", "Embedding by default"),
        ("norm-initialisation", "LayerNorm by default"),
    ],
)
def test_entries_of_initialisers_agree_with_what_was_measured(slug: str, case: str) -> None:
    facts = [fact for fact in read_facts() if fact.case == case]
    assert facts and all(fact.same for fact in facts) == (not find_entry(slug).has_trap)


def test_the_table_imports_no_framework() -> None:
    code = "import sys; from reprod_align.api import list_entries; print(len(list_entries()));"
    code += "assert not {'torch', 'paddle', 'transformers', 'paddlenlp'} & set(sys.modules)"
    finished = run_python("-c", code)
    assert finished.returncode == 0 and finished.stdout.strip() == str(len(SLUGS)), finished.stderr


class Planted(Entry):
    """An entry to break."""

    apis = "torch.abs", "paddle.abs"
    chinese = "。"

    def torch_side(self) -> Any:
        return torch.tensor(numbers(3))

    def paddle_side(self) -> Any:
        return paddle.to_tensor(numbers(3))


class Trap(Planted):
    """One with a plain call of the opposite sign."""

    def plain(self) -> Any:
        return -paddle.to_tensor(numbers(3))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.array_equal(found, -expected)


class Raising(Planted):
    """One whose plain call is refused."""

    raises = "TypeError: inplace"

    def plain(self) -> Any:
        return paddle.nn.Hardswish(inplace=True)


def broken(kind: type[Entry], **functions: Any) -> EntryOutcome:
    return run_entry(type("Broken", (kind,), functions)())


def test_the_planted_entries_hold_while_whole() -> None:
    assert run_entry(Planted()).result == EQUAL
    assert run_entry(Trap()).result == run_entry(Raising()).result == DIFFERS


@pytest.mark.parametrize(
    ("kind", "functions", "measured"),
    [
        (Planted, {"paddle_side": lambda self: paddle.to_tensor(numbers(3) + 1e-9)}, "by 1e-09"),
        (Planted, {"paddle_side": lambda self: paddle.to_tensor(numbers(3))[None]}, "by inf"),
        (Planted, {"paddle_side": lambda self: paddle.to_tensor(numbers(3) * np.nan)}, "by inf"),
        (Planted, {"torch_side": lambda self: torch.no_such_function()}, "PyTorch: Attribute"),
        (Planted, {"paddle_side": lambda self: paddle.nn.Linear(2)}, "Paddle: TypeError"),
        (Trap, {"plain": Planted.paddle_side}, "gives the same"),
        (Trap, {"plain": lambda self: 2 * paddle.to_tensor(numbers(3))}, "not as described"),
        (Trap, {"plain": lambda self: paddle.nn.Linear(2)}, "the plain call: TypeError"),
        (Raising, {"plain": lambda self: paddle.nn.Hardswish()}, "does not raise TypeError"),
        (Raising, {"plain": lambda self: paddle.nn.ReLU6(no=1)}, "raises something else"),
    ],
)
def test_a_changed_entry_is_out_of_date(
    kind: type[Entry], functions: dict[str, Any], measured: str
) -> None:
    found = broken(kind, **functions)
    assert found.result == OUT_OF_DATE and measured in found.measured, found


def test_pages_are_not_made_of_an_entry_that_does_not_hold() -> None:
    outcomes = {slug: EntryOutcome(EQUAL, "") for slug in SLUGS}
    outcomes["einsum"] = EntryOutcome(OUT_OF_DATE, "by 1e-3")
    with pytest.raises(ReprodError, match="einsum: the description is out of date: by 1e-3"):
        make_pages(outcomes)


def test_running_leaves_the_default_dtypes() -> None:
    run_entry(Planted())
    assert torch.get_default_dtype() == torch.float32 and paddle.get_default_dtype() == "float32"


@pytest.mark.parametrize(
    ("expected", "found", "apart"),
    [
        (np.ones(2), np.ones(2), 0.0),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), 0.0),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf]), np.inf),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), np.inf),
        (np.ones(2), np.ones((2, 1)), np.inf),
        (np.ones(2), np.ones(2, np.int64), np.inf),
        (np.ones(2), np.ones(2, bool), np.inf),
        (np.array([100.0]), np.array([101.0]), 0.01),
        ([np.ones(1)], [np.ones(1), np.ones(1)], np.inf),
        (["a", "b"], ["a", "c"], np.inf),
        ("a", "a", 0.0),
        (None, np.ones(1), np.inf),
    ],
)
def test_difference(expected: Any, found: Any, apart: float) -> None:
    assert measure_difference(expected, found) == apart


def test_one_entry_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api", "batch-norm-momentum"]) == 0
    said = capsys.readouterr().out
    assert "torch.nn.BatchNorm1d(3, momentum=0.25)" in said
    assert "paddle.nn.BatchNorm1D(3, momentum=0.75)" in said
    assert "result: differs as described: visible (torch " in said


def test_an_entry_shows_what_its_code_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api", "sgd"]) == 0
    assert "def _torch_steps(" in capsys.readouterr().out


def test_one_entry_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api", "einsum", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["name"] == "einsum" and data["result"] == EQUAL and data["versions"]["torch"]
    assert set(data["code"]) == {"torch_side", "paddle_side"}


@pytest.mark.parametrize(
    ("word", "close"),
    [("batch-norm-momentun", "batch-norm-momentum"), ("CLIP_GRAD_NORM", "clip-")],
)
def test_an_unknown_entry(word: str, close: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api", word]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"unknown entry '{word}'" in error and close in error


def test_the_list_and_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(SLUGS)
    assert main(["api", "--search", "Masked_Fill", "--json"]) == 0
    assert [it["name"] for it in json.loads(capsys.readouterr().out)] == ["masked-fill"]
    assert main(["api", "--search", "no such word"]) == 2
    assert main(["api", "einsum", "--search", "x"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize(
    "words", ["cross entropy", "CrossEntropy", "cross-entropy", "cross_entropy"]
)
def test_words_are_found_however_they_are_joined(words: str) -> None:
    found = search_entries(words)
    assert found == search_entries("cross entropy")
    assert any("torch.nn.CrossEntropyLoss" in entry.apis for entry in found)


def test_a_search_for_signs_alone_does_not_find_all() -> None:
    assert len(search_entries("§")) == 0


def test_an_entry_is_found_by_the_name_of_its_api(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("torch.gather", "TORCH.gather", "gather"):
        assert any("torch.gather" in entry.apis for entry in find_named(name))
    norms = find_named("LayerNorm")
    assert find_entry("layer-norm-epsilon") in norms and find_named("torch.nn.LayerNorm") == norms
    assert find_named("nn.LayerNorm") == norms
    for name in ("F.gelu", "nn.functional.gelu", "paddle.nn.functional.gelu"):
        assert find_entry("gelu") in find_named(name)
    assert find_named("paddle.gather") == find_named("gather")  # a name of both, an entry of one
    assert find_named("layer-norm-epsilon") == [find_entry("layer-norm-epsilon")]
    with pytest.raises(ReprodError, match="unknown entry 'LayerNrom'"):
        find_named("LayerNrom")
    assert main(["api", "LayerNorm"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(norms)


def test_search_finds_chinese_and_sources() -> None:
    assert find_entry("leaky-relu-at-zero") in search_entries("斜率")
    assert find_entry("cosine-warmup") in search_entries("step 4")


def test_a_missing_framework_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "paddle" else whole(name)
    )
    assert run_entry(Planted()).result == NOT_RUN
    assert main(["api", "einsum"]) == 2
    assert "result: not run: paddle not installed here" in capsys.readouterr().out


def test_the_pages_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "reprod_align.api.pages.run_entry", lambda entry: EntryOutcome(OUT_OF_DATE, "planted")
    )
    assert main(["api", "--write", str(tmp_path / "pages")]) == 2
    assert "do not hold" in capsys.readouterr().err and not (tmp_path / "pages").exists()
    monkeypatch.setattr("reprod_align.api.pages.run_entry", lambda entry: EntryOutcome(EQUAL, ""))
    assert main(["api", "--write", str(tmp_path / "pages")]) == 0
    assert len(list((tmp_path / "pages").iterdir())) == 2 * (len(TOPICS) + 1)


def test_audit_takes_its_conventions_from_the_entries() -> None:
    own = find_entry("batch-norm-momentum").conventions["momentum"]
    assert conventions()["", "momentum"] == (own, "batch-norm-momentum")
    assert own.from_torch and own.from_torch(0.25) == 0.75
    beta = find_entry("smooth-l1").conventions["beta"]
    assert conventions()["SmoothL1Loss", "beta"] == (beta, "smooth-l1")
    assert optimizer_arguments()["eps"] == find_entry("adamw-eps").optimizer_arguments["eps"]
    assert Counter(kind == "" for kind, _ in conventions()) == {True: 24, False: 27}


def test_no_convention_stands_in_two_entries() -> None:
    places = [
        (kind, setting)
        for entry in list_entries()
        for setting in entry.conventions
        for kind in entry.convention_kinds or ("",)
    ]
    assert sorted(places) == sorted(set(places))


def test_a_setting_that_differs_names_its_entry() -> None:
    norms = torch.nn.BatchNorm1d(3, eps=1e-3), paddle.nn.BatchNorm1D(3, momentum=0.1)
    found = compare_settings(torch_settings(norms[0]), paddle_settings(norms[1]))
    assert [it.entry for it in found] == ["batch-norm-momentum", "batch-norm-epsilon"]
    assert describe_differences(found).endswith(
        "(see `reprod-align api batch-norm-momentum`, `reprod-align api batch-norm-epsilon`)"
    )


@pytest.mark.parametrize(
    ("norms", "entry"),
    [
        ((torch.nn.LayerNorm(4, eps=1e-3), paddle.nn.LayerNorm(4)), "layer-norm-epsilon"),
        ((torch.nn.BatchNorm2d(4, eps=1e-3), paddle.nn.BatchNorm(4, momentum=0.9)), "batch-norm-epsilon"),
        ((torch.nn.InstanceNorm2d(4, eps=1e-3), paddle.nn.InstanceNorm2D(4)), "batch-norm-epsilon"),
        ((torch.nn.GroupNorm(2, 4, eps=1e-3), paddle.nn.GroupNorm(2, 4)), "group-norm-arguments"),
    ],
)  # fmt: skip
def test_each_norm_has_an_epsilon_of_its_own(norms: tuple[Any, Any], entry: str) -> None:
    found = compare_settings(torch_settings(norms[0]), paddle_settings(norms[1]))
    assert {it.entry for it in found if it.name == "eps"} == {entry}


def test_the_references_of_settings_exist() -> None:
    named = [slug for _, slug in conventions().values()]
    for slug in {*named, *optimizer_settings().values()}:
        assert find_entry(slug).slug == slug


X = np.random.default_rng(0).normal(size=(4, 5, 6))
LOGITS = np.exp(X)
PAST = np.tri(5, dtype=bool)


@pytest.mark.parametrize(
    ("cause", "slug"),
    [
        (lambda: explain_forward(LOGITS / LOGITS.sum(-1, keepdims=True),
                               LOGITS / LOGITS.sum(1, keepdims=True), [X]), "softmax-axis"),
        (lambda: explain_forward(np.maximum(X, 0), np.where(X > 0, X, 0.01 * X), [X]),
         "leaky-relu-at-zero"),
        (lambda: explain_mask(PAST, ~PAST), "attention-boolean-mask"),
        (lambda: explain_mask(PAST, np.tri(5, k=1, dtype=bool)), "triu"),
        (lambda: explain_gradient(X, None), "stop-gradient-scope"),
        (lambda: explain_forward(X, X.swapaxes(1, 2), [X]), "transpose"),
    ],
)  # fmt: skip
def test_a_cause_leads_to_its_entry(cause: Callable[[], str], slug: str) -> None:
    assert cause().endswith(f" (see `reprod-align api {slug}`)")


@pytest.mark.filterwarnings("ignore")
def test_a_finding_of_align_ends_with_where_to_read() -> None:
    models = (
        torch.nn.Sequential(torch.nn.LayerNorm(6)),
        paddle.nn.Sequential(paddle.nn.LayerNorm(6, epsilon=1e-2)),
    )
    report = align(*models, (X.astype(np.float32),))
    assert "(see `reprod-align api layer-norm-epsilon`)" in report.findings[0].message
