"""What the query browser of a page shows: every stage, candidate and factor of every query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import FATES
from comis_eval.comparison import Parting
from comis_eval.evaluation import Evaluation
from comis_eval.report.direction import lower_is_better
from comis_eval.report.texts import Texts
from comis_eval.report.trace import FACTORS, Trace
from comis_eval.text import printable
from comis_eval.types import Fate, Memory, Query

_ID = 200
"""Most characters of an id that are shown."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FATE = {str(fate): number for number, fate in enumerate(FATES)}


_BEFORE_SCORING = (Fate.SCOPE_FILTERED, Fate.EXPIRED, Fate.BEYOND_LIMIT)


@dataclass(frozen=True, eq=False)
class Side:
    """One evaluation as the browser shows it; the trace may be missing."""

    name: str
    evaluation: Evaluation
    trace: Trace | None


@dataclass(frozen=True, eq=False)
class Browser:
    """Everything the browser needs, as plain values; no text unless it was asked for.

    Attributes:
        overview: What all queries share, and the list to choose from.
        memories: Ids of the memories that any query has as candidate, with their texts.
        queries: One a query, opened when it is chosen.
    """

    overview: Mapping[str, Any]
    memories: Mapping[str, Any]
    queries: tuple[Mapping[str, Any], ...]


def browser(
    sides: Sequence[Side],
    metrics: Sequence[str],
    main: str,
    texts: Texts | None = None,
    partings: Sequence[Parting | None] | None = None,
) -> Browser:
    """Lay out one or two evaluations of the same queries.

    Every text is made printable here: what hides, reorders or colours becomes a symbol.

    Args:
        sides: The evaluations, at least one with a trace.
        metrics: What is shown of each query.
        main: The metric that the list shows and is sorted by.
        texts: What the dataset adds; None: ids only.
        partings: Where each query's two ways part; None: not known.
    """
    first = sides[0].evaluation
    traces = [side.trace for side in sides if side.trace is not None]
    number_of = {
        memory_id: number
        for number, memory_id in enumerate(
            dict.fromkeys(memory_id for trace in traces for memory_id in trace.memory_ids)
        )
    }
    leaks = {leak.get("query_id") for side in sides for leak in side.evaluation.leaks}
    overview = {
        "sides": [side.name for side in sides],
        "main": main,
        "lower": lower_is_better(main),
        "metrics": list(metrics),
        "fates": [str(fate) for fate in FATES],
        "factors": list(FACTORS),
        "ids": [printable(query_id, limit=_ID) for query_id in first.query_ids],
        "categories": [printable(name, limit=_ID) for name in first.categories],
        "groups": [printable(name, limit=_ID) for name in first.groups],
        "values": [_nulls(_rounded(side.evaluation.values[main])) for side in sides],
        "leaks": [query_id in leaks for query_id in first.query_ids],
        "texts": None
        if texts is None
        else [_lines(texts.queries[query_id].text) for query_id in first.query_ids],
    }
    sides = [replace(side, trace=_readable(side.trace)) for side in sides]
    values = [
        _rounded(np.array([side.evaluation.values[name] for name in metrics])) for side in sides
    ]
    queries = [
        _query(sides, values, place, number_of, texts) for place in range(len(first.query_ids))
    ]
    for query, parting in zip(queries, partings or (), strict=False):
        query["parting"] = None if parting is None else [parting.stage, parting.what]
    return Browser(overview, _memories(list(number_of), texts), tuple(queries))


def _readable(trace: Trace | None) -> Trace | None:
    """The trace with its numbers rounded."""
    if trace is None:
        return None
    return replace(trace, numbers={name: _rounded(n) for name, n in trace.numbers.items()})


def _query(
    sides: Sequence[Side],
    values: Sequence[NDArray[np.float64]],
    place: int,
    number_of: Mapping[str, int],
    texts: Texts | None,
) -> dict[str, Any]:
    query_id = sides[0].evaluation.query_ids[place]
    told: dict[str, Any] = {
        "values": [_nulls(table[:, place]) for table in values],
        "sides": [
            None if s.trace is None else _side(s.trace, place, number_of, _floor(s.evaluation))
            for s in sides
        ],
    }
    if texts is not None:
        told |= _asked(texts.queries[query_id])
        told["grades"] = {
            str(number_of[memory_id]): grade
            for memory_id, grade in texts.grades[query_id].items()
            if memory_id in number_of
        }
        told["missed"] = [  # judged relevant, and no lane found it
            [printable(memory_id, limit=_ID), grade]
            for memory_id, grade in texts.grades[query_id].items()
            if grade > 0 and not _is_candidate(sides, place, memory_id)
        ]
    return told


