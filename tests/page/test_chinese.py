"""The page's Chinese: sentences as a whole, full-width marks, and what stands where no Chinese is known."""

import json
import re
from dataclasses import replace

from reprod_align.api import list_entries
from reprod_align.page import Diagnostic
from reprod_align.page.chinese import WORDS, is_whole, translate
from reprod_align.page.html import render_page
from reprod_align.report.finding import KINDS, STAGES
from tests.conftest import REPOSITORY
from tests.page.pages import make_page

import pytest

ZOO = json.loads((REPOSITORY / "docs" / "results" / "zoo.json").read_text("utf-8"))
# the judge's own sentences of 300 pairs: titles and remarks
SAID = {row["message"].partition(". ")[0] for row in ZOO.values() if row["message"]} | {
    text for row in ZOO.values() for text in row["remarks"] if len(text) < 400
}


@pytest.mark.parametrize(
    "word", [*STAGES, "faithful", "diverges", "agrees to float32", "passed", "failed"]
)
def test_verdicts_and_stages_have_a_chinese_word(word: str) -> None:
    assert translate(word) != word


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("3 of 8 predictions flip", "8 个预测中有 3 个翻转"),
        ("out: no prediction can flip, 1, 2", "out：没有预测会翻转，1，2"),
        ("a module of the user's", "a module of the user's"),
        (
            "the value it hands to norm: shape (2, 4) in PyTorch, (2, 8) in Paddle",
            "它交给 norm 的值：形状在 PyTorch 中为 (2, 4)，在 Paddle 中为 (2, 8)",
        ),
        (
            "bn.act is 'gelu' in Paddle: 'relu' gives PyTorch's numbers",
            "Paddle 中 bn.act 为 'gelu'：改为 'relu' 即得 PyTorch 的数值",
        ),
        (
            "its inputs agree and its output does not; its output: at (0, 1) expected 1, got 2",
            "其输入一致而输出不一致；其输出：在 (0, 1) 处期望 1，得到 2",
        ),
        (
            "the mask or index it hands to text is not the one that PyTorch makes there",
            "它交给 text 的掩码或索引与 PyTorch 在那里自己产生的不同",
        ),
        ("it has a mask or index that it does not hand to a.b", "它有掩码或索引，却没有交给 a.b"),
        (
            "eps: PyTorch 1e-12, Paddle 1e-05; set epsilon=1e-12 in Paddle",
            "eps：PyTorch 1e-12，Paddle 1e-05；请在 Paddle 中设置 epsilon=1e-12",
        ),
        (
            "PyTorch takes the mean over axis 1 without padding of the output of norm, Paddle the "
            "mean over axis 1",
            "PyTorch 取的是 norm 的输出在第 1 轴上的平均值（不计 padding），Paddle 取的是第 1 轴上的平均值",
        ),
        (
            "PyTorch's output pooled comes from here; the Paddle model has this module and its weights, "
            "does not call it, and has no such output",
            "PyTorch 的输出 pooled 来自此处；Paddle 模型有这个模块及其权重，但没有调用它，也没有这个输出",
        ),
        (
            "Paddle calls `x.reshape(shape=(-1, 2)); y` here, and PyTorch does not",
            "Paddle 在此处调用了 `x.reshape(shape=(-1, 2)); y`，PyTorch 没有",
        ),
        ("Paddle never calls `self.encoder`", "Paddle 从未调用 `self.encoder`"),
        (
            "PyTorch calls softmax inside `attend(q, k, v)` here, and Paddle does not",
            "PyTorch 在此处的 `attend(q, k, v)` 内部执行了 softmax，Paddle 没有",
        ),
        (
            "PyTorch adds a mask inside `attend(q, k, v)` here, and Paddle does not",
            "PyTorch 在此处的 `attend(q, k, v)` 内部加了掩码，Paddle 没有",
        ),
        (
            "NOT aligned: 3 of 12 pairs of tensors differ, first the output of norm: 1.0e-03 (limit 1e-09); "
            "its inputs agree, so the difference is made there",
            "未对齐：12 对张量中有 3 对不同，最先是 norm 的输出：1.0e-03（上限 1e-09）；"
            "其输入一致，差异就产生在那里",
        ),
        (
            "strict: max difference 1.0e-03 at (0, 2): expected 1.5, got 1.501; tolerance 1.5e-09 (strict)",
            "strict：最大差异 1.0e-03，位于 (0, 2)：期望 1.5，得到 1.501；容差 1.5e-09（strict）",
        ),
        (
            "the Paddle model raises TypeError: list, not tuple: at 1",
            "Paddle 模型报错 TypeError：list, not tuple: at 1",
        ),
    ],
)
def test_a_sentence_is_translated_where_it_is_known(english: str, chinese: str) -> None:
    assert translate(english) == chinese


def test_most_of_what_the_judge_says_is_known() -> None:
    whole = [text for text in SAID if is_whole(translate(text))]
    assert len(whole) >= 0.95 * len(SAID) > 250, sorted(SAID - set(whole))


def test_no_half_width_mark_is_left_in_a_chinese_sentence() -> None:
    for text in SAID:
        chinese = translate(text)
        if is_whole(chinese) and "报错" not in chinese:  # an error has its own words
            assert not re.search(r"[,;:] ", re.sub(r"`[^`]*`|\([^()]*\)", "", chinese)), chinese


def test_a_title_without_chinese_is_told_by_its_code() -> None:
    def shown(message: str) -> str:
        diagnostic = Diagnostic("forward", "a", message, code="mask", chinese=KINDS["mask"][1])
        return render_page(replace(make_page(), diagnostics=[diagnostic]))

    unknown = "the heads are counted from the other end"
    assert f'<span lang="zh">{KINDS["mask"][1]}（{unknown}）</span>' in shown(unknown)
    assert KINDS["mask"][1] not in shown("the gradient diverges here")


def test_each_code_has_its_sentence_in_chinese() -> None:
    assert all(is_whole(chinese) and chinese[-1] != "。" for _, chinese in KINDS.values())
    assert all(re.search("[\u3400-\u9fff]", entry.chinese) for entry in list_entries())


def test_words_are_whole() -> None:
    assert all(key and value for key, value in WORDS.items())
