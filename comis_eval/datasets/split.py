"""Which queries are for tuning, which for choosing, which for the one last test.

Groups are split, never queries, so that paraphrases of one fact stay together. Within
each category the groups stand in the order of a hash of (seed, group); the split is read
off each group's place in that line, shifted by a hash of (seed, category) so that small
categories are not always cut the same way. Two properties follow:

- every category gives each split its share to within one group;
- the split depends on the names of the groups alone. A query added to an existing group
  moves nothing (unless it changes which category is the group's most common); a new
  group moves at most one group of its own category over each boundary.

Sizes are counted in groups: a dataset of very unequal groups gets splits of unequal size.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from comis_eval.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from comis_eval.datasets.dataset import Dataset
    from comis_eval.types import Query

SPLITS = ("tune", "select", "test")
PROPORTIONS = (0.5, 0.25, 0.25)


def split_of(
    dataset: Dataset, seed: int, *, proportions: tuple[float, float, float] = PROPORTIONS
) -> NDArray[np.str_]:
    """Assign each query to tune, select or test.

    Args:
        dataset: Its ``splits``, when it fixes them, win over seed and proportions.
        seed: Any integer.
        proportions: Shares of tune, select and test, >= 0, summing to 1.

    Returns:
        One of ``SPLITS`` a query, shape (q,).
    """
    import numpy as np  # here, because the names of the splits alone need none of it

    split_by_group = {
        group: split for split, groups in dataset.splits.items() for group in groups
    } or _derived(dataset.queries, seed, proportions)
    return np.array([split_by_group[query.group] for query in dataset.queries], dtype=np.str_)


def folds_of(dataset: Dataset, count: int, seed: int) -> NDArray[np.intp]:
    """Deal each query's group to one of several folds, each category's groups in turn.

    Args:
        dataset: Its fixed ``splits`` play no part.
        count: How many folds, >= 2.
        seed: Any integer.

    Returns:
        A fold number a query, shape (q,), from 0.

    Raises:
        DatasetError: If there are fewer groups than folds.
    """
    import numpy as np

    strata = _strata(dataset.queries)
    groups = sum(map(len, strata.values()))
    if not 2 <= count <= groups:
        raise DatasetError(f"{dataset.name}: {count} folds need as many groups, there are {groups}")
    fold_by_group: dict[str, int] = {}
    for _, members in sorted(strata.items()):
        line = sorted(members, key=lambda group: (_hash(seed, "group", group), group))
        # Where one category's dealing stops the next one's goes on, so that folds of many
        # small categories come out even.
        start = len(fold_by_group)
        fold_by_group |= {group: (start + place) % count for place, group in enumerate(line)}
    return np.array([fold_by_group[query.group] for query in dataset.queries], dtype=np.intp)


def _derived(
    queries: Sequence[Query], seed: int, proportions: tuple[float, float, float]
) -> dict[str, str]:
    """Read each group's split off its place within its category."""
    import numpy as np

    bounds = np.cumsum(proportions)
    if not (min(proportions) >= 0 and abs(bounds[-1] - 1) < 1e-9):
        raise ValueError(f"proportions must be >= 0 and sum to 1, got {proportions}")
    splits: dict[str, str] = {}
    for category, groups in _strata(queries).items():
        line = sorted(groups, key=lambda group: (_hash(seed, "group", group), group))
        shift = _hash(seed, "category", category)
        places = (np.arange(len(line)) + shift) / len(line)
        chosen = np.minimum(np.searchsorted(bounds, places, side="right"), len(SPLITS) - 1)
        splits |= {group: SPLITS[split] for group, split in zip(line, chosen, strict=True)}
    return splits


def _strata(queries: Sequence[Query]) -> dict[str, list[str]]:
    """Put each group under its most common category, the first by name when several are."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for query in queries:
        counts[query.group][query.category] += 1
    strata: dict[str, list[str]] = defaultdict(list)
    for group, categories in counts.items():
        strata[min(categories, key=lambda name: (-categories[name], name))].append(group)
    return strata


def _hash(seed: int, kind: str, name: str) -> float:
    """Hash to [0, 1): the same on every machine, unlike Python's own hash."""
    digest = sha256(f"{seed}\0{kind}\0{name}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48
