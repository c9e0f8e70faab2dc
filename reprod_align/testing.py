"""The pytest plugin: `def test_port(align_pair)` judges a pair, and fails with the report alone.

pytest imports this module at every start where the package is installed, so it imports next to
nothing: the frameworks come with the first pair that a test judges. docs/pytest.md shows its use.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from reprod_align.report import Report


@pytest.fixture
def align_pair(request: pytest.FixtureRequest) -> "Callable[..., Report]":
    """Return a function that judges a pair and fails the test unless the port is faithful.

    align_pair("pair_bert.py") takes a pair's file, as `reprod-align pair` does; a relative path
    starts in the folder of the test's file. Everything else is taken as `align` takes it:
    align_pair(torch_model, paddle_model, inputs, ...). Returns the Report of a faithful pair.
    """
    folder = request.path.parent

    def judge(pair: Any, *arguments: Any, **settings: Any) -> "Report":
        __tracebackhide__ = True
        failure, report = _judge(folder, pair, arguments, settings)
        if failure:
            pytest.fail(failure, pytrace=False)
        assert report is not None
        return report

    return judge


def _judge(folder: Path, pair: Any, arguments: Any, settings: Any) -> "tuple[str, Report | None]":
    """Return why the test fails, "" where the port is faithful, and the report if there is one."""
    from reprod_align.base.console import quieten, without_warnings
    from reprod_align.errors import ReprodError

    quieten()
    try:
        with without_warnings():  # pytest makes errors of the frameworks' own, where it is told so
            if isinstance(pair, (str, os.PathLike)):
                report = _judge_file(folder / pair, *arguments, **settings)
            else:
                from reprod_align.alignment import align

                report = align(pair, *arguments, **settings)
    except ReprodError as error:
        return f"cannot be judged: {error}", None
    return ("" if report.passed else report.summary()), report


def _judge_file(path: Path, memory: int | None = None) -> "Report":
    """Return the report on a pair's file, what its code raises as a ReprodError with its line."""
    from reprod_align.commands.pair import judge_file
    from reprod_align.pair.file import run_user_code

    with run_user_code(path):
        return judge_file(path, memory)
