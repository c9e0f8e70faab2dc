"""A repair is judged on the batch of the pair and on batches that nobody saw."""

from difflib import unified_diff

import pipeline  # noqa: F401
from benchmarks.mutants import judging
from benchmarks.mutants.batches import vary
from benchmarks.mutants.drawing import describe, prepare
from benchmarks.mutants.frozen import Frozen, read_mutants, write_mutant
from benchmarks.mutants.judging import Result, add_repair, judge_mutant, meets, restores
from benchmarks.mutants.kinds import mutate
from benchmarks.mutants.repairs import apply_patch, batches, judge_patch
from benchmarks.mutants.subjects import SUBJECTS
from reprod_align.explain.code import Code

import numpy as np
import pytest

RIGHT = "scores / math.sqrt(self.head_size)"
WRONG = "scores * math.sqrt(self.head_size)"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Frozen:
    """Return pd_bert with its scores multiplied where PyTorch divides them."""
    bench, folder = prepare("pd_bert"), tmp_path_factory.mktemp("set")
    made = mutate("operator", bench.source, bench.lines["called"])
    times = next(it for it in made if WRONG in it.splice.apply(bench.source.text))
    write_mutant(folder, *describe(bench, times, ["bert.encoder"], 7))
    return read_mutants(folder)[0]


def diff(frozen: Frozen, after: str) -> str:
    before = frozen.path.read_text("utf-8")
    lines = [text.splitlines(keepends=True) for text in (before, after)]
    return "".join(unified_diff(*lines, "a/some/where.py", "b/some/where.py"))


def test_a_frozen_mutant_is_read_as_it_was_written(frozen: Frozen) -> None:
    mutant = frozen.mutant
    assert mutant.name == "0007-operator-pd_bert" and mutant.places == ("bert.encoder",)
    assert frozen.original == SUBJECTS["pd_bert"].path.read_text("utf-8")
    assert mutant.splice.apply(frozen.original) == frozen.path.read_text("utf-8")
    assert mutant.splice.undo(frozen.path.read_text("utf-8"), mutant.before) == frozen.original


def test_a_right_patch_repairs(frozen: Frozen) -> None:
    assert judge_patch(frozen, diff(frozen, frozen.original)) == "repaired"


def test_a_patch_that_fits_the_given_batch_only_is_told_apart(frozen: Frozen) -> None:
    mutated = frozen.path.read_text("utf-8")
    guarded = mutated.replace(WRONG, f"({RIGHT} if hidden.shape[1] == 10 else {WRONG})")
    assert judge_patch(frozen, diff(frozen, guarded)) == "given batch only"
    again = mutated.replace(WRONG, f"({RIGHT} if not self.training else {WRONG})")
    assert judge_patch(frozen, diff(frozen, again)) == "not repaired"  # both modes are run


def test_an_edit_names_the_change_if_it_replaces_code_that_was_changed(frozen: Frozen) -> None:
    code = Code(frozen.path.read_text("utf-8"))
    (line, column), at = code.place(frozen.mutant.start), code.text.index(WRONG)
    (first, left), (last, right) = code.place(at), code.place(at + len(WRONG))
    known = {
        "file": str(frozen.path),
        "line": first,
        "column": left,
        "last_line": last,
        "last_column": right,
    }
    assert first <= line <= last and left <= column <= right
    assert restores(frozen, {**known, "after": RIGHT}) and meets(frozen, {**known, "after": RIGHT})
    other = {**known, "after": "scores / self.head_size**0.5"}
    assert meets(frozen, other) and not restores(frozen, other)
    assert not meets(frozen, {**known, "line": first + 1, "last_line": last + 1, "after": RIGHT})


def test_no_patch_repairs_nothing(frozen: Frozen) -> None:
    assert judge_patch(frozen, None) == judge_patch(frozen, "") == "none"


def test_a_patch_without_effect_or_with_an_error_does_not_repair(frozen: Frozen) -> None:
    mutated = frozen.path.read_text("utf-8")
    assert judge_patch(frozen, diff(frozen, f"{mutated}\n# a comment\n")) == "not repaired"
    assert judge_patch(frozen, diff(frozen, f"{mutated}\nraise ValueError\n")) == "not repaired"


def test_a_patch_of_another_text_does_not_apply(frozen: Frozen) -> None:
    patch = diff(frozen, frozen.original).replace(WRONG, "elsewhere")
    assert apply_patch(frozen.path, patch) is None
    assert judge_patch(frozen, patch) == "does not apply"


def test_an_unseen_batch_has_other_values_lengths_and_masks() -> None:
    ids = np.array([[5, 6, 7, 8, 9, 99], [9, 8, 7, 6, 5, 99]])
    mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    values, lengths, masks = vary({"input_ids": ids, "attention_mask": mask})
    assert (values["input_ids"] != ids).any() and (values["attention_mask"] == mask).all()
    assert lengths["input_ids"].shape == lengths["attention_mask"].shape == (2, 4)
    assert masks["attention_mask"].tolist() == [[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]]
    for batch in (values, lengths, masks):
        assert (batch["input_ids"][:, -1] == 99).all()  # heads that look for the end find it
        assert set(batch["input_ids"].ravel()) <= set(ids.ravel())


def test_where_sizes_are_fixed_the_number_of_rows_varies() -> None:
    image = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype("float32")
    shapes = [batch[0].shape for batch in vary((image,))]
    assert shapes == [(2, 3, 4, 4), (1, 3, 4, 4), (4, 3, 4, 4)]


def test_three_batches_that_the_port_takes_are_found(frozen: Frozen) -> None:
    found = batches(SUBJECTS["pd_bert"], SUBJECTS["pd_bert"].path)
    assert len(found) == 4
    assert len({str(sorted((k, v.tolist()) for k, v in it.items())) for it in found}) == 4


def test_a_mutant_is_asked_about(frozen: Frozen) -> None:
    result = judge_mutant(frozen)
    assert result.outcome == "caught" and result.findings
    assert (result.repair, result.fixing) == ("none", 0.0)


def test_fix_is_asked_once_about_what_was_caught(
    frozen: Frozen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "judge_fix", lambda frozen: ("repaired", 3.0))
    monkeypatch.setattr(judging, "run_apart", lambda work, patience: work())
    caught, missed = Result("a", "caught"), Result("b", "missed")
    asked = Result("c", "caught", fixing=2.0)
    for result in (caught, missed, asked):
        add_repair(frozen, result)
    assert [it.repair for it in (caught, missed, asked)] == ["repaired", "none", "none"]
    assert [it.fixing for it in (caught, missed, asked)] == [3.0, 0.0, 2.0]
