"""Labelled query sets in which it is known what helps: keyword search, no models.

A topic has a word of its own, which its queries ask for and its memories hold beside words
that nobody asks for. Keyword search cannot tell such memories apart and leaves them in the
order in which they were written, the answer last.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tuning.knob import read_knob
from comis_eval.tuning.parts import Bench
from comis_eval.tuning.reach import coverage_of
from comis_eval.tuning.space import Space
from comis_eval.tuning.sweep import SweepPlan, SweepResult, sweep
from comis_eval.types import Memory, Query, TrustLevel
from tests.builders import DAY, NOW, memory, query

FTS = Config().evolve(**{"harness.lanes": ("fts",)})
"""The defaults with keyword search alone: no model is loaded."""

SHARE = {"low": 0, "high": 1}


def space(**ranges: object) -> Space:
    """Knobs by path, dots spelled as double underscores."""
    return Space.of(read_knob(path.replace("__", "."), given) for path, given in ranges.items())


ALPHAS = space(
    rag__scoring__recencyAlpha=SHARE,
    rag__scoring__temporalAlpha=SHARE,
    rag__scoring__proofAlpha=SHARE,
)
"""Knobs that reorder and do nothing else: with labels that mean nothing, none can help."""


def stale(topics: int, *, seed: int = 0, twice: bool = True, width: int = 9) -> Dataset:
    """Fresh answers behind stale look-alikes: the more recency counts, the better."""
    dice = np.random.default_rng(seed)
    memories: list[Memory] = []
    queries: list[Query] = []
    judged: list[tuple[int, int, int]] = []
    for topic in range(topics):
        # From two hours to four days: near enough for the default alpha to leave them apart.
        ages = np.sort(dice.uniform(0.1, 4, dice.integers(3, width)))[::-1]
        rows = range(len(memories), len(memories) + len(ages))
        memories += [
            memory(
                f"m{row}",
                f"w{seed}x{topic} n{row}",
                created_at=NOW - int(age * DAY),
                proof_count=int(dice.integers(1, 40)),
                confidence=0.9,
                occurred_at=NOW - int(dice.uniform(0, 60) * DAY),
            )
            for row, age in zip(rows, ages, strict=True)
        ]
        for turn in range(1 + twice):
            place = len(queries)
            queries.append(
                query(
                    f"w{seed}x{topic}",
                    f"q{place}",
                    group=f"g{topic}",
                    category=("new", "newer")[turn],
                )
            )
            judged += [(place, row, 3 if row == rows[-1] else 0) for row in rows]
    return made("stale", memories, queries, judged)


def shuffled(dataset: Dataset, seed: int) -> Dataset:
    """The same with labels that say nothing: in each group they change memories at random.

    All queries of a group are labelled alike, as paraphrases of one fact are.
    """
    dice = np.random.default_rng(seed)
    judgments = dataset.judgments
    renamed: dict[str, dict[int, int]] = {}
    triples = []
    for place, asked in enumerate(dataset.queries):
        mine = judgments.queries == place
        rows, grades = judgments.rows[mine].tolist(), judgments.grades[mine].tolist()
        if asked.group not in renamed:
            renamed[asked.group] = dict(zip(rows, dice.permutation(rows).tolist(), strict=True))
        moved = renamed[asked.group]
        triples += [(place, moved[row], g) for row, g in zip(rows, grades, strict=True)]
    return replace(
        dataset,
        name="shuffled",
        judgments=Judgments.of(triples, n_queries=len(dataset.queries)),
    )


def distrusted(topics: int) -> Dataset:
    """Answers that trust pushes below memories of the system; with them rises learned ballast."""
    learned, system = TrustLevel.LEARNED, TrustLevel.SYSTEM
    levels = (learned, learned, system, system, system, learned)
    memories, queries, judged = [], [], []
    for topic in range(topics):
        rows = range(6 * topic, 6 * topic + 6)
        memories += [
            memory(f"m{row}", f"t{topic} n{row}", trust_level=level)
            for row, level in zip(rows, levels, strict=True)
        ]
        queries.append(query(f"t{topic}", f"q{topic}", group=f"g{topic}", category="one"))
        judged += [(topic, row, 3 if row == rows[0] else 0) for row in rows]
    return made("distrusted", memories, queries, judged)


def made(
    name: str,
    memories: Sequence[Memory],
    queries: Sequence[Query],
    judged: Sequence[tuple[int, int, int]],
) -> Dataset:
    return Dataset(
        name=name,
        memories=tuple(memories),
        queries=tuple(queries),
        judgments=Judgments.of(judged, n_queries=len(queries)),
    )


def cut_in_three(dataset: Dataset) -> Dataset:
    """The same with fixed splits: every second group for the search, a quarter for each look."""
    groups = list(dict.fromkeys(query.group for query in dataset.queries))
    return replace(
        dataset,
        splits={
            "tune": tuple(groups[::2]),
            "select": tuple(groups[1::4]),
            "test": tuple(groups[3::4]),
        },
    )


def bench(dataset: Dataset, knobs: Space, current: Config = FTS, *objectives: str) -> Bench:
    table = Retriever(dataset, cache=None).covering(
        dataset.queries, current, coverage_of(knobs, current)
    )
    return Bench(dataset, table, current, objectives or ("utility",))


def plan(knobs: Space, *, folder: Path | None = None, **more: Any) -> SweepPlan:
    given = {"name": "s", "space": knobs, "trials": 30, "sampler": "random", "folder": folder}
    return SweepPlan(**{**given, **more})


def swept(dataset: Dataset, how: SweepPlan, current: Config = FTS, **more: Any) -> SweepResult:
    return sweep(dataset, current, how, retriever=Retriever(dataset, cache=None), **more)
