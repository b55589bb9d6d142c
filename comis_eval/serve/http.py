"""The tools over streamable HTTP: loopback only, behind a token for each agent.

A page in a browser on the same machine can reach a loopback port, also under a name of its
own that it lets point here: Host and Origin must be ours, and the token must be known.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from comis_eval.errors import ConfigError, RequestError
from comis_eval.serve.desk import Desk
from comis_eval.serve.server import server_of
from comis_eval.serve.tools import Tool
from comis_eval.types import Tenancy

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
PATH = "/mcp"
LEAST_TOKEN = 16
"""Characters of a token that somebody chose."""

_NAMES = (HOST, "localhost")
_GOODBYE_S = 3
"""How long open streams may delay the end."""


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(32)


def check_token(token: str) -> str:
    """Return a token that somebody chose.

    Raises:
        ConfigError: If it is short, or cannot stand in a header.
    """
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"the token must be {LEAST_TOKEN} or more visible ASCII characters without spaces; "
            "leave it out to get one made"
        )
    return token


def listening(port: int) -> socket.socket:
    """Return a socket on a loopback port; port 0: any that is free.

    Raises:
        ConfigError: If the port is taken or not ours to take.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port))
        # At once: nobody else can listen there then, and who is told the address may connect.
        opened.listen()
    except OSError as error:
        opened.close()
        raise ConfigError(
            f"port {port} of {HOST}: {error.strerror}; choose another, or 0 for any that is free"
        ) from error
    return opened


def url_of(opened: socket.socket) -> str:
    """Return where a client finds the server."""
    return f"http://{HOST}:{opened.getsockname()[1]}{PATH}"


async def serve_http(
    desk: Desk,
    tools: Mapping[str, Tool],
    tokens: Mapping[str, Tenancy],
    opened: socket.socket,
    ready: Callable[[], None],
) -> None:
    """Serve clients over HTTP until interrupted.

    Args:
        desk: Where calls are answered.
        tools: By name.
        tokens: Whose connection each token opens.
        opened: From :func:`listening`.
        ready: Called when the memories are open.
    """
    import uvicorn

    app = application(desk, tools, tokens, port=opened.getsockname()[1])
    settings = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GOODBYE_S,
    )
    async with desk:
        ready()
        await uvicorn.Server(settings).serve(sockets=[opened])


def application(
    desk: Desk, tools: Mapping[str, Tool], tokens: Mapping[str, Tenancy], *, port: int
) -> ASGIApp:
    """Return the server as an ASGI application; the desk must be open while it runs."""
    from mcp.server.transport_security import TransportSecuritySettings

    server = server_of(desk, tools, _caller)
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[f"{name}:{port}" for name in _NAMES],
            allowed_origins=[f"http://{name}:{port}" for name in _NAMES],
        ),
    )
    return _Guard(inner, tokens)


_TENANCY = "comis_eval.tenancy"
"""Where the guard leaves whose connection it is, in a request's scope."""


class _Guard:
    """Lets in requests with a known token, and says whose they are."""

    def __init__(self, app: ASGIApp, tokens: Mapping[str, Tenancy]) -> None:
        self._app = app
        self._known = [(_digest(token.encode()), whose) for token, whose in tokens.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken
        from starlette.responses import Response

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        tenancy = self._whose(dict(scope["headers"]).get(b"authorization", b""))
        if tenancy is None:
            refusal = Response(
                "the server's token is needed: Authorization: Bearer TOKEN",
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
            return
        # The protocol's sessions belong to the user who opened them, under this name.
        user = AuthenticatedUser(AccessToken(token="", client_id=json.dumps(tenancy), scopes=[]))
        await self._app({**scope, _TENANCY: tenancy, "user": user}, receive, send)

    def _whose(self, header: bytes) -> Tenancy | None:
        kind, _, token = header.partition(b" ")
        given = _digest(token.strip())
        found = None
        for known, tenancy in self._known:  # all of them, so that time tells nothing
            if hmac.compare_digest(given, known):
                found = tenancy
        return found if kind.lower() == b"bearer" else None


def _digest(token: bytes) -> bytes:
    return sha256(token).digest()


def _caller(context: ServerRequestContext[Any, Any]) -> Tenancy:
    request = context.request
    if request is None:
        raise RequestError("not authenticated: no agent session")
    tenancy: Tenancy = request.scope[_TENANCY]
    return tenancy
