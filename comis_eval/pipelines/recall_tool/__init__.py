"""The recall tool: an agent's own keyword search over project memory."""

from comis_eval.pipelines.recall_tool.covering import ToolTables
from comis_eval.pipelines.recall_tool.tool import RecallTool

__all__ = ["RecallTool", "ToolTables"]
