"""What a pipeline answered, made ready for the metrics; a live system's answers among them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from comis_eval.candidates import Rankings
from comis_eval.config import Config
from comis_eval.evaluation.inputs import Judge, Shown
from comis_eval.metrics import STAGES, Inputs, Metric, Objective
from comis_eval.pipelines.remote import Answer, Answers, Remote
from comis_eval.pipelines.retrieval import Progress
from comis_eval.text import printable

_INSIDE = ("over_block", "resurrected", *(f"unwanted_after_{stage}" for stage in STAGES))
"""Metrics of the way through the stages, which a live system does not show."""

_NAMED = 5

FAILED_NOTE = " queries failed, "
"""What the notes on failures have in common."""

_OF_THE_CALLER = ("{agentId}", "{tenantId}")


class Answered(NamedTuple):
    """What a pipeline answered.

    Attributes:
        name, enforces: As the pipeline says.
        inputs: Its answers, as metrics take them.
        metrics: Those that can be scored on them.
        notes: What a reader must know.
        lanes: For how many queries each lane that ran returned anything.
        rankings: How it came to its answers; None for a live system.
        alone: Gives the reference rows: by name, what one lane alone would have answered.
        latency_ms: Percentiles of a live system.
        unknown_ids: Results that name no memory of the dataset.
    """

    name: str
    enforces: tuple[str, ...]
    inputs: Inputs
    metrics: tuple[Metric, ...]
    notes: tuple[str, ...]
    lanes: Mapping[str, int]
    rankings: Rankings | None
    alone: Callable[[], Iterator[tuple[str, Rankings]]]
    latency_ms: Mapping[str, float] | None = None
    unknown_ids: int = 0


def remote(
    judge: Judge,
    config: Config,
    objective: Objective,
    metrics: Sequence[Metric],
    level: int,
    seed: int,
    progress: Progress | None,
) -> Answered:
    """Ask the live system and lay its answers out.

    What it returned is ranking and context in one: a caller gets the list as it is.

    Raises:
        RemoteError: If it cannot be reached at all.
    """
    pipeline = Remote(judge.dataset, config, seed=seed, progress=progress)
    queries = judge.dataset.queries
    answers = pipeline.answers(queries)
    rows = pipeline.rows(queries, answers)
    chars = np.zeros(rows.shape, dtype=np.int64)
    lengths = np.zeros(len(queries), dtype=np.int64)
    for position, one in enumerate(answers.of):
        if isinstance(one, Answer):
            lengths[position] = len(one.ids)
            chars[position, : len(one.chars)] = one.chars
    unknown = (rows < 0) & (np.arange(rows.shape[1]) < lengths[:, None])
    inputs = judge.shown_inputs(
        Shown(rows, rows, chars.sum(axis=1)),
        None,
        config,
        objective,
        level,
        chars=chars,
        lengths=lengths,
        failed=np.array([not isinstance(one, Answer) for one in answers.of], dtype=bool),
    )
    left_out = [metric for metric in metrics if metric.definition.name in _INSIDE]
    return Answered(
        pipeline.name,
        pipeline.enforces,
        inputs,
        tuple(metric for metric in metrics if metric not in left_out),
        (*_one_caller(judge, config), *_notes(judge, answers, unknown), *_unseen(left_out)),
        {},
        None,
        lambda: iter(()),
        answers.latency(),
        int(unknown.sum()),
    )


def _one_caller(judge: Judge, config: Config) -> Iterator[str]:
    """Say when queries of several agents were asked alike: most systems take one's own alone."""
    callers = Counter(query.tenancy.named for query in judge.dataset.queries)
    template = json.dumps(dict(config.harness.remote.arguments))
    if len(callers) > 1 and not any(name in template for name in _OF_THE_CALLER):
        told = ", ".join(
            f"{printable(tenant, limit=40)}/{printable(agent or '', limit=40)} {count}"
            for (tenant, agent), count in callers.most_common(_NAMED)
        )
        rest = ", ..." if len(callers) > _NAMED else ""
        yield (
            f"nothing that was sent says who asks, and the queries are of {len(callers)} agents "
            f"({told}{rest}): where a connection speaks for one agent, only its own queries are "
            "measured; a system that is told has {agentId} in harness.remote.arguments"
        )


def _notes(judge: Judge, answers: Answers, unknown: np.ndarray) -> Iterator[str]:
    queries = judge.dataset.queries
    for reason, positions in answers.failures.items():
        named = ", ".join(queries[position].id for position in positions)
        yield f"{len(positions)}{FAILED_NOTE}{reason}: {named}"
    again = sum(one.attempts > 1 for one in answers.of if isinstance(one, Answer))
    if again:
        yield f"{again} queries were answered after more than one attempt"
    if unknown.any():
        places = np.argwhere(unknown)[:_NAMED].tolist()
        told = ", ".join(
            f"'{printable(one.ids[column], limit=40)}' ({queries[position].id})"
            for position, column in places
            if isinstance(one := answers.of[position], Answer)
        )
        yield (
            f"{int(unknown.sum())} results name no memory of the dataset and count as unjudged, "
            f"first {told}; harness.remote.match and idField say how they are named"
        )


def _unseen(left_out: Sequence[Metric]) -> Iterator[str]:
    if left_out:
        yield "a live system does not show its stages: no " + ", ".join(m.name for m in left_out)
