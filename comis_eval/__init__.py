"""Measure, explain and tune the memory recall of agents.

::

    from comis_eval import evaluate, load_dataset
    measured = evaluate(load_dataset("datasets/starter"))
    print(measured.summary())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comis_eval.comparison import compare
    from comis_eval.config import Config, RagConfig
    from comis_eval.config_file import load_config
    from comis_eval.datasets import Dataset, load_dataset
    from comis_eval.datasets.attacking import attack
    from comis_eval.errors import ComisEvalError
    from comis_eval.evaluation import (
        AttackFigures,
        Evaluation,
        attack_frame,
        evaluate,
        measure_attacks,
    )
    from comis_eval.gating import Verdict, gate
    from comis_eval.pipelines.memory_recall import MemoryRecall
    from comis_eval.pipelines.recall_tool import RecallTool
    from comis_eval.tuning.sweep import SweepPlan, SweepResult, sweep
    from comis_eval.tuning.whatif import WhatIf
    from comis_eval.types import Memory, Query, RecallResult, Tenancy, TrustLevel

_HOMES = {
    "AttackFigures": "comis_eval.evaluation",
    "ComisEvalError": "comis_eval.errors",
    "Config": "comis_eval.config",
    "Dataset": "comis_eval.datasets",
    "Evaluation": "comis_eval.evaluation",
    "Memory": "comis_eval.types",
    "MemoryRecall": "comis_eval.pipelines.memory_recall",
    "Query": "comis_eval.types",
    "RagConfig": "comis_eval.config",
    "RecallResult": "comis_eval.types",
    "RecallTool": "comis_eval.pipelines.recall_tool",
    "SweepPlan": "comis_eval.tuning.sweep",
    "SweepResult": "comis_eval.tuning.sweep",
    "Tenancy": "comis_eval.types",
    "TrustLevel": "comis_eval.types",
    "Verdict": "comis_eval.gating",
    "WhatIf": "comis_eval.tuning.whatif",
    "attack": "comis_eval.datasets.attacking",
    "attack_frame": "comis_eval.evaluation",
    "compare": "comis_eval.comparison",
    "evaluate": "comis_eval.evaluation",
    "gate": "comis_eval.gating",
    "load_config": "comis_eval.config_file",
    "load_dataset": "comis_eval.datasets",
    "measure_attacks": "comis_eval.evaluation",
    "sweep": "comis_eval.tuning.sweep",
}
"""Where each public name lives: a name is imported when it is first used."""

__all__ = [
    "AttackFigures",
    "ComisEvalError",
    "Config",
    "Dataset",
    "Evaluation",
    "Memory",
    "MemoryRecall",
    "Query",
    "RagConfig",
    "RecallResult",
    "RecallTool",
    "SweepPlan",
    "SweepResult",
    "Tenancy",
    "TrustLevel",
    "Verdict",
    "WhatIf",
    "attack",
    "attack_frame",
    "compare",
    "evaluate",
    "gate",
    "load_config",
    "load_dataset",
    "measure_attacks",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
