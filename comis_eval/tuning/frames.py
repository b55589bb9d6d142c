"""A sweep as a notebook shows it: its trials as a table, its outcome as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comis_eval.text import html_table, notebook_html, printable

if TYPE_CHECKING:
    import pandas as pd

    from comis_eval.tuning.result import StudyResult
    from comis_eval.tuning.sweep import SweepResult


def trials_frame(study: StudyResult) -> pd.DataFrame:
    """Every finished trial, by number.

    Returns:
        number (0: the current configuration), state, feasible, duplicate_of (missing: a
        point of its own), ms, then a column for each knob by its dotted path (None where
        it was not active) and each figure by its metric (NaN where undefined).
    """
    import pandas as pd

    records = study.trials
    knobs = [knob.path for knob in study.task.space.knobs]
    figures = dict.fromkeys(name for record in records for name in record.figures)
    columns: dict[str, object] = {
        "number": [record.number for record in records],
        "state": [record.state for record in records],
        "feasible": [record.feasible for record in records],
        "duplicate_of": pd.array([record.duplicate_of for record in records], dtype="Int64"),
        "ms": [record.ms for record in records],
        **{path: [record.params.get(path) for record in records] for path in knobs},
        **{
            name: [record.figures.get(name, float("nan")) for record in records] for name in figures
        },
    }
    return pd.DataFrame(columns)


def sweep_html(result: SweepResult) -> str:
    """The advice and its reasons, what it rests on, and the knobs that the winner moves."""
    study, looked = result.study, result.held_out
    names = ", ".join(objective.name for objective in study.objectives)
    counts = study.counts
    told = [
        f"{names} on {result.dataset.name} {result.dataset.fingerprint[:12]}, "
        f"{len(result.dataset.queries)} queries; {counts.run} of {counts.planned} trials, "
        f"{counts.distinct} distinct, {counts.infeasible} infeasible, {counts.failed} failed; "
        f"{result.sampler}, seed {result.seed}",
        *(f"- {printable(reason)}" for reason in result.decision.reasons),
    ]
    if looked is not None:
        found = looked.comparison
        told.append(
            f"held out ({looked.kind}): gain {found.mean:+.4f} [{found.low:+.4f}, "
            f"{found.high:+.4f}], p {found.p:.4f}, {found.n_queries} queries in "
            f"{found.n_groups} groups"
        )
    told += map(printable, result.notes)
    rows = []
    if result.winner is not None:
        standing = study.task.space.values_of(result.current)
        rows = [
            (path, printable(str(standing.get(path))), printable(str(value)))
            for path, value in result.winner.params.items()
            if standing.get(path) != value
        ]
    return notebook_html(
        f"Sweep {printable(result.name)}: {result.decision.sentence}",
        *told,
        html_table(["knob", "in use", "winner"], rows, texts=3),
    )
