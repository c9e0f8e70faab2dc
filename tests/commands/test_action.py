"""action.yml: its steps run as GitHub would run them, on a pair that passes and one that fails."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, cast

from tests.commands.test_pair import FILE
from tests.conftest import REPOSITORY
from tests.contract.made import PORT, write_contract

import pytest
import yaml


@pytest.fixture(scope="module")
def action() -> Any:
    return yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))


def find_step(action: Any, name: str) -> Any:
    (step,) = (one for one in action["runs"]["steps"] if one.get("name") == name)
    return step


def run_step(
    action: Any, name: str, folder: Path, base: str = "", **inputs: str
) -> "subprocess.CompletedProcess[str]":
    """Run a step's script with the environment that its `env` asks for."""
    step = find_step(action, name)
    values = {key: str(one.get("default", "")) for key, one in action["inputs"].items()} | inputs
    environment = {}
    for key, expression in step["env"].items():
        asked = expression.removeprefix("${{ ").removesuffix(" }}")
        if asked.startswith("inputs."):
            environment[key] = values[asked.removeprefix("inputs.")]
        else:
            known = {"github.event.pull_request.base.sha": base, "github.token": "secret",
                     "github.event.pull_request.number": "7",
                     "github.action_path": str(REPOSITORY)}  # fmt: skip
            environment[key] = known[asked]
    command = folder / "bin" / "reprod-align"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reprod_align "$@"\n')
    (command.parent / "python").unlink(missing_ok=True)
    (command.parent / "python").symlink_to(sys.executable)
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    environment |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY),
                    "GITHUB_STEP_SUMMARY": str(folder / "summary")}  # fmt: skip
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(
        words, cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )


def test_what_the_action_declares(action: Any) -> None:
    assert action["runs"]["using"] == "composite" and "contract" in action["inputs"]
    for step in action["runs"]["steps"]:
        assert "uses" in step or step["shell"] == "bash"
        assert "${{" not in step.get("run", "")  # what a user gives never becomes part of a script
    assert find_step(action, "keep the report")["if"] == "always()"
    upload = find_step(action, "show the findings at their lines")
    assert upload["with"]["sarif_file"] == "${{ inputs.output }}/report.sarif"
    assert (
        "code-scanning" in upload["if"] and action["inputs"]["code-scanning"]["default"] == "false"
    )


def test_what_is_installed_is_what_is_pinned_here(action: Any) -> None:
    pins = (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").split()
    words = find_step(action, "install")["run"].split()
    named = [word for word in words if "==" in word]
    assert len(named) == 4 and set(named) <= set(pins)


@pytest.mark.parametrize("faithful", [True, False])
def test_the_step_that_judges(action: Any, tmp_path: Path, faithful: bool) -> None:
    text = FILE if faithful else FILE.replace("nn.Tanh())\n\ninputs", "nn.ReLU())\n\ninputs")
    (tmp_path / "my pair.py").write_text(text)
    done = run_step(
        action, "judge", tmp_path, file="my pair.py", arguments="--memory 1G", output="out"
    )
    assert done.returncode == (0 if faithful else 1), done.stderr
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == [
        "report.html",
        "report.md",
        "report.sarif",
        "report.xml",
    ]
    (run,) = json.loads((folder / "report.sarif").read_text(encoding="utf-8"))["runs"]
    assert len(run["results"]) == (0 if faithful else 1)
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary == (folder / "report.md").read_text(encoding="utf-8")
    assert summary.startswith(f"### {'✅' if faithful else '❌'} `my pair.py`")


def test_a_file_with_a_shell_in_its_name_is_a_name(action: Any, tmp_path: Path) -> None:
    done = run_step(action, "judge", tmp_path, file="$(touch planted).py; touch planted")
    assert done.returncode == 2 and not (tmp_path / "planted").exists()


class GitHub(BaseHTTPRequestHandler):
    """Two routes of GitHub's API: the comments of pull request 7, and one comment."""

    comments: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[str]] = []
    refused = 0
    """the status of every answer, 0: as it should be"""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}").get("body", "")
        self.asked.append(self.command)
        root = "/repos/owner/ports/issues"
        path, _, query = self.path.partition("?")
        allowed = self.headers["Authorization"] == "Bearer secret" and not self.refused
        status, answer = 404, cast("Any", {})
        if not allowed:
            status = self.refused or 401
        elif (self.command, path) == ("GET", f"{root}/7/comments"):
            page = int(query.rpartition("=")[2])
            status, answer = 200, self.comments[(page - 1) * 100 : page * 100]
        elif (self.command, path) == ("POST", f"{root}/7/comments"):
            made = {"id": len(self.comments) + 1, "body": body, "html_url": "created", "user": "me"}
            self.comments.append(made)
            status, answer = 201, made
        elif self.command == "PATCH" and path.startswith(f"{root}/comments/"):
            kept = self.comments[int(path.rpartition("/")[2]) - 1]
            status = 200 if kept["user"] == "me" else 403
            if status == 200:
                kept |= {"body": body, "html_url": "updated"}
            answer = kept
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[GitHub]]:
    GitHub.comments, GitHub.asked, GitHub.refused = [], [], 0
    with ThreadingHTTPServer(("127.0.0.1", 0), GitHub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("GITHUB_REPOSITORY", "owner/ports")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield GitHub
        server.shutdown()


def test_one_comment_is_created_and_then_updated(
    action: Any, tmp_path: Path, github: type[GitHub]
) -> None:
    """Beside 120 of others, two of which bear the marker of this contract."""
    marker = "<!-- reprod-align: c/contract.toml -->"
    github.comments += [
        {"id": n + 1, "body": marker if n in (3, 110) else "hello", "html_url": "", "user": "other"}
        for n in range(120)
    ]

    def run(contract: str, text: str) -> str:
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / "proof.md").write_text(text, encoding="utf-8")
        done = run_step(action, "post the table", tmp_path, contract=contract, output="out")
        assert done.returncode == 0 and "secret" not in done.stdout + done.stderr, done.stderr
        return done.stdout.strip()

    assert run("c/contract.toml", "✅ first") == "created"
    assert run("c/contract.toml", "❌ second") == "updated"
    assert github.comments[120]["body"] == f"{marker}\n❌ second" and len(github.comments) == 121
    assert run("d/contract.toml", "x" * 99_999) == "created"
    assert len(github.comments) == 122 and len(github.comments[121]["body"]) < 65_536
    github.refused = 403
    assert run("c/contract.toml", "third").startswith(
        "::warning::the table was not posted: HTTP Error 403"
    )


def test_the_contract_is_that_of_the_base_branch(action: Any, tmp_path: Path) -> None:
    """What the pull request makes of the terms does not count; its port does."""

    def git(*words: str) -> str:
        named = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        done = subprocess.run(["git", *named, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    write_contract(tmp_path, {"port.py": PORT})
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "terms")
    base = git("rev-parse", "HEAD")
    (tmp_path / "contract.toml").write_text("everything = 'fine'")
    (tmp_path / "port" / "port.py").write_text(f"import torch\n{PORT}")
    asked = {"contract": "contract.toml", "port": "port", "output": "out"}
    done = run_step(action, "prove", tmp_path, base, **asked)
    assert done.returncode == 1, done.stderr
    table = (tmp_path / "out" / "proof.md").read_text(encoding="utf-8")
    assert "| `imports-torch` |" in table
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["verdict"] == "refused"
    assert run_step(action, "prove", tmp_path, base, contract="contract.toml").returncode == 2
