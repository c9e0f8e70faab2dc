"""Posts a Markdown file on a pull request of GitHub as one comment, which every further run updates.

    GH_TOKEN=... python tools/post_comment.py proof.md 17 contracts/llama/contract.toml

The comment is known by a marker with the last word, which no reader sees. A comment with that marker that is
somebody else's cannot be changed, and is passed over. What GitHub refuses is a warning of the job, and not
its failure: the table stands in the job's summary as well.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

MOST = 65_000  # letters: GitHub takes 65,536
_PAGE = 100
_SECONDS = 30
_CLOSED = (403, 404)  # somebody else's comment, or one that is gone


def post(body: str, number: int, name: str) -> str:
    """Create or update the comment; return its address. Raises HTTPError, URLError."""
    marker = f"<!-- reprod-align: {name.replace('--', '-')} -->"
    content = {"body": f"{marker}\n{body[:MOST]}"}
    for comment in _list_comments(number):
        if str(comment.get("body", "")).startswith(marker):
            try:
                return str(
                    _ask("PATCH", f"issues/comments/{int(comment['id'])}", content)["html_url"]
                )
            except HTTPError as error:
                if error.code not in _CLOSED:
                    raise
    return str(_ask("POST", f"issues/{number}/comments", content)["html_url"])


def _list_comments(number: int) -> Iterator[dict[str, Any]]:
    page = 1
    while found := _ask("GET", f"issues/{number}/comments?per_page={_PAGE}&page={page}"):
        yield from found
        if len(found) < _PAGE:
            return
        page += 1


def _ask(method: str, path: str, content: dict[str, str] | None = None) -> Any:
    root = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    request = Request(
        f"{root}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        json.dumps(content).encode() if content else None,
        {"Authorization": f"Bearer {os.environ['GH_TOKEN']}", "Accept": "application/vnd.github+json",
         "Content-Type": "application/json"},
        method=method,
    )  # fmt: skip
    with urlopen(request, timeout=_SECONDS) as answer:
        return json.load(answer)


def main(words: list[str]) -> int:
    """Post the file; say where it stands, or warn."""
    path, number, name = words
    try:
        print(post(Path(path).read_text(encoding="utf-8"), int(number), name))
    except (HTTPError, URLError, TimeoutError) as error:
        hint = "; the job needs permissions: pull-requests: write, which forks do not get" \
            if isinstance(error, HTTPError) and error.code in (401, *_CLOSED) else ""  # fmt: skip
        print(f"::warning::the table was not posted: {error}{hint}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
