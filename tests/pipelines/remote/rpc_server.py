"""A JSON-RPC server for tests that misbehaves as its queries ask it to."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OK = [{"id": "b", "content": "beta", "score": 0.5}, {"id": "a", "content": "alpha", "score": 0.4}]


_MANGLED = {
    "malformed": b'{"jsonrpc": "2.0", "result": {"results": [',
    "deep": b"[" * 100_000,
    "huge": b'"' + b"x" * 200_000 + b'"',
}
_SLOW = {"delay": 0.6, "pause": 0.05}


class Rpc(ThreadingHTTPServer):
    """Counts what it is asked; ``once-X`` misbehaves the first time only."""

    daemon_threads = True

    def __init__(self, methods: tuple[str, ...] = ("memory.search",)) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.methods = methods
        self.seen: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.times: Counter[str] = Counter()
        self.open = self.most_open = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/rpc"


class _Handler(BaseHTTPRequestHandler):
    server: Rpc

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(200, b'{"jsonrpc": "2.0", "result": {"results": []}, "id": 1}')

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.seen.append(request)
            server.tokens.add(self.headers.get("Authorization"))
            asked = request["params"]["query"]
            server.times[asked] += 1
            first = server.times[asked] == 1
        mode = asked.split()[0] if asked.split() else ""
        if mode.startswith("once-"):
            mode = mode.removeprefix("once-") if first else "fine"
        self._answer(mode, request)

    def _answer(self, mode: str, request: dict[str, Any]) -> None:
        if request["method"] not in self.server.methods:
            self._json(request, error={"code": -32601, "message": "no such method"})
        elif mode in _SLOW:
            self._take(_SLOW[mode])
            self._json(request, result={"results": OK})
        elif mode == "drop":
            self.connection.close()
        elif mode == "half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"jsonrpc"')
            self.wfile.flush()
            self.connection.close()
        elif mode in _MANGLED:
            self._send(200, _MANGLED[mode])
        elif mode.isdecimal():
            self._send(int(mode), b"\x1b[31mdown", {"Location": self.server.url})
        elif mode == "params":
            self._json(request, error={"code": -32602, "message": "limit \x1b[31mtoo large"})
        elif mode == "code":
            self._json(request, error={"code": "\x1b[31m" * 10_000, "message": "x"})
        elif mode == "other":
            self._json({"id": "another"}, result={"results": OK})
        elif mode == "nothing":
            self._json(request, result={"results": []})
        else:
            self._json(request, result={"results": OK})

    def _take(self, seconds: float) -> None:
        """Be busy, and counted as open; it ends before the answer lets the next call in."""
        with self.server.lock:
            self.server.open += 1
            self.server.most_open = max(self.server.most_open, self.server.open)
        time.sleep(seconds)
        with self.server.lock:
            self.server.open -= 1

    def _json(self, request: dict[str, Any], **fields: Any) -> None:
        self._send(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], **fields}).encode())

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def rpc(*methods: str) -> Iterator[Rpc]:
    """A server on a free port of this machine, for as long as the block runs."""
    server = Rpc(methods or ("memory.search",))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
