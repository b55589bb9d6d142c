"""Comis' own interface: JSON-RPC 2.0 over HTTP.

Source: specification of MemoryRecall, section 16.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from comis_eval.config import RemoteConfig
from comis_eval.errors import RemoteError
from comis_eval.pipelines.remote.transport import (
    MAX_ANSWER_BYTES,
    Connection,
    FinalError,
    PassingError,
    bearer,
    checked_url,
)
from comis_eval.text import mask_credentials, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

SEARCH = "memory.search"
OLDER_SEARCH = "memory.search_files"
"""What older servers call it; they take a query and a limit, nothing else."""

_OLDER_ARGUMENTS = ("query", "limit")
_METHOD_NOT_FOUND = -32601
_REFUSED = (-32600, _METHOD_NOT_FOUND, -32602)
"""JSON-RPC codes of a request that will never be right."""

_PASSING = (408, 425, 429)
_SHOWN = 120
_CODE_SHOWN = 20


@asynccontextmanager
async def connect(settings: RemoteConfig) -> AsyncIterator[Connection]:
    """Open a client of the server; nothing is sent before the first call.

    Raises:
        RemoteError: If the address cannot be asked, or the extra ``mcp`` is not installed.
    """
    try:
        import httpx2
    except ImportError as error:
        raise RemoteError(
            "asking a live system needs the extra mcp: pip install 'comis_eval[mcp]'"
        ) from error
    url = checked_url(settings.url, "jsonrpc")
    # Redirects are not followed, nor proxies of the environment asked: both would get the token.
    async with httpx2.AsyncClient(
        headers=bearer(), timeout=settings.timeout_ms / 1000, trust_env=False
    ) as client:
        yield _Client(client, url, settings.tool or SEARCH)


@dataclass
class _Client:
    client: httpx2.AsyncClient
    url: str
    method: str
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    async def call(self, arguments: dict[str, Any]) -> Any:
        """Ask once; an older server is asked by its older name from then on."""
        if self.method == OLDER_SEARCH:
            arguments = {k: v for k, v in arguments.items() if k in _OLDER_ARGUMENTS}
        answer = await self._posted(arguments)
        error = answer.get("error")
        if error is None:
            return answer.get("result")
        code = error.get("code") if isinstance(error, dict) else None
        if code == _METHOD_NOT_FOUND and self.method == SEARCH:
            self.method = OLDER_SEARCH
            return await self.call(arguments)
        said = error.get("message") if isinstance(error, dict) else error
        number = printable(str(code), limit=_CODE_SHOWN)
        told = f"{self.method}: error {number}: {printable(str(said), limit=_SHOWN)}"
        raise FinalError(told) if code in _REFUSED else PassingError(told)

    async def _posted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        import httpx2

        request = {
            "jsonrpc": "2.0", "method": self.method, "params": arguments, "id": next(self.ids),
        }  # fmt: skip
        try:
            async with self.client.stream("POST", self.url, json=request) as response:
                _check_status(response)
                body = await _read(response)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise PassingError(f"{type(error).__name__}: {_said(error)}") from error
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise PassingError(f"not JSON: {printable(str(error), limit=_SHOWN)}") from error
        if not isinstance(answer, dict) or not answer.keys() & {"result", "error"}:
            raise PassingError("not an answer of JSON-RPC: neither result nor error in it")
        if answer.get("id") != request["id"]:
            raise PassingError(f"the answer to another request, not to {request['id']}")
        return answer


def _check_status(response: httpx2.Response) -> None:
    status = response.status_code
    if status == 200:
        return
    told = f"HTTP status {status}"
    if status in (401, 403):
        raise FinalError(f"{told}: the server refuses the token, or the lack of one")
    if 300 <= status < 400:
        raise FinalError(f"{told}: a redirect, which is not followed; set the address it names")
    raise PassingError(told) if status >= 500 or status in _PASSING else FinalError(told)


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise FinalError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)


def _said(error: Exception) -> str:
    return printable(mask_credentials(str(error)), limit=_SHOWN)
