"""Every fixed word has its Chinese, and sentences are translated as far as they are known."""

from reprod_align.page import html
from reprod_align.page.html import CHINESE, translate
from reprod_align.report import STAGES

import pytest


@pytest.mark.parametrize(
    "word", [*STAGES, "faithful", "diverges", "agrees to float32", "passed", "failed"]
)
def test_verdicts_and_stages_have_a_chinese_word(word: str) -> None:
    assert translate(word) != word


def test_a_sentence_is_translated_where_it_is_known() -> None:
    said = translate(
        "its inputs agree and its output does not; its output: at (0, 1) expected 1, got 2"
    )
    assert said.startswith("其输入一致而输出不一致") and "在 (0, 1) 处期望 1，得到 2" in said
    assert translate("3 of 8 predictions flip") == "8 个预测中有 3 个翻转"
    assert translate("out: no prediction can flip, 1, 2") == "out：没有预测会翻转，1, 2"
    assert translate("a module of the user's") == "a module of the user's"


def test_what_does_the_translation_is_no_word_of_the_users() -> None:
    assert html.CHINESE is CHINESE and all(key and value for key, value in CHINESE.items())
