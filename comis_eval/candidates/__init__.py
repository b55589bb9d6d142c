"""The candidates table, and the rankings a configuration makes of it."""

from comis_eval.candidates.facts import Facts
from comis_eval.candidates.rankings import FATES, NO_FATE, NUMBER, Rankings
from comis_eval.candidates.table import (
    SEARCH_LANES,
    Candidates,
    Lane,
    RerankScores,
    Retrieval,
    Vectors,
    merge,
    no_faults,
)

__all__ = [
    "FATES",
    "NO_FATE",
    "NUMBER",
    "SEARCH_LANES",
    "Candidates",
    "Facts",
    "Lane",
    "Rankings",
    "RerankScores",
    "Retrieval",
    "Vectors",
    "merge",
    "no_faults",
]
