"""The versions of Paddle with which the library is tried: `make versions`, one environment for each.

`nox -s "paddle(version='3.1.1')"` tries one of them. Each session makes an environment of its own (about
1 GB), judges the example's pair in it, faithful and faulty, and notes the result in
docs/results/versions.json, from which docs/versions.md is written.
"""

import nox

TORCH = "torch==2.13.0"
PADDLE = {  # the newest numpy that each was built for
    "2.6.2": "numpy<2",
    "3.0.0": "numpy",
    "3.1.1": "numpy",
    "3.2.2": "numpy",
    "3.3.1": "numpy",
}


@nox.session
@nox.parametrize("version", list(PADDLE))
def paddle(session: nox.Session, version: str) -> None:
    """Judge the example's pair with one version of Paddle."""
    packages = [f"paddlepaddle=={version}", TORCH, PADDLE[version], "setuptools"]
    session.install(*packages, ".")
    session.run("python", "-W", "ignore", "tools/versions.py", "try")
