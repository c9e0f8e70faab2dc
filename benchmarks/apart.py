"""Runs work in a copy of this process, so that a hang or a crash is an answer."""

import math
import os
import pickle
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

_PAUSE = 0.05
_WAITING = 20.0  # times its patience: a process that waits for good uses no processor time


class Broken(Exception):
    """The process ended without an answer: it hung or crashed."""


def run_apart(work: Callable[[], Any], patience: float) -> Any:
    """Return what `work` returns in a copy of this process; Broken if it hangs, crashes or raises.

    patience: seconds of processor time, which a busy machine does not use up.
    """
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if not child:
            whole = math.ceil(patience)
            resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
            _answer(work, answer)
        if not _ended(child, patience):
            raise Broken("hung")
        answer.seek(0)
        held = answer.read()
    if not held:
        raise Broken("crashed")
    found = pickle.loads(held)
    if isinstance(found, BaseException):
        raise found
    return found


def _answer(work: Callable[[], Any], answer: Any) -> None:
    """Work in the child, write the result and end."""
    warnings.simplefilter("ignore")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        # other threads do not follow into the copy: PyTorch's OpenMP and MKL would wait for them
        torch.set_num_threads(1)
        found = work()
    except BaseException as error:
        found = Broken(f"crashed: {type(error).__name__}: {error}"[:300])
    try:
        answer.write(pickle.dumps(found))
        answer.flush()
    finally:
        os._exit(0)


def _ended(child: int, patience: float) -> bool:
    """Wait for the child; end it if it takes too long, and tell whether it ended in time."""
    deadline = time.monotonic() + _WAITING * patience
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGXCPU
        time.sleep(_PAUSE)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
