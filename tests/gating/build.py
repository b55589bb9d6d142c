"""Evaluations by hand: values are written down, nothing is ranked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.evaluation import Evaluation
from comis_eval.evaluation.weights import weights_of
from comis_eval.metrics import ALL, Mean, parse

NEVER = ("policy_leak", "scope_leak", "laundered", "resurrected")


def evaluation(
    values: Mapping[str, Sequence[float] | NDArray[np.float64]],
    *,
    groups: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
    query_ids: Sequence[str] | None = None,
    **fields: Any,
) -> Evaluation:
    """An evaluation with these values, and zeros for what must be 0.

    NaN is undefined. Every query is a group of its own and of category ``x`` unless said
    otherwise.
    """
    columns = {name: np.array(column, dtype=np.float64) for name, column in values.items()}
    n = len(next(iter(columns.values())))
    for name in NEVER:
        columns.setdefault(name, np.zeros(n))
    ids = tuple(query_ids or (f"q{number:03}" for number in range(n)))
    named = tuple(categories or ("x",) * n)
    settings = {
        "k": [], "gain": "linear", "relevance_level": 1, "k0": 5, "c0": 4000,
        "headline": list(dict.fromkeys(named)),
        "utility": {"cost": 0.2, "unanswerableWeight": 0.1},
    }  # fmt: skip
    made = Evaluation(
        dataset={"name": "made", "version": "1", "fingerprint": "f" * 64, "split": "all"},
        pipeline="memory-recall",
        enforces=("trust", "scope"),
        config={},
        config_hash="c" * 64,
        versions={"python": "3.11"},
        seed=0,
        counts={"queries": n, "scored": n, "unanswerable": 0, "failed": 0, "unknown_ids": 0},
        lanes={"fts": n},
        latency_ms=None,
        settings=settings,
        query_ids=ids,
        groups=tuple(groups or ids),
        categories=named,
        values=columns,
        means={},
        references={},
        bounds={},
        leaks=(),
    )
    made = replace(made, **fields)
    return replace(made, means={ALL: {name: mean_of(made, name) for name in made.values}})


def mean_of(made: Evaluation, name: str) -> Mean:
    if parse(name).definition.reduce == "utility" and not _tells_answerable(made):
        return Mean(np.nan, 0)
    shares, column = weights_of(made, name), made.values[name]
    counted = (shares > 0) & ~np.isnan(column)
    if not counted.any():
        return Mean(np.nan, 0)
    if parse(name).definition.reduce == "total":
        return Mean(float(column[counted].sum()), int(counted.sum()))
    return Mean(float(np.average(column[counted], weights=shares[counted])), int(counted.sum()))


def _tells_answerable(made: Evaluation) -> bool:
    return any(parse(name).definition.queries.endswith("answerable") for name in made.values)
