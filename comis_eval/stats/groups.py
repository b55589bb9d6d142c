"""Paired differences collapsed to one weighted sum a group: the unit every test here acts on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Labels = Sequence[Hashable] | NDArray[Any]
"""One label a query, all of one kind that can be sorted: strings or ints."""

ROUNDING = 1e-12
"""Relative error of a sum that is put down to rounding: above the g x 1.1e-16 that adding g
terms can cost, far below any difference between two rankings."""


@dataclass(frozen=True, eq=False)
class GroupSums:
    """What each group adds to the mean difference of each column.

    A column is a metric, a slice or a trial. Groups stand in the order of their labels,
    so that the order of the queries changes nothing.
    """

    sums: Floats
    """Weighted differences, shape (g, m); a column adds up to its mean difference."""
    weights: Floats
    """Weights, shape (g, m); a column adds up to 1, or to 0 when it has no defined pair."""
    codes: Codes
    """Row of each query's group, shape (q,)."""
    n_queries: Codes
    """Pairs that are defined and weigh something, shape (m,)."""

    @property
    def n_groups(self) -> Codes:
        """Groups with such a pair, shape (m,)."""
        counted: Codes = np.count_nonzero(self.weights, axis=0)
        return counted

    @property
    def mean(self) -> Floats:
        """Weighted mean difference, shape (m,); NaN without a defined pair."""
        return np.where(self.n_queries > 0, self.sums.sum(axis=0), np.nan)


def group_sums(
    differences: Floats, groups: Labels, weights: Floats | Sequence[float] | None = None
) -> GroupSums:
    """Collapse differences per query to weighted sums per group.

    Paraphrases and turns of one fact move together, so a sign flip or a resample takes a
    whole group. A query without such company is a group of its own.

    Example: differences [1, 0, -1, NaN], groups [a, a, b, b], equal weights -> a third
    each for the three pairs that are defined: sums [1/3, -1/3], mean 0.

    Args:
        differences: Candidate minus baseline per query, higher is better, shape (q, m), or
            (q,) for one column; NaN where a pair is undefined.
        groups: Group of each query, shape (q,).
        weights: Weight of each query in the reported mean, >= 0, shape (q,) or (q, m); equal
            when None. Normalised per column over its defined pairs.

    Raises:
        MetricError: If shapes do not fit, a difference is infinite, or a weight is negative
            or not finite.
    """
    paired = np.asarray(differences, dtype=np.float64)
    if paired.ndim == 1:
        paired = paired[:, np.newaxis]
    if paired.ndim != 2:
        raise MetricError(f"differences need shape (queries, columns), got {paired.shape}")
    _refuse(np.isinf(paired), paired, "differences must be finite, or NaN where undefined")
    shares = _normalised(weights, paired)
    codes = label_codes(groups, len(paired), "group")

    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    moved = shares * np.where(np.isnan(paired), 0.0, paired)
    sums = _by_group(moved, order, starts)
    cancelled = np.abs(sums) <= ROUNDING * _by_group(np.abs(moved), order, starts)
    return GroupSums(
        sums=np.where(cancelled, 0.0, sums),
        weights=_by_group(shares, order, starts),
        codes=codes,
        n_queries=np.count_nonzero(shares, axis=0),
    )


def label_codes(labels: Labels, n: int, what: str) -> Codes:
    """Number labels 0, 1, ... in sorted order, shape (n,).

    Raises:
        MetricError: If there is not one label a query, or labels are of kinds that cannot be
            sorted together.
    """
    listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if len(listed) != n:
        raise MetricError(f"every query needs one {what}, got {len(listed)} for {n} queries")
    try:
        rank = {label: code for code, label in enumerate(sorted(set(listed)))}
    except TypeError as error:
        raise MetricError(f"{what} labels must all be of one kind, such as str: {error}") from error
    return np.fromiter((rank[label] for label in listed), dtype=np.intp, count=n)


def _normalised(weights: Floats | Sequence[float] | None, paired: Floats) -> Floats:
    """Return weights that add up to 1 over the defined pairs of each column, shape (q, m)."""
    given = np.ones(len(paired)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.ndim == 1:
        given = given[:, np.newaxis]
    if given.shape not in {paired.shape, (len(paired), 1)}:
        raise MetricError(
            f"weights need one row a query, and one column or one a column of differences: "
            f"got shape {given.shape} for {paired.shape}"
        )
    _refuse(~(given >= 0) | np.isinf(given), given, "weights must be finite and >= 0")
    counted = np.where(np.isnan(paired), 0.0, given)
    total = counted.sum(axis=0)
    shares: Floats = np.divide(counted, total, out=np.zeros_like(counted), where=total > 0)
    return shares


def _by_group(values: Floats, order: Codes, starts: Codes) -> Floats:
    if not len(starts):
        return np.zeros((0, values.shape[1]))
    return np.add.reduceat(values[order], starts, axis=0)


def _refuse(wrong: NDArray[np.bool_], values: Floats, rule: str) -> None:
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise MetricError(f"{rule}; got {values[row, column]} at query {row}, column {column}")
