"""Which queries the search may see, and the one look at those it may not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets import Dataset, folds_of, split_of
from comis_eval.errors import StudyError
from comis_eval.stats import Comparison, compare
from comis_eval.tuning.confirm import MARGIN, Choice, by_category, choose, widened
from comis_eval.tuning.knob import Value
from comis_eval.tuning.parts import Bench
from comis_eval.tuning.replay import Replay
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.select import SMALL

FOLDS = 5
"""How often a small set is searched again without a part of it."""


def spread_of_folds(count: int) -> float:
    """By how much the error of fold results is larger than that of as many independent ones.

    Searches that share most of their queries find the same by luck: what part i says of a
    winner depends on part j, which helped to choose it, and the other way round. Their
    correlation is taken to be 1 / count, the share of the queries that each is tested on,
    so that the variance is 1 + (count - 1) / count times that of independent parts. On
    labels that say nothing we found 1.45 with five parts (the formula: 1.8), and without it
    7 of 100 sweeps adopted (tests/tuning/test_null.py).

    Source: Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52,
    2003; that nothing unbiased can be had: Bengio and Grandvalet, JMLR 5, 2004.
    """
    return sqrt(2 - 1 / count)


Parts = Mapping[str, NDArray[np.intp]]
"""Positions of the queries of each split."""


class HeldOut(NamedTuple):
    """What queries outside the search said.

    Attributes:
        kind: ``test`` (a split opened once) or ``folds`` (searched again without each part).
        comparison: Winner against current; of ``folds``, the winners of the searches that
            never saw the query, with an error that allows for what these share.
        per_category: The same by category.
        opened_before: How often queries of this dataset were held out before.
        winners: The trial recommended; of ``folds``, one point a fold.
    """

    kind: str
    comparison: Comparison
    per_category: Mapping[str, Mapping[str, Any]]
    opened_before: int
    winners: tuple[Mapping[str, Value], ...]


def parts_of(dataset: Dataset, seed: int) -> Parts | None:
    """Positions of the queries of each split; None when the set is too small to be cut."""
    if len(dataset.queries) < SMALL and not dataset.splits:
        return None
    names = split_of(dataset, seed)
    parts = {name: np.flatnonzero(names == name) for name in ("tune", "select", "test")}
    empty = [name for name, positions in parts.items() if not len(positions)]
    if empty:
        raise StudyError(
            f"{dataset.name}: no query falls into {', '.join(empty)}; a sweep needs all three "
            "splits, or none fixed in dataset.yaml"
        )
    return parts


def chosen(bench: Bench, study: StudyResult, parts: Parts | None, seed: int) -> Choice:
    """Name a winner: by the ``select`` split, or by the tuning queries of a small set."""
    groups = bench.groups
    if parts is None:
        return choose(study, bench.replay(), groups, select=None, seed=seed)
    return choose(
        study,
        bench.replay(parts["tune"]),
        groups[parts["tune"]],
        select=bench.replay(parts["select"]),
        select_groups=groups[parts["select"]],
        seed=seed,
    )


def held_out(
    bench: Bench,
    study: StudyResult,
    choice: Choice,
    parts: Parts | None,
    *,
    seed: int,
    opened_before: int,
    search_again: Callable[[Replay, int], StudyResult],
) -> HeldOut:
    """Compare winner and current once on queries outside the search.

    Args:
        bench: All queries.
        study: What the search found.
        choice: Its winner.
        parts: The splits; None: every query is answered by a search that never saw it.
        seed: Of folds and tests.
        opened_before: How often queries of this dataset were held out before.
        search_again: Searches some queries anew; told the number of the part left out.
    """
    sign = study.objectives[0].sign
    if parts is not None:
        positions, replay = parts["test"], bench.replay(parts["test"])
        winner = replay(study.config(choice.number)).per_query
        standing, weights = replay(bench.current).per_query, replay.query_weights
        points: tuple[Mapping[str, Value], ...] = (study.trial(choice.number).params,)
    else:
        positions, whole = np.arange(len(bench.dataset.queries)), bench.replay()
        standing, weights = whole(bench.current).per_query, whole.query_weights
        winner, points = _searched_again(bench, search_again, seed)
    groups, categories = bench.groups[positions], bench.categories[positions]
    spread = 1.0 if parts is not None else spread_of_folds(len(points))
    gains = widened(sign * (winner - standing), weights, spread)
    comparison = compare(gains, groups, weights, categories, margins=MARGIN, seed=seed)[0]
    return HeldOut(
        "folds" if parts is None else "test",
        comparison,
        by_category(winner, standing, groups, categories, sign=sign, seed=seed, spread=spread),
        opened_before,
        points,
    )


def _searched_again(
    bench: Bench, search_again: Callable[[Replay, int], StudyResult], seed: int
) -> tuple[NDArray[np.float64], tuple[Mapping[str, Value], ...]]:
    """Search without each part of the queries and answer that part by the winner."""
    groups = bench.groups
    count = min(FOLDS, len(np.unique(groups)))
    folds = folds_of(bench.dataset, count, seed)
    answered = np.full(len(folds), np.nan)
    points = []
    for fold in range(count):
        seen, unseen = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        tune = bench.replay(seen)
        found = search_again(tune, fold)
        winner = choose(found, tune, groups[seen], select=None, seed=seed)
        answered[unseen] = bench.replay(unseen)(found.config(winner.number)).per_query
        points.append(found.trial(winner.number).params)
    return answered, tuple(points)
