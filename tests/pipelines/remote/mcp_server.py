"""An MCP server for tests: `python mcp_server.py MODE`; what it answers depends on the query."""

import os
import sys
import time

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tests")
ARGUMENTS: list[dict[str, object]] = []


@server.tool()
def recall(query: str, limit: int = 5, tags: list[str] | None = None) -> dict[str, object]:
    """Answer by the first word of the query."""
    ARGUMENTS.append({"query": query, "limit": limit, "tags": tags})
    word = query.split(maxsplit=1)[0] if query.split() else ""
    if word == "die":
        os._exit(3)
    if word == "refuse":
        raise ToolError(f"limit {limit}: allowed is 1..50 \x1b[31m")
    if word == "slow":
        time.sleep(60)
    if word == "alien":
        return {"items": [{"id": "b"}, {"id": "from elsewhere"}]}
    if word == "token":
        return {"items": [{"id": os.environ.get("COMIS_EVAL_REMOTE_TOKEN", "none")}]}
    return {"items": [{"id": "b", "text": "beta"}, {"id": "a", "text": "alpha"}]}


@server.tool()
def text_only(query: str) -> str:
    """Answer with JSON in a text, or with something that is none."""
    return '{"items": [{"id": "a"}]}' if query != "mangled" else "not {json"


if __name__ == "__main__":
    if sys.argv[1:] == ["broken"]:
        sys.exit("no database \x1b[31mthere")
    server.run("stdio")
