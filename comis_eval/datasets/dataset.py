"""A labelled query set in memory: what there is to recall, what is asked, what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets.fingerprint import fingerprint_of
from comis_eval.datasets.judgments import Judgments
from comis_eval.datasets.labels import DEFAULT_POLICY, Attack, Edge, Link, Policy, Usefulness
from comis_eval.datasets.split import SPLITS, split_of
from comis_eval.errors import DatasetError
from comis_eval.text import html_table, notebook_html, printable
from comis_eval.types import Memory, Query, Tenancy, Turn


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """A labelled query set. Two are the same when their fingerprints are.

    Attributes:
        name: Matches ``[A-Za-z0-9._-]{1,64}``.
        version, licence, description, judged_by: As the folder states them; may be empty.
        policy: What a query may be answered from.
        categories: Whether each category counts in the headline figures (``all``).
        memories: In file order, which is row order, which settles ties.
        queries: In file order.
        judgments: By position in ``queries`` and ``memories``.
        attacks: Planted memories by query.
        links: Causal links between memories.
        edges: Knowledge graph edges between memories.
        usefulness: Feedback by memory id.
        splits: Groups of each split when the dataset fixes them; empty when derived.
        embeddings: sha256 of each embeddings file that came along, by file name.
        folder: Where it was read from; None when built in memory.
        labelled: False when nobody judged anything: it can be asked and compared, not measured.
    """

    name: str
    memories: tuple[Memory, ...]
    queries: tuple[Query, ...]
    judgments: Judgments
    version: str = ""
    licence: str = ""
    description: str = ""
    judged_by: str = ""
    policy: Policy = DEFAULT_POLICY
    categories: Mapping[str, bool] = field(default_factory=dict)
    attacks: tuple[Attack, ...] = ()
    links: tuple[Link, ...] = ()
    edges: tuple[Edge, ...] = ()
    usefulness: Mapping[str, Usefulness] = field(default_factory=dict)
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    embeddings: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    labelled: bool = True

    @cached_property
    def fingerprint(self) -> str:
        """Return the sha256 (hex) of the canonical content; see :mod:`.fingerprint`."""
        return fingerprint_of(self)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each memory id."""
        return {memory.id: row for row, memory in enumerate(self.memories)}

    @cached_property
    def position_of(self) -> dict[str, int]:
        """Position of each query id."""
        return {query.id: position for position, query in enumerate(self.queries)}

    def headline(self, category: str) -> bool:
        """Tell whether a category counts in the headline; one not mentioned does."""
        return self.categories.get(category, True)

    @property
    def usual_now(self) -> int:
        """The queries' most common moment of asking; without queries that of the newest memory."""
        if not self.queries:
            return max((memory.created_at for memory in self.memories), default=0)
        return Counter(query.now for query in self.queries).most_common(1)[0][0]

    def query(
        self,
        text: str,
        *,
        turns: Sequence[str] = (),
        tenancy: Tenancy | None = None,
        now: int | None = None,
    ) -> Query:
        """A question of one's own, asked as most of the dataset's queries are.

        Args:
            text: The message.
            turns: Earlier user messages, oldest first.
            tenancy: Whose memories are searched; None: the queries' most common one, without
                queries the memories'.
            now: The moment of asking, ms; None: ``usual_now``.
        """
        tenancies = Counter(asked.tenancy for asked in self.queries or self.memories)
        return Query(
            id="asked",
            text=text,
            now=self.usual_now if now is None else now,
            turns=tuple(Turn("user", turn) for turn in turns),
            tenancy=tenancies.most_common(1)[0][0] if tenancy is None else tenancy,
        )

    def check_labelled(self) -> None:
        """Refuse to measure what nobody judged.

        Raises:
            DatasetError: If the dataset says that it has no labels.
        """
        if not self.labelled:
            raise DatasetError(
                f"{self.name}: nobody judged it (labelled: false), so nothing can be measured; "
                "compare configurations with `comis-eval diff`, or judge it and remove the line"
            )

    def select(self, split: str, *, seed: int) -> Self:
        """Keep one split's queries, and every memory.

        Args:
            split: tune, select, test, or all.
            seed: Of the split; the same seed gives the same split.

        Raises:
            DatasetError: If there is no such split, or no query falls into it.
        """
        if split == "all":
            return self
        if split not in SPLITS:
            raise DatasetError(f"split is {split!r}; allowed: {', '.join(SPLITS)}, all")
        chosen = np.flatnonzero(split_of(self, seed) == split)
        if not len(chosen):
            raise DatasetError(
                f"{self.name}: no query falls into split {split!r} (seed {seed}, "
                f"{len(self.queries)} queries); add queries or fix splits in dataset.yaml"
            )
        return self.subset(chosen)

    def subset(self, queries: Iterable[int] | NDArray[np.integer]) -> Self:
        """Keep the queries at the given positions, in that order, and every memory.

        The result has a fingerprint of its own: it is another query set.
        """
        positions = np.fromiter((int(position) for position in queries), dtype=np.int64)
        kept = tuple(self.queries[position] for position in positions)
        ids = {query.id for query in kept}
        return replace(
            self,
            queries=kept,
            judgments=self.judgments.subset(positions),
            attacks=tuple(attack for attack in self.attacks if attack.query_id in ids),
        )

    def __repr__(self) -> str:
        told = f"{self.name} {printable(self.version)}".rstrip()
        return f"<Dataset {told}: {len(self.memories)} memories, {len(self.queries)} queries>"

    def _repr_html_(self) -> str:
        """What a notebook shows: what the set is, and its questions by category."""
        asked = Counter(query.category for query in self.queries)
        answerable = Counter(query.category for query in self.queries if query.answerable)
        rows = [
            (
                printable(category),
                "yes" if self.headline(category) else "no",
                str(queries),
                str(answerable[category]),
            )
            for category, queries in asked.items()
        ]
        trust = Counter(str(memory.trust_level) for memory in self.memories)
        levels = ", ".join(f"{count} {level}" for level, count in sorted(trust.items()))
        told = (
            printable(self.description),
            f"judged by: {printable(self.judged_by)}" if self.judged_by else "",
            f"{len(self.memories)} memories ({levels}), {len(self.queries)} queries, "
            f"{len(self.attacks)} attacks; licence {printable(self.licence or 'not stated')}, "
            f"fingerprint {self.fingerprint[:12]}",
        )
        return notebook_html(
            f"Dataset {self.name} {printable(self.version)}".rstrip(),
            *(line for line in told if line),
            html_table(["category", "in the headline", "queries", "answerable"], rows, texts=2),
        )

    def keeping(self, keep: Callable[[Memory], bool]) -> Self:
        """Keep some memories, in their order, with all that is said of them, and every query.

        A judgment, a link, an edge or an attack goes with the first of its memories that
        goes. Whether what stays refers to what goes is the caller's to ask.
        """
        kept = tuple(memory for memory in self.memories if keep(memory))
        row_of = {memory.id: row for row, memory in enumerate(kept)}
        rows = np.array([row_of.get(memory.id, -1) for memory in self.memories], dtype=np.int64)
        judged = self.judgments
        stays = rows[judged.rows] >= 0
        triples = np.stack(
            (judged.queries[stays], rows[judged.rows[stays]], judged.grades[stays]), axis=1
        )
        return replace(
            self,
            memories=kept,
            judgments=Judgments.of(triples, n_queries=len(self.queries)),
            attacks=tuple(one for one in self.attacks if set(one.poison_ids) <= row_of.keys()),
            links=tuple(one for one in self.links if {one.from_id, one.to_id} <= row_of.keys()),
            edges=tuple(one for one in self.edges if {one.from_id, one.to_id} <= row_of.keys()),
            usefulness={name: one for name, one in self.usefulness.items() if name in row_of},
        )
