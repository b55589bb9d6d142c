"""Labelled query sets: reading, checking, splitting, fingerprinting, importing, writing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comis_eval.datasets.attacking import KINDS, attack, without_poison
    from comis_eval.datasets.dataset import Dataset
    from comis_eval.datasets.judgments import UNJUDGED, Judged, Judgments
    from comis_eval.datasets.labels import Attack, Edge, Link, Policy, ScopeRule, Usefulness
    from comis_eval.datasets.load import Report, load_dataset, validate
    from comis_eval.datasets.split import SPLITS, folds_of, split_of
    from comis_eval.datasets.write import write_dataset

_HOMES = {
    "KINDS": "attacking",
    "SPLITS": "split",
    "UNJUDGED": "judgments",
    "Attack": "labels",
    "Dataset": "dataset",
    "Edge": "labels",
    "Judged": "judgments",
    "Judgments": "judgments",
    "Link": "labels",
    "Policy": "labels",
    "Report": "load",
    "ScopeRule": "labels",
    "Usefulness": "labels",
    "attack": "attacking",
    "folds_of": "split",
    "load_dataset": "load",
    "split_of": "split",
    "validate": "load",
    "without_poison": "attacking",
    "write_dataset": "write",
}
"""The module of each name: a name is imported when it is first used, since an importer that
streams needs little of all this, and its processes even less."""

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
