"""The page's server: on loopback, for one browser, and for nobody who lacks the token.

It serves four things by exact name and reads no path as a file's. Every answer forbids to be
framed, cached, sniffed or read by another site; nothing is done for a wrong Host (a name bound
to this address by somebody else), for another Origin, or without the token, which stands in a
header that no other site can send.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, NamedTuple

from comis_eval.datasets.fields import Field, Fields, UnusableError, choice, integer, read_fields
from comis_eval.datasets.lines import UnreadableError, decode_json
from comis_eval.errors import JudgeError
from comis_eval.judge.journal import GRADES, Act
from comis_eval.judge.page import Document
from comis_eval.judge.session import OutOfTurnError, Progress, Session
from comis_eval.judge.shown import shown
from comis_eval.text import printable

ADDRESS = "127.0.0.1"
MAX_BODY_BYTES = 1024
"""An act is far shorter."""
_DRAINED_BYTES = 1 << 16
"""What is read of a body that is refused, so that its sender gets to read why."""
_SECONDS = 20
"""How long a connection may keep a thread waiting."""

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'"


class Answer(NamedTuple):
    """What a request gets: a status, and a page or a JSON object."""

    status: HTTPStatus
    content: Document | Mapping[str, Any]


class _RefusedError(Exception):
    """A request that is not served; says the status and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class JudgeServer(ThreadingHTTPServer):
    """Serves one session.

    Attributes:
        session: What is judged.
        page: The frame it is judged in.
        agreement: Gives the table of agreement when it is asked for.
        token: What a caller must know; made anew for every run.
    """

    daemon_threads = True
    # A second server on the port would share its connections.
    allow_reuse_port = False

    def __init__(
        self,
        session: Session,
        page: Document,
        *,
        agreement: Callable[[], Mapping[str, Any]],
        port: int = 0,
    ) -> None:
        """Bind.

        Args:
            session: What is judged.
            page: The frame it is judged in.
            agreement: Gives ``{"head": [...], "rows": [[...], ...]}``, all of it printable.
            port: Of 127.0.0.1; 0: any that is free.

        Raises:
            JudgeError: If the port is taken.
        """
        self.session = session
        self.page = page
        self.agreement = agreement
        self.token = secrets.token_urlsafe(32)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise JudgeError(
                f"--port {port}: {error.strerror}; name another, or none for any that is free"
            ) from error

    def server_bind(self) -> None:
        """Bind without asking a name server what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    @property
    def host(self) -> str:
        """What a Host header must say."""
        return f"{ADDRESS}:{self.server_port}"

    @property
    def url(self) -> str:
        """The address to open; its fragment is never sent to anybody."""
        return f"http://{self.host}/#token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave out the traceback of a browser that hung up; show any other."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


@contextmanager
def running(server: JudgeServer) -> Iterator[JudgeServer]:
    """Serve in a thread while the block runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: JudgeServer
    server_version = "comis-eval"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Serve the page, the state or the agreement."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Take an act."""
        self._answer(self._post)

    def log_message(self, *_: Any) -> None:
        """Say nothing: what is asked for may be written to steer a terminal."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what http.server itself refuses in our own way."""
        self._send(Answer(HTTPStatus(code), {"error": HTTPStatus(code).phrase}))

    def _answer(self, handle: Callable[[], Answer]) -> None:
        try:
            answer = handle()
        except _RefusedError as refused:
            answer = Answer(refused.status, {"error": refused.why})
        self._send(answer)

    def _get(self) -> Answer:
        self._check_host()
        if self.path == "/":
            return Answer(HTTPStatus.OK, self.server.page)
        self._check_caller()
        if self.path == "/api/state":
            return Answer(HTTPStatus.OK, self._state(self.server.session.progress()))
        if self.path == "/api/agreement":
            return self._agreement()
        raise _RefusedError(HTTPStatus.NOT_FOUND, "there is no such thing here")

    def _post(self) -> Answer:
        self._check_host()
        self._check_caller(origin_needed=True)
        if self.path != "/api/act":
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is no such thing here")
        asked = self._act()
        session = self.server.session
        try:
            now = session.act(asked["act"], turn=asked["turn"], grade=asked.get("grade"))
        except OutOfTurnError:
            raise _RefusedError(HTTPStatus.CONFLICT, "another turn is on; load anew") from None
        except OSError as error:
            raise _RefusedError(
                HTTPStatus.INSUFFICIENT_STORAGE, f"the file cannot be written: {error.strerror}"
            ) from error
        return Answer(HTTPStatus.OK, self._state(now))

    def _state(self, now: Progress) -> dict[str, Any]:
        told: dict[str, Any] = {"query": None, "memory": None}
        if now.pair is not None:
            told = shown(self.server.session.dataset, now.pair)
        return told | {
            "turn": now.turn,
            "graded": now.graded,
            "total": now.total,
            "skipped": now.skipped,
            "place": now.place,
            "of": now.of,
            "number": now.query,
            "queries": now.queries,
            "can_undo": now.can_undo,
        }

    def _agreement(self) -> Answer:
        try:
            return Answer(HTTPStatus.OK, self.server.agreement())
        except (JudgeError, OSError) as error:
            why = printable(str(error), limit=500)
            raise _RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, why) from error

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if hosts != [self.server.host]:
            raise _RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST, f"this is {self.server.host} and nothing else"
            )

    def _check_caller(self, *, origin_needed: bool = False) -> None:
        origins = self.headers.get_all("Origin", [])
        ours = [f"http://{self.server.host}"]
        if origins != ours and (origins or origin_needed):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "only this page may ask")
        if any(site != "same-origin" for site in self.headers.get_all("Sec-Fetch-Site", [])):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "only this page may ask")
        given = self.headers.get("X-Comis-Token", "").encode("utf-8", "surrogateescape")
        if not secrets.compare_digest(given, self.server.token.encode()):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN,
                "the token is missing or of an earlier run; open the address that was printed",
            )

    def _act(self) -> dict[str, Any]:
        kind = self.headers.get("Content-Type", "").replace(" ", "").lower()
        if kind not in ("application/json", "application/json;charset=utf-8"):
            raise self._unread(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "must be application/json")
        lengths = self.headers.get_all("Content-Length", [])
        if self.headers.get("Transfer-Encoding") is not None or len(lengths) != 1:
            raise self._unread(HTTPStatus.LENGTH_REQUIRED, "must have one Content-Length")
        if not (lengths[0].isascii() and lengths[0].isdigit()):
            raise self._unread(HTTPStatus.BAD_REQUEST, "Content-Length must be a number")
        if len(lengths[0]) > 9 or int(lengths[0]) > MAX_BODY_BYTES:
            raise self._unread(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"must be at most {MAX_BODY_BYTES} bytes"
            )
        body = self.rfile.read(int(lengths[0]))
        if len(body) < int(lengths[0]):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "is cut off")
        try:
            row = decode_json(body.decode("utf-8"))
        except (UnicodeDecodeError, UnreadableError) as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "is not JSON") from error
        values, wrong = read_fields(row, _ACT) if isinstance(row, dict) else ({}, ["no object"])
        if not wrong and (values["act"] is Act.GRADE) != ("grade" in values):
            wrong.append("grade must be there when act is grade, and only then")
        if wrong:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "is no act")
        return values

    def _unread(self, status: HTTPStatus, why: str) -> _RefusedError:
        """Refuse a body, having read what is there, or the sender would not read the answer."""
        length = self.headers.get("Content-Length", "")
        if length.isascii() and length.isdigit() and len(length) < 10:
            self.rfile.read(min(int(length), _DRAINED_BYTES))
        return _RefusedError(status, why)

    def _send(self, answer: Answer) -> None:
        if isinstance(answer.content, Document):
            kind, text, policy = "text/html", answer.content.text, answer.content.policy
        else:
            kind, text, policy = "application/json", json.dumps(answer.content), _NOTHING
        content = text.encode()
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _grade(value: object) -> int:
    if integer(value) not in GRADES:
        raise UnusableError(" is no grade")
    return integer(value)


_ACT: Fields = {
    "act": Field("act", choice(Act), required=True),
    "turn": Field("turn", integer, required=True),
    "grade": Field("grade", _grade),
}
