"""The record of one evaluation: every value per query, and what is needed to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from comis_eval.candidates import Rankings
from comis_eval.metrics import Mean, Values
from comis_eval.text import html_table, notebook_html, printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """What was measured, on what, and with which settings.

    Attributes:
        dataset: name, version, fingerprint, split of the queries.
        pipeline: Name of the pipeline.
        enforces: Kinds of leak that the pipeline promises to prevent.
        config: The whole configuration, as a file would hold it.
        config_hash: sha256 over it.
        versions: Of Python, this package and what figures depend on.
        seed: Of the split and the random reference.
        counts: queries, scored, unanswerable, failed, unknown_ids.
        lanes: For how many queries each lane that ran returned anything.
        latency_ms: p50, p95, p99 of a live system; None for a pipeline in this process.
        settings: k's, gain, relevance_level, k0, c0, headline categories, utility constants.
        query_ids, groups, categories: One a query.
        values: By metric, one value a query, NaN where undefined.
        means: By category (``all`` first), then by metric.
        references: By reference row, then by metric: the figure of ``all``.
        bounds: Exact one-sided 95% upper bound of each leak rate.
        leaks: Every memory that the policy keeps out and the context held.
        notes: What a reader must know: cut-offs beyond the lists, rows left out.
        rankings: What ranking gave; None for an evaluation read from a file.
        trace: Name and sha256 of the trace file, once written.
    """

    dataset: Mapping[str, str]
    pipeline: str
    enforces: tuple[str, ...]
    config: Mapping[str, Any]
    config_hash: str
    versions: Mapping[str, str]
    seed: int
    counts: Mapping[str, int]
    lanes: Mapping[str, int]
    latency_ms: Mapping[str, float] | None
    settings: Mapping[str, Any]
    query_ids: tuple[str, ...]
    groups: tuple[str, ...]
    categories: tuple[str, ...]
    values: Mapping[str, Values]
    means: Mapping[str, Mapping[str, Mean]]
    references: Mapping[str, Mapping[str, Mean]]
    bounds: Mapping[str, float]
    leaks: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()
    rankings: Rankings | None = None
    trace: Mapping[str, str] | None = None

    def mean(self, metric: str, category: str = "all") -> float:
        """One figure, NaN when it is undefined."""
        return self.means[category][metric].value

    @property
    def dead_lanes(self) -> tuple[str, ...]:
        """Lanes that ran and returned nothing for every query."""
        return tuple(lane for lane, queries in self.lanes.items() if queries == 0)

    def rows(self) -> pd.DataFrame:
        """Values as long rows: query_id, group, category, metric, value (NaN: undefined)."""
        import pandas as pd

        frames = [
            pd.DataFrame(
                {
                    "query_id": self.query_ids,
                    "group": self.groups,
                    "category": self.categories,
                    "metric": metric,
                    "value": values,
                }
            )
            for metric, values in self.values.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def summary(self) -> pd.DataFrame:
        """Figures as long rows: category, metric, value, n; reference rows among them."""
        import pandas as pd

        named = {**self.means, **{f"ref:{name}": row for name, row in self.references.items()}}
        return pd.DataFrame(
            [
                {"category": category, "metric": metric, "value": mean.value, "n": mean.n}
                for category, row in named.items()
                for metric, mean in row.items()
            ]
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: every figure beside the reference rows, and what to know."""
        named = {"all": self.means["all"], **self.references}
        body = [
            (printable(metric), str(mean.n), *(_figure(row.get(metric)) for row in named.values()))
            for metric, mean in self.means["all"].items()
        ]
        data = self.dataset
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        warnings = [
            *(f"lane {printable(lane)} is dead: no query has a hit" for lane in self.dead_lanes),
            *([f"{len(self.leaks)} leaks: see .leaks"] if self.leaks else []),
            *map(printable, self.notes),
        ]
        columns = ["metric", "n", "value", *map(printable, self.references)]
        return notebook_html(
            printable(f"{self.pipeline} on {data['name']} {data['version']}, {data['split']}"),
            f"config {self.config_hash[:12]}, dataset {data['fingerprint'][:12]}, "
            f"seed {self.seed}; {counts}",
            *warnings,
            html_table(columns, body),
        )

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{name} {mean.value:.3f}"
            for name, mean in self.means["all"].items()
            if name in ("ndcg@10", "recall@5", "utility") and not np.isnan(mean.value)
        )
        return f"<Evaluation of {self.pipeline} on {self.dataset['name']}: {figures}>"


def _figure(mean: Mean | None) -> str:
    """A figure with three decimals, a dash where it is undefined: that is not 0."""
    return "-" if mean is None or np.isnan(mean.value) else f"{mean.value:.3f}"
