"""A live system under evaluation, reached over MCP or JSON-RPC."""

from comis_eval.pipelines.remote.answers import Answer, Answers, Failure
from comis_eval.pipelines.remote.pipeline import Remote

__all__ = ["Answer", "Answers", "Failure", "Remote"]
