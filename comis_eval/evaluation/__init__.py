"""Measuring a pipeline on a labelled query set."""

from comis_eval.evaluation.attacked import AttackFigures, measure_attacks
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.evaluation.file import read_evaluation, write_evaluation
from comis_eval.evaluation.measure import DEFAULT_METRICS, LOCAL, PIPELINES, PLAIN, evaluate, ranked

__all__ = [
    "DEFAULT_METRICS",
    "LOCAL",
    "PIPELINES",
    "PLAIN",
    "AttackFigures",
    "Evaluation",
    "evaluate",
    "measure_attacks",
    "ranked",
    "read_evaluation",
    "write_evaluation",
]
