"""The tools as a server of the Model Context Protocol, and served over standard streams."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from comis_eval.errors import ComisEvalError
from comis_eval.serve.desk import Desk
from comis_eval.serve.memories import Answer
from comis_eval.serve.tools import Tool
from comis_eval.types import Tenancy

if TYPE_CHECKING:
    from mcp import types
    from mcp.server import Server, ServerRequestContext

_log = logging.getLogger(__name__)

NAME = "comis-eval"


def server_of(
    desk: Desk,
    tools: Mapping[str, Tool],
    caller: Callable[[ServerRequestContext[Any, Any]], Tenancy],
) -> Server[Any]:
    """Return a server of some tools.

    A call that is refused is answered with a tool error, which the agent reads and may mend;
    an unknown tool is an error of the protocol.

    Args:
        desk: Where calls are answered.
        tools: By name.
        caller: Whose connection a call came over. No argument of a call can change it.
    """
    from mcp import MCPError, types
    from mcp.server import Server

    listed = [_listed(tool) for tool in tools.values()]

    async def list_tools(
        _: ServerRequestContext[Any, Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"no such tool here; there are {', '.join(tools)}")
        try:
            answer = await desk.answer(tool.call, caller(context), params.arguments or {})
        except ComisEvalError as error:
            return _refused(str(error))
        except Exception:  # noqa: BLE001 - a bug ends the call, not the server
            # What a bug says of the inside is the operator's, not the client's.
            _log.exception("%s failed", tool.name)
            return _refused(f"{tool.name} failed inside the server; its log says why")
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=as_text(answer))],
            structured_content=answer,
        )

    return Server(
        NAME,
        version=version("comis_eval"),
        title="Memories",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(
    desk: Desk, tools: Mapping[str, Tool], tenancy: Tenancy, ready: Callable[[], None]
) -> None:
    """Serve one client over standard input and output, until it closes them.

    Whatever else prints to standard output meanwhile goes to standard error.

    Args:
        desk: Where calls are answered.
        tools: By name.
        tenancy: Whose connection it is.
        ready: Called when the memories are open.
    """
    from mcp.server.stdio import stdio_server

    server = server_of(desk, tools, lambda _: tenancy)
    async with desk:
        ready()
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


_STEERING = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""What could steer or hide in whatever shows the text; JSON escapes only what is below a space."""


def as_text(answer: Answer) -> str:
    """Return an answer as JSON in which whatever could steer a terminal is escaped.

    It reads back as it was.
    """
    told = json.dumps(answer, ensure_ascii=False, allow_nan=False)
    return _STEERING.sub(lambda found: json.dumps(found[0])[1:-1], told)


def _refused(why: str) -> types.CallToolResult:
    from mcp import types

    return types.CallToolResult(content=[types.TextContent(type="text", text=why)], is_error=True)


def _listed(tool: Tool) -> types.Tool:
    from mcp import types

    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments,
        output_schema=tool.answer,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.writes,
            idempotent_hint=not tool.writes,
            open_world_hint=False,
        ),
    )
