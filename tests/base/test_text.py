"""Tables, shortened lists and counted nouns, as they are printed.

Names that mean the same in two model zoos are alike.
"""

from pathlib import Path

from reprod_align.base.text import (
    and_more,
    count,
    is_number,
    is_within,
    numbered,
    parent,
    pattern,
    shorten,
    shorten_lines,
    shorten_path,
    similarity,
    table,
    tokens,
)

import pytest


def test_a_table_aligns_its_columns_and_ends_no_line_in_spaces() -> None:
    assert table([("name", "n", ""), ("a.long.name", "12", "bad"), ("b", "", "")]) == [
        "name         n",
        "a.long.name  12  bad",
        "b",
    ]


def test_what_does_not_fit_is_counted() -> None:
    names = ["a", "b", "c", "d", "e"]
    assert shorten(names, 3) == "a, b, c and 2 more"
    assert shorten(names, 5) == "a, b, c, d, e"
    assert shorten(names, 4, "; ") == "a; b; c; d and 1 more"
    assert shorten([], 3) == ""
    assert shorten_lines(names, 2, indent="  ") == ["a", "b", "  ... and 3 more"]
    assert shorten_lines(names, 5) == names
    assert and_more(names, 5) == "" and and_more(names, 1) == " and 4 more"


def test_a_name_with_a_line_break_stays_in_its_line() -> None:
    assert shorten(["a\nb", "c"], 2) == r"a\nb, c"


def test_counts_are_singular_for_one_only() -> None:
    assert [count(n, "tensor") for n in (0, 1, 2)] == ["0 tensors", "1 tensor", "2 tensors"]
    assert count(3, "entry", "entries") == "3 entries"


def test_a_path_is_what_the_user_would_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shorten_path(tmp_path / "a" / "b.npy") == "a/b.npy"
    assert shorten_path(tmp_path.parent / "b.npy") == str(tmp_path.parent / "b.npy")


def test_words_are_cut_at_dots_capitals_and_digits_and_translated() -> None:
    assert tokens("encoder.layers.0.selfAttention.q_proj2") == (
        "encoder", "layer", "0", "self", "attn", "q", "fc", "2",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "partner", "other"),
    [
        ("encoder.layer.0.attention.self.query", "layers.0.attn.q_proj", "layers.0.attn.k_proj"),
        ("h.1.ln_1", "blocks.1.norm1", "blocks.0.norm1"),
        ("embeddings.word_embeddings", "tok_emb", "pos_emb"),
        ("classifier", "head", "pooler"),
    ],
)
def test_the_partner_is_more_alike_than_its_neighbour(name: str, partner: str, other: str) -> None:
    assert similarity(name, partner) > similarity(name, other)
    assert similarity(name, partner) == similarity(partner, name)
    assert 0 <= similarity(name, other) < similarity(name, name) == 1


def test_parts_of_names() -> None:
    assert numbered("layers.12") == ("layers.", 12) and numbered("layers.norm") is None
    assert is_number("layers.3") and not is_number("layers.a3")
    assert pattern("encoder.3.block.0.fc1") == "encoder.#.block.#.fc1"
    assert (parent("a.b.c"), parent("a")) == ("a.b", "")


def test_a_name_is_within_its_ancestors_only() -> None:
    assert is_within("a.b", "a") and is_within("a", "a") and is_within("a", "")
    assert not is_within("ab", "a") and not is_within("a", "a.b")
