"""A tool of an MCP server, started here or reached over HTTP."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from comis_eval.config import RemoteConfig
from comis_eval.errors import RemoteError
from comis_eval.pipelines.remote.transport import (
    MAX_ANSWER_BYTES,
    Connection,
    FinalError,
    LostError,
    PassingError,
    bearer,
    checked_url,
)
from comis_eval.text import close_matches, mask_credentials, printable

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

TOOL = "recall"
_SHOWN = 200
_LISTED = 40
_PAGES = 20
_STDERR_BYTES = 2_000


@asynccontextmanager
async def connect(settings: RemoteConfig) -> AsyncIterator[Connection]:
    """Start or reach the server and look whether it has the tool.

    Raises:
        RemoteError: If there is no server, or it has no such tool.
    """
    try:
        import anyio
        from mcp import Client
    except ImportError as error:
        raise RemoteError(
            "asking a live system needs the extra mcp: pip install 'comis_eval[mcp]'"
        ) from error
    problem = f"the MCP server did not answer within {settings.timeout_ms} ms"
    cause: BaseException | None = None
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        anyio.move_on_after(settings.timeout_ms / 1000) as patience,
    ):
        async with AsyncExitStack() as stack:
            try:
                server = await _transport(settings, stack, errors)
                client = await stack.enter_async_context(
                    Client(server, read_timeout_seconds=settings.timeout_ms / 1000)
                )
                names = await _tools(client)
            except RemoteError as error:
                problem, cause = str(error), error
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it is, it
                # is theirs: there is no server to talk to
                problem, cause = f"no MCP server there: {_said(error)}", error
            else:
                patience.deadline = math.inf
                tool = settings.tool or TOOL
                if tool in names:
                    yield _Session(client, tool)
                    return
                listed = ", ".join(printable(name, limit=40) for name in names[:_LISTED])
                problem = (
                    f"the MCP server has no tool '{printable(tool, limit=40)}'; it has "
                    f"{listed or 'none'}; set harness.remote.tool {close_matches(tool, names)}"
                ).rstrip()
        problem += _tail(errors)
    # Said out here: inside, the client's task group would wrap it.
    raise RemoteError(problem) from cause


async def _transport(settings: RemoteConfig, stack: AsyncExitStack, errors: IO[str]) -> Any:
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if settings.transport == "stdio":
        if not settings.command:
            raise RemoteError(
                "harness.remote.transport is stdio but harness.remote.command is not set; say "
                "--set 'harness.remote.command=[program, argument]'"
            )
        program, *arguments = settings.command
        # The SDK gives it a bare environment: no token of ours reaches a program.
        return stdio_client(
            StdioServerParameters(
                command=program, args=arguments, encoding_error_handler="replace"
            ),
            errlog=errors,  # type: ignore[arg-type]
        )
    import httpx2

    url = checked_url(settings.url, "http")
    client = await stack.enter_async_context(
        httpx2.AsyncClient(headers=bearer(), timeout=settings.timeout_ms / 1000, trust_env=False)
    )
    return streamable_http_client(url, http_client=client)


async def _tools(client: Client) -> list[str]:
    names: list[str] = []
    cursor = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names
    raise RemoteError(f"the MCP server lists its tools on more than {_PAGES} pages")


@dataclass
class _Session:
    client: Client
    tool: str

    async def call(self, arguments: dict[str, Any]) -> Any:
        """Call the tool once."""
        import anyio
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND

        try:
            result = await self.client.call_tool(self.tool, arguments)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or "session" in error.message.lower():
                raise LostError(f"the MCP server is gone: {_said(error)}") from error
            told = f"error {error.code}: {_said(error)}"
            final = error.code in (INVALID_PARAMS, METHOD_NOT_FOUND)
            raise (FinalError if final else PassingError)(told) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
            raise LostError("the MCP server is gone") from error
        except TimeoutError:
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise PassingError(f"{type(error).__name__}: {_said(error)}") from error
        return _payload(result)


def _payload(result: CallToolResult) -> Any:
    """Return the structured content, or else the JSON that the first text holds."""
    texts = [block.text for block in result.content if block.type == "text"]
    if result.is_error:
        raise FinalError(f"the tool refuses: {printable(' '.join(texts), limit=_SHOWN)}")
    structured = result.structured_content
    if structured is not None and not _is_wrapped_text(structured):
        return structured
    if not texts:
        raise PassingError("the tool answers with no text and no structured content")
    if len(texts[0]) > MAX_ANSWER_BYTES:
        raise FinalError(f"the answer is longer than {MAX_ANSWER_BYTES} characters")
    try:
        return json.loads(texts[0])
    except (ValueError, RecursionError) as error:
        raise PassingError(
            f"the tool's text is not JSON: {printable(texts[0], limit=60)}"
        ) from error


def _is_wrapped_text(structured: dict[str, Any]) -> bool:
    """Whether it is what SDKs make of a tool that returns a text."""
    return set(structured) == {"result"} and isinstance(structured["result"], str)


def _said(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = printable(mask_credentials(str(error)), limit=_SHOWN)
    return said or type(error).__name__


def _tail(errors: IO[str]) -> str:
    """What a server that was started here last wrote to its stderr."""
    errors.flush()
    size = errors.seek(0, 2)
    errors.seek(max(0, size - _STDERR_BYTES))
    lines = [line for line in errors.read().splitlines() if line.strip()]
    return f"; it wrote: {printable(lines[-1], limit=_SHOWN)}" if lines else ""
