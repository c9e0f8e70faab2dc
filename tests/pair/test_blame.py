"""An error names the user's file, and the line if the file's own code raised it."""

from pathlib import Path
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.model.side import ModelFailure
from reprod_align.pair.file import explain_error, locate_error

import pytest

TEXT = "def fail(error):\n    raise error\n"


def raise_in(path: Path, error: BaseException, text: str = TEXT) -> BaseException:
    """Return the error after code in the file has raised it."""
    path.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    with pytest.raises(type(error)) as caught:
        names["fail"](error)
    return caught.value


def test_the_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    said = locate_error(raise_in(path, KeyError("planted")), path)
    assert type(said) is ReprodError
    assert str(said) == f"{path}, line 2: KeyError: 'planted'"
    assert str(locate_error(raise_in(path, ReprodError("no")), path)) == f"{path}, line 2: no"


def test_the_line_of_a_cause_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    outer = ValueError("outer")
    outer.__cause__ = raise_in(path, KeyError("inner"))
    assert str(locate_error(outer, path)) == f"{path}, line 2: ValueError: outer"
    ring = ValueError("ring")
    ring.__cause__ = ring
    assert str(locate_error(ring, path)) == f"{path}: ValueError: ring"


def test_code_elsewhere_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    error = raise_in(tmp_path / "other.py", ReprodError("other"))
    assert locate_error(error, tmp_path / "mine.py") is error


def test_a_model_that_fails_keeps_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    error = raise_in(path, ModelFailure("Paddle", "fc", "model", "KeyError: x"))
    said = locate_error(error, path)
    assert said is error
    assert said.__notes__ == [f"{path}, line 2"]
    assert str(explain_error(error, path)) == f"{path}, line 2: {error}"


def test_a_syntax_error_has_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\ny = (\n")
    with pytest.raises(SyntaxError) as caught:
        compile(path.read_text(), str(path), "exec")
    said = str(locate_error(caught.value, path))
    assert said.startswith(f"{path}, line 2: SyntaxError: ")
    assert "mine.py, line 2)" not in said  # the place is told once
