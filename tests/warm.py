"""Programs that start with the frameworks imported: `python WORDS` without the seconds of imports.

A server imports them once and forks for each program, which then runs in a process of its own, with its
own files, folder and environment. What depends on how Python itself starts (an import that must not
happen, PYTHONPATH, sitecustomize) needs a fresh process.

Run as a script, this file is a client: `python tests/warm.py WORDS` does what `python WORDS` does.
"""

import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ADDRESS = "WARM_PYTHON"  # the variable of the environment that holds the server's socket
CHILDREN = "WARM_CHILDREN"  # set: what a program starts by sys.executable is warm too
CLIENT = """#!/bin/sh
exec "{python}" -I -S "{file}" "$@"
"""
OURS = ("reprod_align", "pipeline", "models", "tests")  # a program imports these itself


def run_warm(
    words: Sequence[str], cwd: str, env: Mapping[str, str], files: Sequence[int], patience: float
) -> int:
    """Run `python WORDS` with these descriptors as stdin, stdout and stderr; return its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(patience)
        _ask(connection, {"words": words, "cwd": cwd, "env": dict(env)}, files)
        answer = connection.makefile().readline()
    if not answer:
        raise RuntimeError(f"the process that ran {words} was lost")
    return int(answer)


def _ask(connection: socket.socket, request: Mapping[str, object], files: Sequence[int]) -> None:
    line = json.dumps(request).encode() + b"\n"
    connection.connect(os.environ[ADDRESS])
    socket.send_fds(connection, [line[:1]], files)
    connection.sendall(line[1:])


def be_client() -> int:
    """Do what `python WORDS` does, SIGTERM and the death of this process included."""
    import signal

    with socket.socket(socket.AF_UNIX) as connection:
        words, files = sys.argv[1:], (0, 1, 2)
        _ask(connection, {"words": words, "cwd": os.getcwd(), "env": dict(os.environ)}, files)
        signal.signal(signal.SIGTERM, lambda *_: connection.sendall(b"T"))
        code = int(connection.makefile().readline())
    if code < 0:  # the program died of a signal
        os.kill(os.getpid(), -code)
    return code


def warm_executable() -> Path:
    """Return the file that takes the place of Python's own."""
    return Path(os.environ[ADDRESS]).with_name("python")


def journal() -> list[dict[str, Any]]:
    """Return the words, exit code, MiB and CPU seconds of every program that has ended."""
    text = warm_executable().with_name("journal").read_text()
    return [json.loads(line) for line in text.splitlines()]


@contextlib.contextmanager
def serving(root: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Serve programs in the block. The server imports the frameworks when the first one asks."""
    from subprocess import PIPE, Popen
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        os.environ[ADDRESS] = os.path.join(folder, "socket")
        warm_executable().write_text(CLIENT.format(python=sys.executable, file=__file__))
        warm_executable().chmod(0o755)
        listener.bind(os.environ[ADDRESS])
        listener.listen(64)
        descriptor = listener.fileno()
        words = [sys.executable, "-m", "tests.warm", str(descriptor)]
        options = {"cwd": root, "pass_fds": [descriptor], "start_new_session": True}
        environment = {**env, ADDRESS: os.environ[ADDRESS]}
        with Popen(words, env=environment, stdin=PIPE, **options) as server:
            listener.close()  # where the server has died, who asks is refused, and does not wait
            yield
            server.terminate()  # a process that a test left behind may hold the server's stdin open


def serve(listener: socket.socket) -> None:
    """Fork for each program until stdin is closed."""
    import select

    imported = False
    while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
        if not imported:
            import_libraries()
            imported = True
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            if os.fork() == 0:
                _keep(connection)
            os._exit(0)  # the keeper is nobody's child
        os.wait()
        connection.close()


def _keep(connection: socket.socket) -> None:
    """Run one program, hand its client's signals on, and end it if the client is gone."""
    import select
    import signal

    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads("{" + connection.makefile().readline())
    ended, end = os.pipe()
    process = os.fork()
    if process == 0:
        os.setpgid(0, 0)
        connection.close()
        os.close(ended)
        become(request["words"], request["cwd"], request["env"], files)
    for descriptor in (*files, end):
        os.close(descriptor)
    while ended not in select.select([connection, ended], [], [])[0]:
        if connection.recv(1) == b"T":
            os.kill(process, signal.SIGTERM)
        else:
            os.killpg(process, signal.SIGKILL)
            break
    _, status, usage = os.wait4(process, 0)
    code, mib = os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024
    seconds = usage.ru_utime + usage.ru_stime
    facts = {"words": request["words"], "code": code, "MiB": mib, "seconds": seconds}
    with warm_executable().with_name("journal").open("a") as journal:
        journal.write(json.dumps(facts) + "\n")
    with contextlib.suppress(OSError):  # the client may be gone
        connection.sendall(f"{code}\n".encode())
    os._exit(0)


def import_libraries() -> None:
    """Import what the programs would, quietened as they do; our own modules they import themselves."""
    import gc

    import pipeline  # noqa: F401

    import paddle  # noqa: F401
    import paddlenlp.transformers  # noqa: F401
    import reprod_log  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401
    import transformers.models.bert.modeling_bert  # noqa: F401

    for name in list(sys.modules):
        if name.partition(".")[0] in OURS:
            del sys.modules[name]
    sys.excepthook = sys.__excepthook__
    gc.collect()
    gc.freeze()  # a program's collector leaves these pages shared


def become(words: list[str], cwd: str, env: Mapping[str, str], files: Sequence[int]) -> None:
    """Run `python WORDS` in this process, and end it."""
    import atexit
    import threading

    for descriptor, file in enumerate(files):
        os.dup2(file, descriptor)
        os.close(file)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    if os.environ.get(CHILDREN):
        sys.executable = str(warm_executable())
    _draw_anew()
    code = _exit_code(words, cwd)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)  # taking the frameworks down would take longer than most programs


def _draw_anew() -> None:
    """Seed what Python's start would seed: two programs must not draw the same by chance."""
    import numpy as np
    import paddle

    np.random.seed()
    paddle.seed(int.from_bytes(os.urandom(4), "little"))


def _exit_code(words: list[str], cwd: str) -> int:
    """Run the program; return what Python would exit with."""
    try:
        _execute(words, cwd)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


def _execute(words: list[str], cwd: str) -> None:
    import runpy
    import warnings
    from types import ModuleType

    while words[0] == "-W":
        sys.warnoptions.append(words[1])
        warnings.simplefilter(words[1])  # type: ignore[arg-type]
        words = words[2:]
    if words[0] in ("-c", "-"):
        code, rest = (words[1], words[2:]) if words[0] == "-c" else (sys.stdin.read(), words[1:])
        sys.argv, sys.path[0] = [words[0], *rest], ""
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), module.__dict__)
    elif words[0] == "-m":
        sys.argv, sys.path[0] = words[1:], cwd
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = words, str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    if __spec__ is not None:  # -m tests.warm
        serve(socket.socket(fileno=int(sys.argv[1])))
    else:
        sys.exit(be_client())
