"""Which queries a search may see, and the one look at those it may not."""

from dataclasses import replace

import numpy as np
import pytest

from comis_eval.datasets import folds_of
from comis_eval.errors import StudyError
from comis_eval.stats import compare
from comis_eval.tuning.confirm import choose
from comis_eval.tuning.holdout import FOLDS, chosen, held_out, parts_of, spread_of_folds
from comis_eval.tuning.replay import objectives_of
from comis_eval.tuning.select import SMALL
from comis_eval.tuning.study import run_study
from tests.tuning.worlds import ALPHAS, FTS, bench, cut_in_three, stale

OBJECTIVE = objectives_of(["utility"])


def searched(replay, trials=12, seed=0):
    return run_study(
        replay, ALPHAS, FTS, objectives=OBJECTIVE, trials=trials, seed=seed, sampler="random"
    )


@pytest.fixture(scope="module")
def small():
    return bench(stale(24), ALPHAS)


# --- parts --------------------------------------------------------------------------------


def test_small_sets_are_not_cut():
    assert parts_of(stale(40), 0) is None
    assert parts_of(stale(SMALL - 1, twice=False, width=4), 0) is None


def test_large_sets_are_cut_in_three_by_group():
    dataset = stale(SMALL // 2, width=4)
    assert len(dataset.queries) == SMALL
    parts = parts_of(dataset, 0)
    assert list(parts) == ["tune", "select", "test"]
    together = np.concatenate(list(parts.values()))
    assert sorted(together.tolist()) == list(range(SMALL))
    groups = [{dataset.queries[at].group for at in positions} for positions in parts.values()]
    assert sum(map(len, groups)) == SMALL // 2  # no group is in two of them
    assert [len(part) for part in groups] == pytest.approx([375, 187, 188], abs=2)
    other = parts_of(dataset, 1)
    assert other["test"].tolist() != parts["test"].tolist()


def test_splits_that_a_dataset_fixes_hold_whatever_its_size():
    dataset = cut_in_three(stale(8))
    parts = parts_of(dataset, 0)
    assert {name: [dataset.queries[i].group for i in part] for name, part in parts.items()} == {
        "tune": ["g0", "g0", "g2", "g2", "g4", "g4", "g6", "g6"],
        "select": ["g1", "g1", "g5", "g5"],
        "test": ["g3", "g3", "g7", "g7"],
    }
    assert parts_of(dataset, 5)["test"].tolist() == parts["test"].tolist()


def test_a_split_that_is_missing_is_named():
    dataset = replace(stale(2), splits={"tune": ("g0",), "select": ("g1",), "test": ()})
    with pytest.raises(StudyError, match="stale: no query falls into test; a sweep needs all"):
        parts_of(dataset, 0)


# --- the one look -------------------------------------------------------------------------


def test_a_test_split_is_looked_at_with_the_winner_of_the_others():
    whole = bench(cut_in_three(stale(24)), ALPHAS)
    parts = parts_of(whole.dataset, 0)
    study = searched(whole.replay(parts["tune"]))
    choice = chosen(whole, study, parts, 0)
    assert choice == choose(
        study,
        whole.replay(parts["tune"]),
        whole.groups[parts["tune"]],
        select=whole.replay(parts["select"]),
        select_groups=whole.groups[parts["select"]],
        seed=0,
    )

    def never(replay, fold):
        raise AssertionError("a set with a test split is not searched again")

    looked = held_out(whole, study, choice, parts, seed=0, opened_before=3, search_again=never)
    assert (looked.kind, looked.opened_before) == ("test", 3)
    assert looked.winners == (study.trial(choice.number).params,)
    on_test = whole.replay(parts["test"])
    gain = on_test(study.config(choice.number)).per_query - on_test(FTS).per_query
    assert looked.comparison.mean == pytest.approx(float(gain @ on_test.query_weights))
    assert (looked.comparison.n_queries, looked.comparison.n_groups) == (12, 6)
    assert {name: row["n"] for name, row in looked.per_category.items()} == {"new": 6, "newer": 6}


def test_a_small_set_is_answered_by_searches_that_never_saw_the_query(small):
    study = searched(small.replay())
    choice = chosen(small, study, None, 0)
    folds = folds_of(small.dataset, FOLDS, 0)
    seen, found = [], []

    def again(replay, fold):
        seen.append([query.id for query in replay.table.queries])
        found.append(searched(replay, seed=1 + fold))
        return found[-1]

    looked = held_out(small, study, choice, None, seed=0, opened_before=0, search_again=again)
    assert looked.kind == "folds"
    assert looked.comparison.n_queries == len(small.dataset.queries)
    ids = np.array([query.id for query in small.dataset.queries])
    expected = np.empty(len(ids))
    for fold in range(FOLDS):
        assert seen[fold] == ids[folds != fold].tolist()
        tune = small.replay(np.flatnonzero(folds != fold))
        won = choose(found[fold], tune, small.groups[folds != fold], select=None, seed=0).number
        assert looked.winners[fold] == found[fold].trial(won).params
        expected[folds == fold] = small.replay()(found[fold].config(won)).per_query[folds == fold]
    standing = small.replay()
    gain = expected - standing(FTS).per_query
    assert looked.comparison.mean == pytest.approx(float(gain @ standing.query_weights))
    independent = compare(gain, small.groups, standing.query_weights, small.categories, seed=0)[0]
    width = looked.comparison.high - looked.comparison.low
    assert width == pytest.approx(
        spread_of_folds(FOLDS) * (independent.high - independent.low), rel=0.05
    )
    assert looked.comparison.p_t > independent.p_t


def test_the_error_of_folds_is_larger_the_more_they_share():
    # Of two halves one is tested on half the queries: variance 1 + 1 x 1/2.
    assert spread_of_folds(2) ** 2 == pytest.approx(1.5)
    assert spread_of_folds(5) ** 2 == pytest.approx(1.8)


def test_there_are_no_more_folds_than_groups():
    tiny = bench(stale(3), ALPHAS)
    study = searched(tiny.replay(), trials=3)
    calls = []

    def again(replay, fold):
        calls.append(fold)
        return searched(replay, trials=3)

    choice = chosen(tiny, study, None, 0)
    held_out(tiny, study, choice, None, seed=0, opened_before=0, search_again=again)
    assert calls == [0, 1, 2]
