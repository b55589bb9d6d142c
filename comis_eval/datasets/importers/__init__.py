"""Importers: one file a format; each takes a source and gives a dataset and a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.importers.base import Count, ImportReport, Note
from comis_eval.datasets.importers.locomo import import_locomo

IMPORTERS: dict[str, Callable[[Path], tuple[Dataset, ImportReport]]] = {"locomo": import_locomo}
"""By the FORMAT of ``comis-eval import FORMAT SOURCE --out DIR``."""

__all__ = ["IMPORTERS", "Count", "ImportReport", "Note", "import_locomo"]
