"""Measuring a pipeline on a labelled query set."""

from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.evaluation.file import read_evaluation, write_evaluation
from comis_eval.evaluation.measure import DEFAULT_METRICS, PIPELINES, evaluate, ranked

__all__ = [
    "DEFAULT_METRICS",
    "PIPELINES",
    "Evaluation",
    "evaluate",
    "ranked",
    "read_evaluation",
    "write_evaluation",
]
