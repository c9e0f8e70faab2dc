"""What a finding says: its code, its title, and the lines that a compiler would print."""

from dataclasses import replace

from reprod_align.report.finding import Edit, Finding, list_finding

PLAIN = Finding("forward", "a", "a", "its output: expected 1, got 2", 1.0, 0.0, kind="own-code")
LINED = replace(
    PLAIN, torch_line="net.py:7", torch_code="y = x * 2", paddle_line="port.py:12",
    paddle_code="y = x * 3  # three", paddle_span=(4, 9),
)  # fmt: skip


def test_without_a_cause_the_evidence_is_the_title_and_stands_once() -> None:
    assert list_finding(PLAIN) == ["error[own-code]: forward: a: its output: expected 1, got 2"]


def test_the_cause_comes_first_and_its_entry_is_the_code() -> None:
    told = replace(
        LINED, cause="3 times (see `reprod-align api rms-norm`, `reprod-align api gelu`)"
    )
    assert told.code == "rms-norm"
    assert list_finding(told) == [
        "error[rms-norm]: forward: a: 3 times",
        "  --> port.py:12",
        "12 |  y = x * 3  # three",
        "   |      ^^^^^",
        "   = PyTorch: net.py:7:  y = x * 2",
        "   = evidence: its output: expected 1, got 2",
        "   = see: reprod-align api rms-norm, reprod-align api gelu",
    ]


def test_settings_are_the_title_where_no_cause_is_known_and_a_note_beside_one() -> None:
    settings = "eps: PyTorch 1, Paddle 2 (see `reprod-align api rms-norm`)"
    alone = replace(PLAIN, settings=settings)
    assert alone.title == "settings differ: eps: PyTorch 1, Paddle 2" and alone.code == "rms-norm"
    lines = list_finding(replace(alone, cause="too small"))
    assert lines[0] == "error[rms-norm]: forward: a: too small"
    assert " = settings: eps: PyTorch 1, Paddle 2" in lines


def test_the_edit_is_the_fix_and_takes_the_place_of_what_was_tried() -> None:
    tried = replace(LINED, remedy="`4` in place of `3` gives PyTorch's numbers")
    assert "   = fix: `4` in place of `3` gives PyTorch's numbers" in list_finding(tried)
    edit = Edit("port.py", 12, "3", "2", "reference", "tried")
    assert "   = fix: `2` in place of `3` gives PyTorch's numbers" in list_finding(
        replace(tried, edit=edit)
    )


def test_a_line_that_is_meant_whole_has_no_mark_below_it() -> None:
    lines = list_finding(replace(LINED, paddle_span=(0, 9)))
    assert not any("^" in line for line in lines)


def test_a_derived_batch_is_named_first() -> None:
    found = replace(PLAIN, batches="with one row", cause="why")
    assert found.title == "with one row: why"
    assert found.message == "with one row: why. its output: expected 1, got 2"
