"""One judge at work: what comes next, what was done, and what an act changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from comis_eval.datasets import Dataset
from comis_eval.judge.journal import Act, Entry, Journal, Pair, grades, standing
from comis_eval.judge.pairs import seen


class OutOfTurnError(Exception):
    """An act that answers a state that is no longer: from another tab, or sent twice."""


class Progress(NamedTuple):
    """How far a judge is.

    Attributes:
        turn: Counts the acts of the file; an act must name the turn it answers.
        pair: What is to be judged now; None when all are graded.
        graded: How many of the pairs have a grade.
        total: How many there are.
        skipped: How many of those left were put off.
        place, of: Number of this memory among its query's, and how many that has.
        query, queries: Number of this query among all, and how many there are.
        can_undo: Whether there is an act to take back.
    """

    turn: int
    pair: Pair | None
    graded: int
    total: int
    skipped: int
    place: int
    of: int
    query: int
    queries: int
    can_undo: bool


class Session:
    """A list of pairs and a judge's file; safe to use from several threads.

    Attributes:
        dataset: Where the texts are.
        pairs: What is to be judged, in the order it is shown.
        journal: Where it is written.
        sitting: 1, or 2 for a second look.
        stale: Pairs graded before, whose texts have changed since: they are asked again.
    """

    def __init__(
        self, dataset: Dataset, pairs: Sequence[Pair], journal: Journal, *, sitting: int = 1
    ) -> None:
        self.dataset = dataset
        self.pairs = tuple(pairs)
        self.journal = journal
        self.sitting = sitting
        self._lock = threading.Lock()
        self._closed = False
        self._seen = {pair: seen(dataset, pair) for pair in self.pairs}
        before = grades(journal.entries, sitting=sitting)
        self.stale = [p for p in self.pairs if p in before and before[p].seen != self._seen[p]]
        self._acts = [
            entry
            for entry in standing(journal.entries, sitting=sitting)
            if entry.seen == self._seen.get(entry.pair)
        ]
        self._numbers = {
            query_id: number
            for number, query_id in enumerate(dict.fromkeys(p.query_id for p in self.pairs), 1)
        }

    def progress(self) -> Progress:
        """Where the judge is."""
        with self._lock:
            return self._progress()

    def act(self, act: Act, *, turn: int, grade: int | None = None) -> Progress:
        """Grade, skip or take back; what is returned is on disk.

        Args:
            act: What to do, to the pair that this turn shows.
            turn: The turn it answers.
            grade: 0..3 when it is a grade.

        Raises:
            OutOfTurnError: If the state has moved on, or there is nothing to act on.
            OSError: If it could not be written; then nothing has changed.
        """
        with self._lock:
            if self._closed:
                raise OutOfTurnError
            now = self._progress()
            if turn != now.turn or (act is not Act.UNDO and now.pair is None):
                raise OutOfTurnError
            if act is Act.UNDO:
                if not now.can_undo:
                    raise OutOfTurnError
                self._write(act, self._acts[-1].pair, None)
                self._acts.pop()
            elif now.pair is not None:
                self._acts.append(self._write(act, now.pair, grade))
            return self._progress()

    def close(self) -> None:
        """Let go of the file, once an act that is being written is on disk."""
        with self._lock:
            self._closed = True
            self.journal.close()

    def _write(self, act: Act, pair: Pair, grade: int | None) -> Entry:
        seen_ = self._seen.get(pair, "")
        return self.journal.append(act, pair, sitting=self.sitting, grade=grade, seen=seen_)

    def _progress(self) -> Progress:
        wanted = set(self.pairs)
        graded = {e.pair for e in self._acts if e.act is Act.GRADE} & wanted
        last_skip = {e.pair: number for number, e in enumerate(self._acts) if e.act is Act.SKIP}
        left = [pair for pair in self.pairs if pair not in graded]
        # What was put off comes back when nothing else is left, first put off first.
        put_off = sorted((p for p in left if p in last_skip), key=lambda p: last_skip[p])
        fresh = [pair for pair in left if pair not in last_skip]
        pair = next(iter(fresh or put_off), None)
        mine = [p for p in self.pairs if pair is not None and p.query_id == pair.query_id]
        return Progress(
            turn=len(self.journal.entries),
            pair=pair,
            graded=len(graded),
            total=len(self.pairs),
            skipped=len(put_off),
            place=mine.index(pair) + 1 if pair is not None else 0,
            of=len(mine),
            query=self._numbers[pair.query_id] if pair is not None else 0,
            queries=len(self._numbers),
            can_undo=bool(self._acts),
        )
