"""Measuring a pipeline on a labelled query set."""

from comis_eval.evaluation.attacked import AttackFigures, attack_frame, measure_attacks
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.evaluation.file import read_evaluation, write_evaluation
from comis_eval.evaluation.measure import DEFAULT_METRICS, PIPELINES, evaluate

__all__ = [
    "DEFAULT_METRICS",
    "PIPELINES",
    "AttackFigures",
    "Evaluation",
    "attack_frame",
    "evaluate",
    "measure_attacks",
    "read_evaluation",
    "write_evaluation",
]
