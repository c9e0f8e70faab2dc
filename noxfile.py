"""The versions with which the library is tried: `make versions`, one environment for each combination.

`nox -s "paddle(version='3.1.1')"` tries one. Each session makes an environment of its own, judges the
example's pair in it, faithful and faulty, runs the tests of tests/smoke.txt (at least one pair of each
kind), and notes the result in docs/results/versions.json, from which docs/versions.md is written. With
`-- check` behind the session's name nothing is noted: so `make versions-ci` runs the oldest and a
middle Paddle.

A session finds what it does not install itself in the environment that runs nox, by a path file:
gigabytes of PyTorch are not installed once more. Another PyTorch (several GB of CUDA libraries) and
another Python (everything anew) are run by hand, one at a time: `nox -s "torch(version='2.4.1')"`.
"""

import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PADDLE = {  # numpy 2 came after Paddle 2.6
    "2.6.2": "numpy<2",
    "3.0.0": "numpy",
    "3.1.1": "numpy",
    "3.2.2": "numpy",
    "3.3.1": "numpy",
}
TORCH = {"2.2.2": "numpy<2", "2.4.1": "numpy", "2.9.1": "numpy", "2.15.0": "numpy"}
PYTHON = ("3.12", "3.13")
TOOLS = (
    "scipy",
    "safetensors",
    "jinja2",
    "matplotlib",
    "rich",
    "tqdm",
    "pytest",
    "hypothesis",
    "filelock",
)
"""beside the frameworks, what the smoke needs"""
nox.options.sessions = ["paddle", "numpy"]


def try_versions(session: nox.Session, *packages: str) -> None:
    """Install packages in front of those of the environment that runs nox, and try the library."""
    (site,) = Path(session.virtualenv.location).glob("lib/python*/site-packages")
    shared = [path for path in sys.path if "site-packages" in path]
    (site / "shared.pth").write_text("\n".join(shared) + "\n", encoding="utf-8")
    session.install(*packages)
    run_trial(session)


def run_trial(session: nox.Session) -> None:
    """Judge the example's pair and run the smoke, with the library of this folder."""
    words = session.posargs or ["try"]
    session.run(
        "python", "-W", "ignore", "tools/versions.py", *words, env={"PYTHONPATH": str(ROOT)}
    )


@nox.session
@nox.parametrize("version", list(PADDLE))
def paddle(session: nox.Session, version: str) -> None:
    """Try one version of Paddle."""
    try_versions(session, f"paddlepaddle=={version}", PADDLE[version], "setuptools")


@nox.session
@nox.parametrize("version", ["1.26.4"])
def numpy(session: nox.Session, version: str) -> None:
    """Try an older numpy with the newest Paddle."""
    try_versions(session, f"numpy=={version}")


@nox.session
@nox.parametrize("version", list(TORCH))
def torch(session: nox.Session, version: str) -> None:
    """Try another version of PyTorch: several GB of CUDA libraries come with it."""
    try_versions(session, f"torch=={version}", TORCH[version])


@nox.session(python=list(PYTHON))
def python(session: nox.Session) -> None:
    """Try another Python: everything is installed anew."""
    session.install("torch", "paddlepaddle", "setuptools", *TOOLS)
    run_trial(session)
