from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.datasets import SPLITS, Dataset, Judgments, folds_of, split_of
from comis_eval.errors import DatasetError
from comis_eval.types import Query
from tests.datasets.strategies import datasets


def dataset(queries: list[tuple[str, str]], **changes) -> Dataset:
    """Make a dataset of (group, category) queries, and no memories."""
    return Dataset(
        name="d",
        memories=(),
        queries=tuple(
            Query(id=f"q{n}", text="t", now=0, group=group, category=category)
            for n, (group, category) in enumerate(queries)
        ),
        judgments=Judgments.of([], n_queries=len(queries)),
        **changes,
    )


def by_group(queries: list[tuple[str, str]], seed: int) -> dict[str, str]:
    splits = split_of(dataset(queries), seed)
    return {group: str(split) for (group, _), split in zip(queries, splits, strict=True)}


QUERIES = st.lists(
    st.tuples(st.sampled_from([f"g{n}" for n in range(40)]), st.sampled_from("abc")), min_size=1
)


def test_the_assignment_is_pinned():
    # Written down once: another machine, version or order of lines must give the same.
    queries = [(f"g{n}", "a" if n < 8 else "b") for n in range(12)]
    expected = by_group(queries, 7)
    assert Counter(expected.values()).total() == 12
    assert by_group(queries[::-1], 7) == expected
    assert "".join(expected[f"g{n}"][1] for n in range(12)) == "uueueueeeuue"


def test_each_category_gives_each_split_its_share():
    queries = [
        (f"{c}{n}", c) for c, size in {"a": 100, "b": 40, "c": 8}.items() for n in range(size)
    ]
    splits = split_of(dataset(queries), 3)
    for category, sizes in {"a": (50, 25, 25), "b": (20, 10, 10), "c": (4, 2, 2)}.items():
        counts = Counter(s for s, (_, c) in zip(splits, queries, strict=True) if c == category)
        assert tuple(counts[split] for split in SPLITS) == sizes


@given(queries=QUERIES, seed=st.integers())
def test_a_group_is_never_parted_and_shares_are_exact_to_a_group(queries, seed):
    splits = split_of(dataset(queries), seed)
    seen: dict[str, set[str]] = {}
    for (group, _), split in zip(queries, splits, strict=True):
        seen.setdefault(group, set()).add(str(split))
    assert all(len(split) == 1 for split in seen.values())
    assert set(splits) <= set(SPLITS)
    if len({category for _, category in queries}) == 1:
        for split, share in zip(SPLITS, (0.5, 0.25, 0.25), strict=True):
            assert abs(sum(s == {split} for s in seen.values()) - share * len(seen)) < 1 + 1e-9


@given(queries=QUERIES, seed=st.integers(0, 9))
def test_a_query_more_in_a_group_moves_no_group(queries, seed):
    before = by_group(queries, seed)
    group, category = queries[0]
    mine = Counter(c for g, c in queries if g == group)
    if max(mine, key=lambda name: (mine[name], -ord(name))) == category:
        assert by_group([*queries, (group, category)], seed) == before


@given(size=st.integers(1, 60), seed=st.integers(0, 99))
@settings(max_examples=50)
def test_a_new_group_moves_at_most_one_group_over_each_boundary(size, seed):
    queries = [(f"g{n}", "a") for n in range(size)] + [("other", "b")]
    before = by_group(queries, seed)
    after = by_group([*queries, ("new", "a")], seed)
    moved = Counter((before[g], after[g]) for g in before if before[g] != after[g])
    assert moved.total() <= 2
    assert before["other"] == after["other"]


def test_seeds_differ_and_small_categories_are_not_always_cut_the_same_way():
    queries = [(f"g{n}", "a") for n in range(40)]
    assert by_group(queries, 1) != by_group(queries, 2)
    lone = Counter(by_group([("only", "a")], seed)["only"] for seed in range(400))
    assert all(abs(lone[s] / 400 - p) < 0.1 for s, p in zip(SPLITS, (0.5, 0.25, 0.25), strict=True))


def test_fixed_splits_win_over_the_seed():
    fixed = dataset([("a", "c"), ("b", "c")], splits={"tune": ("b",), "test": ("a",)})
    assert split_of(fixed, 1).tolist() == split_of(fixed, 2).tolist() == ["test", "tune"]


def test_proportions_must_sum_to_one():
    queries = dataset([(f"g{n}", "a") for n in range(10)])
    assert Counter(split_of(queries, 0, proportions=(0.2, 0.0, 0.8)).tolist()) == {
        "tune": 2,
        "test": 8,
    }
    with pytest.raises(ValueError, match="proportions must be >= 0 and sum to 1"):
        split_of(queries, 0, proportions=(0.5, 0.5, 0.5))
    with pytest.raises(ValueError, match="proportions"):
        split_of(queries, 0, proportions=(np.nan, 0.5, 0.5))


@given(datasets(), st.integers(2, 5), st.integers(0, 3))
def test_folds_never_part_a_group_and_differ_by_one_group_at_most(
    dataset: Dataset, count: int, seed: int
) -> None:
    groups = {query.group for query in dataset.queries}
    if len(groups) < count:
        with pytest.raises(DatasetError, match=f"{count} folds need as many groups"):
            folds_of(dataset, count, seed)
        return
    folds = folds_of(dataset, count, seed)
    of_group = {(query.group, fold) for query, fold in zip(dataset.queries, folds, strict=True)}
    assert len(of_group) == len(groups)
    sizes = np.bincount([fold for _, fold in of_group], minlength=count)
    assert sizes.max() - sizes.min() <= 1
