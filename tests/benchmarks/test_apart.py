"""Work in a copy of the process: what hangs is an answer, and what the parent did before changes nothing."""

import time
from threading import Event

from benchmarks.apart import Broken, run_apart
from tests.conftest import run_python

import pytest


def test_a_hang_is_an_answer() -> None:
    def hang() -> None:
        while True:
            pass

    for work in (hang, Event().wait):  # one computes, one waits
        with pytest.raises(Broken, match="hung"):
            run_apart(work, patience=0.2)


def test_work_that_waits_for_others_has_its_time() -> None:
    assert run_apart(lambda: time.sleep(1.5) or "done", patience=1) == "done"


def test_a_copy_of_a_process_with_several_threads_computes() -> None:
    work = (
        "import torch; from benchmarks.apart import run_apart\n"
        "ones = torch.ones(512, 512, dtype=torch.float64)\n"
        "work = lambda: torch.nn.functional.layer_norm(ones @ ones, (512,)).sum().item()\n"
        "work(), print(run_apart(work, patience=5))"
    )
    done = run_python("-c", work, OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
    assert done.returncode == 0 and float(done.stdout) == 0, done.stderr
