"""From a log of any length to a sample of its queries, in two passes over the file."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets.faults import Complaints, Fault, listed
from comis_eval.datasets.sampling.chance import inclusion, systematic
from comis_eval.datasets.sampling.log import Asked, read_log
from comis_eval.datasets.sampling.strata import Kind, frequency_of, kind_of
from comis_eval.errors import DatasetError
from comis_eval.files import open_regular
from comis_eval.types import Query, Turn

MAX_BAD = 0.01
"""Share of lines that may be unusable."""

AGENTS = 20
"""Agents that are strata of their own; the queries of the others form one."""

OTHER_AGENTS = "other agents"

_TOLD_EVERY = 10_000

_DIGEST = np.dtype([("high", "<u8"), ("low", "<u8")])


class Stratum(NamedTuple):
    """Queries that are alike, and how many of them are drawn.

    Attributes:
        agent: Whose; ``other agents`` for those of few queries.
        kind: What they are like.
        frequency: once, sometimes or often.
        queries: How many different ones the log has.
        askings: How many lines they take.
        expected: How many are drawn on average.
        drawn: How many were.
    """

    agent: str
    kind: Kind
    frequency: str
    queries: int
    askings: int
    expected: float
    drawn: int


class Drawn(NamedTuple):
    """A query of the sample.

    Attributes:
        query: Its id names the line of the log it was taken from, the last it stands on.
        line: That line.
        askings: How often it stands in the log.
        stratum: Position of its stratum.
        weight: How many different queries of the log it stands for: 1 / its chance.
    """

    query: Query
    line: int
    askings: int
    stratum: int
    weight: float


@dataclass(frozen=True)
class Sample:
    """What was drawn, and from what.

    Attributes:
        drawn: In log order.
        strata: All of the log's.
        seed: Of the draw.
        lines: Lines of the log.
        bad: Lines that could not be used, and why.
        ignored: Keys of its objects that were not read.
        undated: Queries drawn whose line had no time.
    """

    drawn: tuple[Drawn, ...]
    strata: tuple[Stratum, ...]
    seed: int
    lines: int
    bad: tuple[Fault, ...]
    ignored: tuple[str, ...]
    undated: int

    @property
    def usable(self) -> int:
        """Lines that were drawn from."""
        return self.lines - len(self.bad)

    @property
    def distinct(self) -> int:
        """Different queries among them."""
        return sum(stratum.queries for stratum in self.strata)


def draw(
    log: Path,
    *,
    n: int,
    seed: int,
    now: int,
    max_bad: float = MAX_BAD,
    redact: Callable[[str], str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Sample:
    """Draw a stratified sample of the different queries of a log.

    The same text, turns and tenancy is the same query, however often it was asked. A line is
    kept as a digest and a number, so a million of them take tens of megabytes.

    Args:
        log: ``.jsonl`` or ``.txt``, see :mod:`~comis_eval.datasets.sampling.log`.
        n: How many queries, >= 1; all of them when the log has no more.
        seed: Of the draw.
        now: When a query was asked whose line does not say, ms.
        max_bad: Share of lines that may be unusable.
        redact: What is done to every text that is drawn; None: nothing.
        progress: Told how many lines are read, of how many.

    Raises:
        DatasetError: If the log cannot be used, too much of it is unusable, or it changed
            between the passes.
    """
    complaints, ignored = Complaints(), set[str]()
    seen = _Seen()
    total = 0 if progress is None else _count_lines(log)
    for line, asked in read_log(log, complaints, ignored):
        seen.add(line, asked)
        if progress is not None and line % _TOLD_EVERY == 0:
            progress("reading", line, total)
    _check(log, seen, complaints, max_bad)

    unit = seen.distinct()
    names, codes = _strata(seen, unit)
    chance = inclusion(codes, n)
    taken = systematic(chance, codes, np.random.default_rng(seed))
    asked_on = _texts(log, seen, unit.last[taken])
    drawn = tuple(
        Drawn(
            query=_query(line, asked_on[line], now, redact),
            line=line,
            askings=int(unit.askings[at]),
            stratum=int(codes[at]),
            weight=float(1 / chance[at]),
        )
        for at in taken.tolist()
        for line in [int(seen.lines[unit.last[at]])]
    )
    per_stratum = Counter(one.stratum for one in drawn)
    sizes = np.bincount(codes, minlength=len(names))
    askings = np.bincount(codes, weights=unit.askings, minlength=len(names))
    expected = np.bincount(codes, weights=chance, minlength=len(names))
    strata = tuple(
        Stratum(
            *name,
            queries=int(sizes[code]),
            askings=round(askings[code]),
            expected=float(expected[code]),
            drawn=per_stratum[code],
        )
        for code, name in enumerate(names)
    )
    return Sample(
        drawn=drawn,
        strata=strata,
        seed=seed,
        lines=len(seen.lines) + len(complaints.faults),
        bad=tuple(complaints.faults),
        ignored=tuple(sorted(ignored)),
        undated=sum(asked_on[one.line].at is None for one in drawn),
    )


class _Units(NamedTuple):
    """Different queries, by the last line each stands on: its position, and how often."""

    last: NDArray[np.intp]
    askings: NDArray[np.intp]


class _Seen:
    """What is kept of each usable line: its number, a digest, a kind and an agent."""

    def __init__(self) -> None:
        self.lines = array("Q")
        self._digests = bytearray()
        self.kinds = array("H")
        self.agents = array("L")
        self.kind_names: dict[Kind, int] = {}
        self.agent_names: dict[str, int] = {}

    def add(self, line: int, asked: Asked) -> None:
        agent = f"{asked.tenancy.agent_id} of {asked.tenancy.tenant_id}"
        self.lines.append(line)
        self._digests += _digest(asked)
        kind = kind_of(asked.text)
        self.kinds.append(self.kind_names.setdefault(kind, len(self.kind_names)))
        self.agents.append(self.agent_names.setdefault(agent, len(self.agent_names)))

    def digest(self, position: int) -> bytes:
        return bytes(self._digests[16 * position : 16 * position + 16])

    def distinct(self) -> _Units:
        digests = np.frombuffer(bytes(self._digests), dtype=_DIGEST)[::-1]
        _, first, counts = np.unique(digests, return_index=True, return_counts=True)
        last = len(digests) - 1 - first
        order = np.argsort(last)
        return _Units(last[order], counts[order])


def _strata(seen: _Seen, unit: _Units) -> tuple[list[tuple[str, Kind, str]], NDArray[np.intp]]:
    """Name the strata in order, and number each different query's."""
    kinds, agents = list(seen.kind_names), list(seen.agent_names)
    of_agent = np.bincount(np.array(seen.agents)[unit.last], minlength=len(agents))
    biggest = sorted(range(len(agents)), key=lambda a: (-of_agent[a], agents[a]))[:AGENTS]
    shown = [agents[a] if a in set(biggest) else OTHER_AGENTS for a in range(len(agents))]
    keys = [
        (shown[seen.agents[at]], kinds[seen.kinds[at]], frequency_of(askings))
        for at, askings in zip(unit.last.tolist(), unit.askings.tolist(), strict=True)
    ]
    names = sorted(set(keys))
    number = {name: code for code, name in enumerate(names)}
    return names, np.array([number[key] for key in keys], dtype=np.intp)


