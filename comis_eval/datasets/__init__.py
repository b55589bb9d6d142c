"""Labelled query sets: reading, checking, splitting, fingerprinting, importing, writing."""

from comis_eval.datasets.attack import KINDS, attack, without_poison
from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.judgments import UNJUDGED, Judged, Judgments
from comis_eval.datasets.labels import Attack, Edge, Link, Policy, ScopeRule, Usefulness
from comis_eval.datasets.load import Report, load_dataset, validate
from comis_eval.datasets.split import SPLITS, folds_of, split_of
from comis_eval.datasets.write import write_dataset

__all__ = [
    "KINDS",
    "SPLITS",
    "UNJUDGED",
    "Attack",
    "Dataset",
    "Edge",
    "Judged",
    "Judgments",
    "Link",
    "Policy",
    "Report",
    "ScopeRule",
    "Usefulness",
    "attack",
    "folds_of",
    "load_dataset",
    "split_of",
    "validate",
    "without_poison",
    "write_dataset",
]
