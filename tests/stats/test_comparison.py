"""The record a comparison prints, put together from parts tested on their own."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from comis_eval.errors import MetricError
from comis_eval.stats import (
    bootstrap_ci,
    cohens_dz,
    compare,
    needed_n,
    paired_t,
    permutation_test,
)

NAN = np.nan


@pytest.fixture(scope="module")
def drawn():
    """Differences of two metrics, groups of two queries, weights and categories."""
    rng = np.random.default_rng(0)
    differences = rng.normal([0.1, 0.0], 0.3, size=(80, 2))
    differences[5, 1] = NAN
    category = np.repeat(["x", "y"], [60, 20])
    weights = np.where(category == "x", 0.5 / 60, 0.5 / 20)
    return differences, np.arange(80) // 2, weights, category


def test_a_record_holds_what_each_part_says(drawn):
    differences, groups, weights, _ = drawn
    ends = bootstrap_ci(*drawn, seed=3)
    p = permutation_test(differences, groups, weights, seed=3)

    for column, record in enumerate(compare(*drawn, margins=[0.02, 0.0], seed=3)):
        assert record.mean == pytest.approx(
            np.ma.average(np.ma.masked_invalid(differences[:, column]), weights=weights)
        )
        assert (record.low, record.high) == (ends.low[column], ends.high[column])
        assert record.interval == "bca"
        assert record.p == p[column]
        assert record.p_t == paired_t(differences, groups, weights)[column]
        assert record.dz == cohens_dz(differences, groups, weights)[column]
        assert record.agree


def test_counts_and_plans_are_by_group(drawn):
    gated, reported = compare(*drawn, margins=[0.02, 0.0])

    assert (gated.n_queries, gated.n_groups) == (80, 40)
    assert (reported.n_queries, reported.n_groups) == (79, 40)
    assert gated.n_for_margin == needed_n(gated.mean / gated.dz, 0.02)
    assert gated.queries_for_margin == 2 * gated.n_for_margin
    assert (reported.n_for_margin, reported.queries_for_margin) == (None, None)


def test_what_did_not_change(drawn):
    [record] = compare(np.zeros(80), *drawn[1:], margins=0.02)

    assert (record.mean, record.low, record.high, record.p, record.p_t) == (0, 0, 0, 1, 1)
    assert (record.interval, record.agree) == ("unchanged", True)
    assert (record.n_for_margin, record.queries_for_margin) == (None, None)
    assert np.isnan([record.dz, record.mdd]).all()


def test_a_metric_without_pairs_is_undefined(drawn):
    [record] = compare(np.full(80, NAN), *drawn[1:])

    assert (record.n_queries, record.n_groups, record.interval) == (0, 0, "undefined")
    assert np.isnan([record.mean, record.low, record.high, record.p, record.p_t]).all()


def test_tests_that_disagree_are_flagged():
    # Three equal changes: 2 of 8 flips reach them, while t has no spread and is infinite.
    [record] = compare(np.ones(3), [1, 2, 3])

    assert (record.p, record.agree) == (0.25, False)


def test_records_cannot_change(drawn):
    [record] = compare(drawn[0][:, 0], drawn[1])

    with pytest.raises(FrozenInstanceError):
        record.p = 0.0


@pytest.mark.parametrize("margins", [-0.1, NAN, [0.1, 0.1, 0.1]])
def test_margins_out_of_range_are_named(drawn, margins):
    with pytest.raises(MetricError, match="margins must be >= 0, one or 2 of them"):
        compare(*drawn, margins=margins)
