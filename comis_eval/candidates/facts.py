"""What stages need of each memory, whatever the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from comis_eval.stages import dedup, present, score
from comis_eval.stages.score import Signals
from comis_eval.store.corpus import Corpus


@dataclass(frozen=True, eq=False)
class Facts:
    """What stages need of each memory, whatever the query; computed once a corpus."""

    corpus: Corpus
    usefulness: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How often a memory was used and ignored, by id."""

    @cached_property
    def occurred_at(self) -> NDArray[np.float64]:
        """Event times, ms, NaN where unknown, shape (m,)."""
        times = [np.nan if m.occurred_at is None else m.occurred_at for m in self.corpus.memories]
        return np.array(times, dtype=np.float64)

    @cached_property
    def proof_strength(self) -> NDArray[np.float64]:
        """See :func:`comis_eval.stages.score.proof_strength`, shape (m,)."""
        return score.proof_strength([m.proof_count for m in self.corpus.memories])

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """In [0, 1], NaN where unknown, shape (m,)."""
        values = [np.nan if m.confidence is None else m.confidence for m in self.corpus.memories]
        return np.array(values, dtype=np.float64)

    @cached_property
    def usefulness_signal(self) -> NDArray[np.float64]:
        """Share of showings in which a memory was used, neutral without any, shape (m,)."""
        counts = [self.usefulness.get(m.id, (0, 0)) for m in self.corpus.memories]
        used, ignored = np.array(counts, dtype=np.float64).reshape(-1, 2).T
        return score.usefulness(used, ignored)

    @cached_property
    def _prints(self) -> dict[str, NDArray[np.int32]]:
        return {}

    @cached_property
    def _lengths(self) -> dict[present.Style, NDArray[np.int64]]:
        return {}

    def prints(self, units: dedup.Units) -> NDArray[np.int32]:
        """A number for each distinct dedup fingerprint, shape (m,)."""
        if units not in self._prints:
            numbers: dict[str, int] = {}
            prints = [dedup.fingerprint(m.content, units=units) for m in self.corpus.memories]
            self._prints[units] = np.array(
                [numbers.setdefault(text, len(numbers)) for text in prints], dtype=np.int32
            )
        return self._prints[units]

    def line_lengths(self, style: present.Style, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """Length of each memory's line with its newline; 0 for padding. Any shape.

        A line is written the first time it is asked for, so that a large corpus costs only
        the memories that some query meets.
        """
        known = self._lengths.setdefault(
            style, np.full(len(self.corpus) + 1, -1, dtype=np.int64)
        )  # one more, for padding's row -1
        known[-1] = 0
        lengths = known[rows]
        missing = np.unique(rows[lengths < 0])
        for row in missing.tolist():
            known[row] = present.line_length(self.corpus.memories[row], style)
        return known[rows] if len(missing) else lengths

    def signals(self, now: NDArray[np.int64], rows: NDArray[np.int32]) -> Signals:
        """The signals of (moment, memory) pairs, both shape (n,)."""
        at = now.astype(np.float64)
        age = score.age_days(self.corpus.created_at[rows].astype(np.float64), at)
        event_age = score.age_days(self.occurred_at[rows], at)
        known_age = np.where(np.isnan(event_age), age, event_age)
        return Signals(
            recency=score.recency(age),
            temporal=score.temporal(event_age),
            proof=score.proof(self.proof_strength[rows], self.confidence[rows], known_age),
            trust=self.corpus.trust[rows] / 2.0,
            usefulness=self.usefulness_signal[rows],
        )
