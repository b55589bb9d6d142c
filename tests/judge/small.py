"""A small set to judge, and a session on it."""

from contextlib import contextmanager
from pathlib import Path

from comis_eval.datasets import Dataset, Judgments
from comis_eval.judge.journal import Journal, Pair
from comis_eval.judge.pairs import ordered
from comis_eval.judge.session import Session
from tests.builders import memory, query

MEMORIES = tuple(memory(f"m{n}", f"what memory {n} says") for n in range(4))
QUERIES = (query("first?", "q1", group="q1"), query("second?", "q2", group="q2"))
PAIRS = [Pair(q.id, m.id) for q in QUERIES for m in MEMORIES[:3]]


def dataset(memories=MEMORIES, queries=QUERIES, triples=(), **fields) -> Dataset:
    judged = Judgments.of(triples, n_queries=len(queries))
    return Dataset(
        name="small", memories=tuple(memories), queries=tuple(queries), judgments=judged, **fields
    )


@contextmanager
def session(folder: Path, judge="ada", *, of=None, pairs=PAIRS, sitting=1, seed=0):
    """A judge at work; the file is closed at the end."""
    shuffled = ordered(pairs, judge=judge, seed=seed, sitting=sitting)
    opened = Session(of or dataset(), shuffled, Journal(folder, judge), sitting=sitting)
    try:
        yield opened
    finally:
        opened.close()
