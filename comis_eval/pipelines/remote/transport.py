"""What a way to reach a live system promises, and how it says what went wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from urllib.parse import urlsplit

from comis_eval.errors import RemoteError
from comis_eval.text import mask_credentials, printable

TOKEN = "COMIS_EVAL_REMOTE_TOKEN"  # noqa: S105  (the name of the variable, not a token)
"""Environment variable of the bearer token; it is read, sent, and never kept or shown."""

MAX_ANSWER_BYTES = 16_000_000
"""Of one answer; a longer one is not read to its end."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class PassingError(Exception):
    """A fault that another attempt may not meet: a timeout, a status 500, half an answer."""


class FinalError(Exception):
    """A fault that another attempt would meet again: an argument that is refused."""


class LostError(Exception):
    """The connection is gone; calls that were open may be asked again over a new one."""


class Connection(Protocol):
    """An open way to a live system. Calls may be made at the same time."""

    async def call(self, arguments: dict[str, Any]) -> Any:
        """Ask once.

        Returns:
            The decoded JSON of the answer.

        Raises:
            PassingError, FinalError, LostError: As they say.
        """


Connect = Callable[[], AbstractAsyncContextManager[Connection]]
"""Opens a connection; a RemoteError says that there is nothing to connect to."""


def checked_url(url: str | None, transport: str) -> str:
    """Return an address that may be asked.

    Raises:
        RemoteError: If there is none, it is no http address, or a token would travel to
            another machine in clear text.
    """
    if not url:
        raise RemoteError(
            f"harness.remote.transport is {transport} but harness.remote.url is not set; say "
            "--set harness.remote.url=http://127.0.0.1:PORT/..."
        )
    shown = printable(mask_credentials(url), limit=200)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RemoteError(f"harness.remote.url is '{shown}'; it must be an http or https address")
    if parts.username or parts.password:
        raise RemoteError(
            f"harness.remote.url '{shown}' holds credentials; put a bearer token into {TOKEN}"
        )
    if bearer() and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise RemoteError(
            f"{TOKEN} is set but '{shown}' is neither https nor on this machine: the token would "
            "travel in clear text"
        )
    return url


def bearer() -> dict[str, str]:
    """The authorization header, when the environment gives a token.

    Raises:
        RemoteError: If it holds what no header may.
    """
    token = os.environ.get(TOKEN, "")
    if not token:
        return {}
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise RemoteError(f"{TOKEN} holds characters that no bearer token has; look for a newline")
    return {"Authorization": f"Bearer {token}"}
