"""Metrics over whole query sets: one definition each, one implementation for every use.

::

    judged = from_run({"q1": ["m2", "m1"]}, {"q1": {"m1": 3}})
    score(["ndcg@10", "recall@5"], judged.inputs)
"""

from comis_eval.metrics.aggregate import ALL, Mean, Row, long_rows, means, weights
from comis_eval.metrics.bound import exact_interval, upper_bound
from comis_eval.metrics.definition import Definition, Metric
from comis_eval.metrics.from_run import Qrels, Run, RunInputs, from_run
from comis_eval.metrics.judgments import Ideal
from comis_eval.metrics.leakage import Leak, leaks
from comis_eval.metrics.lists import Categories, Inputs, Objective, Ranked, Values
from comis_eval.metrics.poison import displacement
from comis_eval.metrics.registry import METRICS, judged_beside, parse, patterns, score
from comis_eval.metrics.stage_trace import BLOCKING, STAGES, StageTrace
from comis_eval.metrics.tie_band import Band, tie_band
from comis_eval.metrics.utility import utility_weights

__all__ = [
    "ALL",
    "BLOCKING",
    "METRICS",
    "STAGES",
    "Band",
    "Categories",
    "Definition",
    "Ideal",
    "Inputs",
    "Leak",
    "Mean",
    "Metric",
    "Objective",
    "Qrels",
    "Ranked",
    "Row",
    "Run",
    "RunInputs",
    "StageTrace",
    "Values",
    "displacement",
    "exact_interval",
    "from_run",
    "judged_beside",
    "leaks",
    "long_rows",
    "means",
    "parse",
    "patterns",
    "score",
    "tie_band",
    "upper_bound",
    "utility_weights",
    "weights",
]
