"""What a result was made with."""

import re

from reprod_align import page
from reprod_align.base import find_version
from reprod_align.page import describe_run

import numpy as np
import pytest


def test_date_command_versions_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page.sys, "argv", ["/usr/bin/reprod-align", "pair", "my file.py"])
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    facts = dict(describe_run())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", facts["date"])
    assert facts["command"] == "reprod-align pair 'my file.py'"
    assert facts["numpy"] == np.__version__ and facts["OMP_NUM_THREADS"] == "3"
    assert {"torch", "paddlepaddle", "Python", "machine", "reprod-align"} <= facts.keys()


def test_a_package_that_is_missing_has_no_version() -> None:
    assert find_version("no-such-package-of-anybody") == ""
