"""Models named on the command line."""

from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.pair.file import call_named

import pytest


def test_functions_classes_expressions_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = "def make(n=3):\n    return [n]\nclass Net:\n    pass\nINPUTS = (1,)\n"
    (tmp_path / "mine_called.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert call_named("mine_called:make") == [3]
    assert call_named("mine_called:make(n=5)") == [5]
    assert type(call_named("mine_called:Net")).__name__ == "Net"
    assert call_named("mine_called:INPUTS") == (1,)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("make", "expected MODULE:CALL"), (":make", "expected MODULE:CALL"),
        ("no_such_module:make", "no_such_module:make: ModuleNotFoundError"),
        ("math:make", "math:make: NameError"), ("math:sqrt(-1)", "ValueError"),
        ("math:(", "math:.: SyntaxError"), ("sys:exit(3)", "SystemExit"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_said(words: str, message: str):
    with pytest.raises(ReprodError, match=message):
        call_named(words)
