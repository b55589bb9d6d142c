"""A small valid dataset folder for tests to break."""

from __future__ import annotations

import json
from pathlib import Path

NOW = 1_700_000_000_000
DAY = 86_400_000

HEADER = f"""\
name: tiny
version: "1"
licence: CC0-1.0
description: three memories
judgedBy: people
now: {NOW}
"""
MEMORIES = [
    {"id": "m1", "content": "Ada likes tea", "trustLevel": "system", "createdAt": NOW - 3 * DAY},
    {"id": "m2", "content": "Ada likes mate", "trustLevel": "learned", "createdAt": NOW - 2 * DAY},
    {"id": "m3", "content": "Ada hates tea", "trustLevel": "external", "createdAt": NOW - DAY},
]
QUERIES = [
    {"id": "q1", "text": "what does Ada drink?"},
    {"id": "q2", "text": "where does Ada live?", "answerable": False},
]
QRELS = "q1\t0\tm1\t3\nq1\t0\tm2\t1\nq2\t0\tm3\t0\n"


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def tiny(folder: Path, **files: str | bytes | None) -> Path:
    """Write the tiny dataset; a keyword names a file (dots as ``_``) to replace or leave out."""
    contents: dict[str, str | bytes | None] = {
        "dataset.yaml": HEADER,
        "memories.jsonl": lines(MEMORIES),
        "queries.jsonl": lines(QUERIES),
        "qrels.tsv": QRELS,
    }
    contents |= {name.replace("_", "."): content for name, content in files.items()}
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        elif content is not None:
            (folder / name).write_text(content, encoding="utf-8")
    return folder


def memory(**changes: object) -> str:
    """Return the three memories and a fourth with the given fields, as the file's text."""
    fourth = {"id": "m4", "content": "x", "trustLevel": "learned", "createdAt": NOW} | changes
    return lines([*MEMORIES, {k: v for k, v in fourth.items() if v != "ABSENT"}])


def query(**changes: object) -> str:
    """Return the two queries and an unanswerable third, as the file's text."""
    third = {"id": "q3", "text": "who?", "answerable": False} | changes
    return lines([*QUERIES, {k: v for k, v in third.items() if v != "ABSENT"}])
