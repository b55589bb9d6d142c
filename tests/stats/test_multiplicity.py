"""Correction for many columns: by hand, from the definition, and in simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import MetricError
from comis_eval.stats import holm, max_t, permutation_test

NAN = np.nan
UNTIMED = settings(derandomize=True, deadline=None, max_examples=60)
TABLES = st.integers(1, 4).flatmap(
    lambda m: st.lists(st.lists(st.integers(-3, 3), min_size=m, max_size=m), min_size=2, max_size=6)
)


def corrected(differences, **options):
    return max_t(np.array(differences, dtype=float), range(len(differences)), **options)


def defined_by_loops(differences, turn):
    """Westfall and Young's step-down, one flip and one column at a time."""
    table = np.array(differences, dtype=float)
    norm = np.sqrt(np.square(table).sum(axis=0))
    live = [j for j in range(table.shape[1]) if norm[j] > 0]

    def score(signs, j):
        return turn(sum(s * d for s, d in zip(signs, table[:, j], strict=True)) / norm[j])

    flips = list(product((1, -1), repeat=len(table)))
    ordered = sorted(live, key=lambda j: -score(flips[0], j))
    p, floor = [1.0] * table.shape[1], 0.0
    for at, j in enumerate(ordered):
        most = [max(score(signs, k) for k in ordered[at:]) for signs in flips]
        floor = max(floor, np.mean([m >= score(flips[0], j) - 1e-9 for m in most]))
        p[j] = floor
    return p


def test_holm_worked_by_hand():
    # 0.01 x 3; 0.03 x 2; then 0.04 x 1, lifted to the 0.06 before it.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])


def test_holm_stops_at_one_and_leaves_out_what_was_not_tested():
    np.testing.assert_array_equal(holm([0.6, NAN, 0.7]), [1.0, NAN, 1.0])
    assert holm([]).shape == (0,)


def test_holm_names_a_p_out_of_range():
    with pytest.raises(MetricError, match=r"\[0, 1\], got 1.5 at 1"):
        holm([0.5, 1.5])


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8))
@UNTIMED
def test_holm_lies_between_the_raw_p_and_bonferroni(p):
    adjusted = holm(p)

    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(np.array(p) * len(p), 1.0)).all()
    assert (adjusted[np.argsort(p)] == np.sort(adjusted)).all()


def test_equal_columns_cost_nothing():
    assert corrected([[1, 1], [1, 1], [1, 1]]).tolist() == [0.25, 0.25]


def test_step_down_worked_by_hand():
    # Over the four flips column 0 scores 2/sqrt 2 = 1.41 twice, 0 twice; column 1, |1| always.
    # Column 0 against the larger of both: 2 of 4. Column 1 against itself alone: 4 of 4.
    assert corrected([[1, 1], [1, 0]]).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("alternative", "turn"),
    [("two-sided", abs), ("greater", lambda t: t), ("less", lambda t: -t)],
)
@given(table=TABLES)
@UNTIMED
def test_max_t_equals_its_definition(alternative, turn, table):
    np.testing.assert_allclose(
        corrected(table, alternative=alternative), defined_by_loops(table, turn)
    )


def test_one_column_is_the_plain_test():
    differences = np.random.default_rng(0).normal(0.2, 1.0, size=(50, 1))

    p = permutation_test(differences, range(50), flips=499)

    assert corrected(differences, flips=499).tolist() == p.tolist()


def test_columns_without_change_or_pairs_take_no_part():
    rng = np.random.default_rng(0)
    differences = rng.normal(0.2, 1.0, size=(50, 2))
    idle = np.stack([np.zeros(50), np.full(50, NAN)], axis=1)

    p = corrected(np.concatenate([idle, differences], axis=1), flips=499)

    assert p[0] == 1.0
    assert np.isnan(p[1])
    assert p[2:].tolist() == corrected(differences, flips=499).tolist()
    assert corrected(idle).tolist()[0] == 1.0


def test_scaling_a_column_changes_nothing():
    differences = np.random.default_rng(1).normal(0.3, 1.0, size=(60, 3))

    for scale in (4000.0, 1e-200, 1e200):
        scaled = differences * np.array([1.0, scale, 1.0])
        assert corrected(scaled, flips=499).tolist() == corrected(differences, flips=499).tolist()


def test_the_order_of_columns_changes_nothing():
    differences = np.random.default_rng(2).normal(0.3, 1.0, size=(60, 4))
    order = [2, 0, 3, 1]

    assert corrected(differences[:, order]).tolist() == corrected(differences)[order].tolist()


def test_corrected_lies_above_raw():
    differences = np.random.default_rng(3).normal(0.2, 1.0, size=(60, 6))

    raw = permutation_test(differences, range(60), flips=999)

    assert (corrected(differences, flips=999) >= raw).all()


@pytest.mark.slow
def test_family_wise_error_of_eighteen_columns_in_groups_of_four():
    """3 metrics x 6 slices, no true change: at most 7% of 500 builds alarm at a 5% level."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(90), 4)
    slices = np.repeat(np.arange(90) % 6, 4)
    outside = slices[:, np.newaxis] != np.arange(6)
    alarms = 0
    for seed in range(500):
        moved = np.repeat(rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=(90, 3)), 4, axis=0)
        metrics = moved * rng.uniform(0.5, 1.0, size=(360, 3))
        columns = [np.where(outside, metrics[:, [k]], NAN) for k in range(3)]
        p = max_t(np.concatenate(columns, axis=1), groups, flips=499, seed=seed)
        alarms += np.nanmin(p) <= 0.05

    assert alarms / 500 <= 0.07


def test_a_column_of_large_values_does_not_drown_a_real_effect():
    """nDCG gains 0.1 with a spread of 0.35; context_chars wanders by 800, without meaning."""
    rng = np.random.default_rng(0)
    found = 0
    for seed in range(200):
        ndcg, chars = rng.normal(0.1, 0.35, size=100), rng.normal(0.0, 800.0, size=100)
        found += corrected(np.stack([ndcg, chars], axis=1), flips=499, seed=seed)[0] <= 0.05

    # z = 0.1 / 0.035 = 2.86 against 2.24 for the better of two: 73%.
    assert found / 200 >= 0.65
