"""What makes two datasets the same: the sha256 of their canonical content.

In it: memories, queries, judgments, policy, categories, fixed splits, attacks, links,
edges, usefulness and the hashes of embeddings files. Not in it: name, version, licence,
description, who judged, and the folder. The order of keys, of queries and of every other
line does not matter, nor whether a default is written out; the order of the memories
does, because row order settles ties.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from comis_eval.datasets import records

if TYPE_CHECKING:
    from comis_eval.datasets.dataset import Dataset

_FORMAT = "comis-eval dataset 1"


def fingerprint_of(dataset: Dataset) -> str:
    """Return the sha256 of a dataset's canonical content, 64 hex digits."""
    digest = sha256(_FORMAT.encode())
    for section, lines in _sections(dataset):
        # The count closes each section, so that no line can pass for one of the next.
        number = 0
        for line in lines:
            digest.update(line.encode() + b"\n")
            number += 1
        digest.update(f"{section} {number}\n".encode())
    return digest.hexdigest()


def _sections(dataset: Dataset) -> Iterator[tuple[str, Iterable[str]]]:
    judgments = dataset.judgments
    pairs = zip(judgments.queries, judgments.rows, judgments.grades, strict=True)
    policy = dataset.policy

    yield "memories", map(_canonical, map(records.memory_row, dataset.memories))
    yield "queries", sorted(map(_canonical, map(records.query_row, dataset.queries)))
    yield (
        "judgments",
        sorted(
            _canonical([dataset.queries[query].id, dataset.memories[row].id, int(grade)])
            for query, row, grade in pairs
        ),
    )
    yield "policy", [_canonical([sorted(policy.trust_levels), policy.scope])]
    yield "not headline", sorted(_canonical(c) for c, yes in dataset.categories.items() if not yes)
    yield (
        "splits",
        sorted(_canonical([split, sorted(dataset.splits[split])]) for split in dataset.splits),
    )
    yield (
        "attacks",
        sorted(_canonical([a.query_id, sorted(a.poison_ids), a.kind]) for a in dataset.attacks),
    )
    yield "links", sorted(map(_canonical, dataset.links))
    yield "edges", sorted(map(_canonical, dataset.edges))
    yield "usefulness", sorted(map(_canonical, dataset.usefulness.items()))
    yield "embeddings", sorted(map(_canonical, dataset.embeddings.items()))
    if not dataset.labelled:
        yield "unlabelled", []


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