def _texts(log: Path, seen: _Seen, positions: NDArray[np.intp]) -> dict[int, Asked]:
    """Read the drawn lines again."""
    wanted = {int(seen.lines[at]): int(at) for at in positions}
    found: dict[int, Asked] = {}
    for line, asked in read_log(log, Complaints(), only=wanted):
        if _digest(asked) != seen.digest(wanted[line]):
            break
        found[line] = asked
        if len(found) == len(wanted):
            return found
    raise DatasetError(f"{log} changed while it was read; draw from a copy that nobody writes to")


def _count_lines(log: Path) -> int:
    with open_regular(log) as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))


def _check(log: Path, seen: _Seen, complaints: Complaints, max_bad: float) -> None:
    bad, total = len(complaints.faults), len(seen.lines) + len(complaints.faults)
    if bad > max_bad * total:
        raise DatasetError(
            f"{log}: {bad} of {total} lines cannot be used, over {max_bad:.2%} (--max-bad):\n"
            f"{listed(complaints.faults)}"
        )
    if not len(seen.lines):
        raise DatasetError(f"{log} holds no query")


def _digest(asked: Asked) -> bytes:
    same = [asked.text, [list(turn) for turn in asked.turns], list(asked.tenancy)]
    return blake2b(json.dumps(same).encode(), digest_size=16).digest()


def _query(line: int, asked: Asked, now: int, redact: Callable[[str], str] | None) -> Query:
    clean = redact or (lambda text: text)
    return Query(
        id=f"log-{line}",
        text=clean(asked.text),
        now=now if asked.at is None else asked.at,
        turns=tuple(Turn(turn.role, clean(turn.text)) for turn in asked.turns),
        group=f"log-{line}",
        tags=kind_of(asked.text).tags,
        tenancy=asked.tenancy,
    )
