"""Which pairs are judged and in which order: of a pool, of a list, or of a second pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from math import ceil
from pathlib import Path

from comis_eval.datasets import Dataset
from comis_eval.datasets.faults import Complaints, listed, shown
from comis_eval.datasets.lines import read_columns
from comis_eval.errors import JudgeError
from comis_eval.judge.journal import Pair
from comis_eval.text import sha256_text


def ordered(pairs: Iterable[Pair], *, judge: str, seed: int, sitting: int = 1) -> list[Pair]:
    """Shuffle pairs, in the same way whenever it is done again.

    A query's memories stay together, so that its text is read once. Queries come in one order
    for every judge, so that two who stop early have judged the same ones; within a query the
    order is each judge's own, so that place cannot sway both alike. The key of a pair is its
    own: pairs added later do not move the others.

    Args:
        pairs: Each once.
        judge: Whose order.
        seed: Of the shuffle.
        sitting: 2 gives a second look another order than the first.
    """

    def key(pair: Pair) -> tuple[bytes, str, bytes, Pair]:
        whose = (str(seed), judge, str(sitting))
        return (
            _key(str(seed), pair.query_id),
            pair.query_id,
            _key(*whose, *pair),
            pair,
        )

    return sorted(pairs, key=key)


def second_pass(judged: Iterable[Pair], *, share: float, seed: int) -> list[Pair]:
    """Draw a share of what was judged, to be judged again without sight of the first grade.

    Args:
        judged: Pairs that have a grade.
        share: Of them, in (0, 1]; rounded up.
        seed: Of the draw.

    Raises:
        JudgeError: If there is nothing to draw from, or the share is out of range.
    """
    if not 0 < share <= 1:
        raise JudgeError(f"--second-pass is {share:g}; it must lie in (0, 1]")
    there = sorted(judged, key=lambda pair: (_key("second pass", str(seed), *pair), pair))
    if not there:
        raise JudgeError("--second-pass: nothing was judged yet; judge first, then a second time")
    return there[: ceil(share * len(there) - 1e-9)]


def read_pairs(path: Path, dataset: Dataset) -> list[Pair]:
    """Read a list of pairs: ``query memory``, one a line, parted by white space.

    Raises:
        JudgeError: If a line cannot be used or names an id that the dataset has not; tells
            every such line.
    """
    complaints = Complaints()
    pairs: dict[Pair, int] = {}
    for line, words in read_columns(path, ("query", "memory"), complaints):
        pair = Pair(*words)
        for what, one, known in (
            ("query", pair.query_id, dataset.position_of),
            ("memory", pair.memory_id, dataset.row_of),
        ):
            if one not in known:
                complaints.fault(path.name, line, f"{what} {shown(one)} is not in {dataset.name}")
        first = pairs.setdefault(pair, line)
        if first != line:
            complaints.fault(path.name, line, f"the pair already stands on line {first}")
    if complaints.faults:
        raise JudgeError(f"--pairs {path} cannot be used:\n{listed(complaints.faults)}")
    if not pairs:
        raise JudgeError(f"--pairs {path} is empty; it holds: query memory")
    return list(pairs)


def write_pairs(pairs: Sequence[Pair]) -> str:
    """The content of a file that :func:`read_pairs` reads."""
    return "".join(f"{pair.query_id}\t{pair.memory_id}\n" for pair in pairs)


def seen(dataset: Dataset, pair: Pair) -> str:
    """A short hash of the texts that are judged: when they change, so may the grade."""
    query = dataset.queries[dataset.position_of[pair.query_id]]
    memory = dataset.memories[dataset.row_of[pair.memory_id]]
    texts = [query.text, [[turn.role, turn.text] for turn in query.turns], memory.content]
    return sha256_text(json.dumps(texts))[:16]


def _key(*parts: str) -> bytes:
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()
