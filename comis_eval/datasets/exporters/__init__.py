"""Exporters: from a dataset to the files of another format, whole or not at all."""

from __future__ import annotations

from comis_eval.datasets.exporters.base import Exporter, ExportReport, Loss
from comis_eval.datasets.exporters.beir import export_beir
from comis_eval.datasets.exporters.trec import export_trec

EXPORTERS: dict[str, Exporter] = {"trec": export_trec, "beir": export_beir}
"""By what ``comis-eval export DATASET --as`` says."""

__all__ = ["EXPORTERS", "ExportReport", "Exporter", "Loss", "export_beir", "export_trec"]
