"""Names that mean the same in two model zoos are more alike than names that do not."""

from reprod_align.base.text import (
    is_number,
    is_within,
    numbered,
    parent,
    pattern,
    similarity,
    tokens,
)

import pytest


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
