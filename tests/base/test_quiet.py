"""Libraries' chatter is silenced, the user's own warnings are not."""

import logging
import os
import sys
import warnings

from reprod_align.base import console

import pytest


def test_the_environment_is_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOG_minloglevel", "0")
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    with warnings.catch_warnings():
        console.quieten()
        warnings.warn("No ccache found. Please be aware", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning):  # pytest turns warnings into errors
            warnings.warn("the user's own", UserWarning, stacklevel=1)
    assert os.environ["GLOG_minloglevel"] == "0"
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"


def test_log_lines_below_error_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    console.quieten()
    logger = logging.getLogger("PaddleNLP")
    logger.setLevel(logging.DEBUG)  # as paddlenlp does when it is imported
    with caplog.at_level(logging.DEBUG):
        logger.warning("chatter")
        logger.error("trouble")
    assert [line.message for line in caplog.records if line.name == "PaddleNLP"] == ["trouble"]


def test_a_block_shows_no_warning_unless_python_was_told_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "warnoptions", [])
    with console.without_warnings():
        warnings.warn("hidden", UserWarning, stacklevel=1)
    monkeypatch.setattr(sys, "warnoptions", ["error"])
    with console.without_warnings(), pytest.raises(UserWarning):
        warnings.warn("shown", UserWarning, stacklevel=1)
