"""Entity names: which mentions mean the same entity.

A mention belongs to the entity of the same key; failing that to the most similar entity
of its tenancy, if similar enough; else it founds a new one. Comparing each new name with
every entity is quadratic, so an index from character pairs to entities finds the few
that can be similar enough. Source: specification of MemoryRecall, appendix, Entity writing.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from comis_eval.types import Tenancy

_MARKS = regex.compile(r"\p{M}+")
_JAVASCRIPT_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What the shipped system trims."""


class Entity(NamedTuple):
    """What is kept of an entity.

    Attributes:
        tenancy: Whose it is; names are never compared across tenancies.
        name: Canonical name: that of the first mention.
        key: The canonical name's key.
        mentions: How many mentions resolved to it, >= 0.
    """

    tenancy: Tenancy
    name: str
    key: str
    mentions: int


def entity_key(name: str) -> str:
    """Return what of a name counts: NFKD, marks dropped, lower-cased, trimmed."""
    bare: str = _MARKS.sub("", unicodedata.normalize("NFKD", name))
    return bare.lower().strip(_JAVASCRIPT_SPACE)


def similarity(a: str, b: str) -> float:
    """Compare two keys by the character pairs they share.

    Returns:
        Dice coefficient over the multisets of adjacent UTF-16 pairs, in [0, 1]; 1 when
        the keys are equal, 0 when one has no pair.
    """
    if a == b:
        return 1.0
    pairs_a, pairs_b = set(_pairs(a)), set(_pairs(b))
    if not pairs_a or not pairs_b:
        return 0.0
    return 2 * len(pairs_a & pairs_b) / (len(pairs_a) + len(pairs_b))


class Resolver:
    """Resolves mentions to entities, one after the other, and counts them.

    Entities are numbered from 0 in the order in which they are founded.
    """

    def __init__(self, known: Iterable[Entity] = ()) -> None:
        self._founded: list[Entity] = []
        self._mentions = array("q")
        self._names: dict[Tenancy, _Names] = {}
        for entity in known:
            self._found(entity)

    def __len__(self) -> int:
        return len(self._founded)

    def resolve(self, tenancy: Tenancy, name: str) -> int:
        """Return the number of the entity that a name means, founding it if need be."""
        key = entity_key(name)
        number = self._names.setdefault(tenancy, _Names()).find(key)
        if number is None:
            number = self._found(Entity(tenancy, name, key, 0))
        self._mentions[number] += 1
        return number

    def entity(self, number: int) -> Entity:
        """One entity with its count as of now."""
        return self._founded[number]._replace(mentions=self._mentions[number])

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names, in order of number."""
        return tuple(entity.name for entity in self._founded)

    def _found(self, entity: Entity) -> int:
        number = len(self._founded)
        self._founded.append(entity)
        self._mentions.append(entity.mentions)
        self._names.setdefault(entity.tenancy, _Names()).add(entity.key, number)
        return number


class _Names:
    """The entity keys of one tenancy, indexed by character pair."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._sizes = array("q")
        self._by_key: dict[str, int] = {}
        self._holders: dict[str, array[int]] = {}
        self._best: dict[str, tuple[float, int, int]] = {}

    def add(self, key: str, number: int) -> None:
        position = len(self._numbers)
        pairs = _pairs(key)
        self._numbers.append(number)
        self._sizes.append(len(pairs))
        self._by_key.setdefault(key, number)
        for pair in pairs:
            self._holders.setdefault(pair, array("q")).append(position)

    def find(self, key: str) -> int | None:
        """Number of the entity a key means; None when it means none so far."""
        number = self._by_key.get(key)
        if number is not None:
            return number
        # A name that was seen before need only be compared with what came since.
        best, position, since = self._best.get(key, (0.0, -1, 0))
        if since < len(self._numbers):
            newest, newest_position = self._most_similar(_pairs(key), since)
            if newest > best:
                best, position = newest, newest_position
        if position < 0:
            return None
        self._best[key] = best, position, len(self._numbers)
        return self._numbers[position]

    def _most_similar(self, pairs: list[str], since: int) -> tuple[float, int]:
        """First most similar of the keys added from ``since`` on: similarity, position.

        Similar enough is 2 x shared / (size + other size) >= 0.6. As no more can be shared
        than the other has, the other has at least 3/7 of ``size`` pairs and shares as
        many. So the longest lists need not be counted, only looked up for the few that
        are in enough of the short ones.
        """
        size = len(pairs)
        least = -(-3 * size // 7)
        holders = [found for pair in pairs if len(found := self._held(pair, since))]
        if not size or len(holders) < least:
            return 0.0, -1
        holders.sort(key=len)
        looked_up = least // 2
        counted = holders[: len(holders) - looked_up]
        counts = np.bincount(np.concatenate(counted) - since)
        candidates = np.flatnonzero(counts >= least - looked_up)
        positions, shared = candidates + since, counts[candidates]
        for held in holders[len(counted) :]:
            shared += _contains(held, positions)
        both = size + np.frombuffer(self._sizes, dtype=np.int64)[positions]
        similar = 10 * shared >= 3 * both  # the threshold in integers: nothing is rounded
        if not similar.any():
            return 0.0, -1
        dice = 2 * shared[similar] / both[similar]
        best = int(dice.argmax())
        return float(dice[best]), int(positions[similar][best])

    def _held(self, pair: str, since: int) -> NDArray[np.int64]:
        held = self._holders.get(pair)
        if held is None:
            return np.empty(0, dtype=np.int64)
        positions = np.frombuffer(held, dtype=np.int64)
        return positions[bisect_left(held, since) :] if since else positions


def _contains(ascending: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == wanted
    return found


def _pairs(key: str) -> list[str]:
    """Adjacent pairs of UTF-16 units, the second and later of a kind marked by its count.

    The mark turns a multiset into a set: what two lists share is their intersection.
    """
    units = key if key.isascii() else _utf16_units(key)
    pairs = [units[i : i + 2] for i in range(len(units) - 1)]
    if len(set(pairs)) == len(pairs):
        return pairs
    seen: Counter[str] = Counter()
    marked = []
    for pair in pairs:
        seen[pair] += 1
        marked.append(pair if seen[pair] == 1 else f"{pair}{seen[pair]}")
    return marked


def _utf16_units(text: str) -> str:
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    return "".join(map(chr, units))