def _is_candidate(sides: Sequence[Side], place: int, memory_id: str) -> bool:
    traces = [side.trace for side in sides if side.trace is not None]
    return any(memory_id in trace.memory_ids[trace.rows(place)] for trace in traces)


def _asked(query: Query) -> dict[str, Any]:
    return {
        "turns": [[printable(turn.role, limit=40), _lines(turn.text)] for turn in query.turns],
        "now": _day(query.now),
        "answerable": query.answerable,
    }


def _floor(evaluation: Evaluation) -> str:
    """The stage that applies minScore, by the configuration."""
    semantics = evaluation.config.get("semantics")
    on = semantics.get("minScoreOn") if isinstance(semantics, dict) else None
    return "score" if on == "final" else "fuse"


def _side(trace: Trace, place: int, number_of: Mapping[str, int], floor: str) -> dict[str, Any]:
    """One query's candidates as columns; a column of one value is that value alone."""
    rows = trace.rows(place)
    fates = trace.fates[rows]
    by = [None if one is None else printable(one, limit=_ID) for one in trace.deduped_by[rows]]
    return {
        "stages": _left_after(fates, floor),
        "memory": [number_of[memory_id] for memory_id in trace.memory_ids[rows]],
        "ranks": {lane: _shared(ranks[rows]) for lane, ranks in trace.ranks.items()},
        "fate": _shared(np.array([_FATE[fate] for fate in fates], dtype=np.int64)),
        "by": by if any(by) else None,
        **{name: _shared(column[rows]) for name, column in trace.numbers.items()},
    }


def _left_after(fates: Sequence[str], floor: str) -> list[list[Any]]:
    """How many candidates each stage left; ``floor`` is the stage that applies minScore."""
    gone_at = {
        "fuse": _BEFORE_SCORING,
        "rerank": (),
        "score": (),
        "trust": (Fate.TRUST_FILTERED,),
        "dedup": (Fate.DEDUPED,),
        "budget": (Fate.OVER_BUDGET, Fate.BEYOND_MAX_RESULTS),
    }
    left = len(fates)
    counts: list[list[Any]] = [["search", left]]
    for stage, gone in gone_at.items():
        here = (*gone, Fate.BELOW_MIN_SCORE) if stage == floor else gone
        left -= sum(fate in here for fate in fates)
        counts.append([stage, left])
    return counts


def _memories(ids: Sequence[str], texts: Texts | None) -> dict[str, Any]:
    told: dict[str, Any] = {"ids": [printable(memory_id, limit=_ID) for memory_id in ids]}
    if texts is not None:
        known = [texts.memories.get(memory_id) for memory_id in ids]
        told["content"] = [None if m is None else _lines(m.content) for m in known]
        told["trust"] = [None if m is None else str(m.trust_level) for m in known]
        told["about"] = [None if m is None else _about(m) for m in known]
    return told


def _about(memory: Memory) -> str:
    source = " via ".join(part for part in (memory.source.who, memory.source.channel) if part)
    parts = [str(memory.memory_type), f"written {_day(memory.created_at)}"]
    if memory.occurred_at is not None:
        parts.append(f"occurred {_day(memory.occurred_at)}")
    if memory.proof_count is not None:
        parts.append(f"proof {memory.proof_count}")
    return printable(", ".join([*parts, *([f"from {source}"] if source else [])]), limit=_ID)


def _lines(text: str) -> str:
    """Text with its line ends, every line of it printable."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _day(ms: int) -> str:
    try:
        return f"{_EPOCH + timedelta(milliseconds=ms):%Y-%m-%d}"
    except OverflowError:
        return f"{ms} ms"


def _shared(column: NDArray[Any]) -> Any:
    """A column as a list, NaN as null; one value for all stands alone."""
    if len(column) and (column == column[0]).all():
        return column[0].item()
    if column.dtype != np.float64:
        return column.tolist()
    return _nulls(column) if len(column) == 0 or not np.isnan(column).all() else None


def _nulls(values: NDArray[np.float64]) -> list[float | None]:
    listed: list[float | None] = values.tolist()
    for place in np.flatnonzero(np.isnan(values)).tolist():
        listed[place] = None
    return listed


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Six significant digits, which are more than the page shows."""
    magnitude = np.zeros(values.shape)
    np.log10(np.abs(values), out=magnitude, where=np.abs(values) > 0)
    power = np.power(10.0, np.clip(5 - np.floor(magnitude), 0, 15))
    rounded: NDArray[np.float64] = np.round(values * power) / power
    return rounded
