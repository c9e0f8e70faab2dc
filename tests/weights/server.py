"""A local HTTP server of files that notes each range it serves, and misbehaves where it is told to."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Files:
    """A folder as it is served."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self.ranges: list[tuple[str, int, int]] = []
        """file, first byte and the one behind the last, of each request for content"""
        self.sends_ranges = True
        self.sends_version = True
        self.status = 200
        self.cut = 0
        """bytes that an answer lacks at its end, although its head promises them"""

    def __truediv__(self, name: str) -> str:
        return f"{self.address}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, files: Files, *given: Any) -> None:
        self.files = files
        super().__init__(*given)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        files, path = self.files, self.files.folder / self.path.lstrip("/").partition("?")[0]
        status = files.status if path.is_file() else 404
        if status != 200:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = path.read_bytes()
        start, end, code = 0, len(content), 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and files.sends_ranges:
            start, end, code = int(asked[1]), min(int(asked[2]) + 1, len(content)), 206
        self.send_response(code)
        self.send_header("Content-Length", str(end - start))
        if code == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        if files.sends_version:
            self.send_header("ETag", f'"{hash(content)}"')
        self.end_headers()
        if with_body:
            files.ranges.append((path.name, start, end))
            if files.cut:
                self.close_connection = True
            self.wfile.write(content[start : end - files.cut])


@contextmanager
def serve(folder: Path) -> Iterator[Files]:
    """Serve a folder while the block runs."""
    files = Files(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, files))  # type: ignore[arg-type]
    server.daemon_threads = True
    files.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield files
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
