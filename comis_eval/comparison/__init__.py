"""Two evaluations or two rankings side by side: how far they differ, and where they part."""

from comis_eval.comparison.evaluations import Compared, Delta, compare_evaluations, deltas
from comis_eval.comparison.paired import Cell, check_comparable, check_constants
from comis_eval.comparison.parting import STAGES, Parting, first_parting, parting_of
from comis_eval.comparison.plan import Need, Plan, plan
from comis_eval.comparison.traced import ways_of
from comis_eval.comparison.way import (
    Way,
    context_ids,
    lane_ids,
    ranking_ids,
    scored_order,
)

compare = compare_evaluations
"""Under the short name by which the package offers it."""

__all__ = [
    "STAGES",
    "Cell",
    "Compared",
    "Delta",
    "Need",
    "Parting",
    "Plan",
    "Way",
    "check_comparable",
    "check_constants",
    "compare",
    "compare_evaluations",
    "context_ids",
    "deltas",
    "first_parting",
    "lane_ids",
    "parting_of",
    "plan",
    "ranking_ids",
    "scored_order",
    "ways_of",
]
