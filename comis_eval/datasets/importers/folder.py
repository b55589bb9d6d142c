"""Writing a dataset folder record by record: checked, redacted, never held whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Self

from comis_eval.datasets import records
from comis_eval.datasets.contents import MEMORIES, QRELS, QUERIES
from comis_eval.datasets.faults import shown
from comis_eval.datasets.fields import Fields, read_fields
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.lines import MAX_LINE_BYTES

TOLD_IDS = 3
"""How many ids a note names; the rest are counted."""


class FolderWriter:
    """Writes memories.jsonl, queries.jsonl and qrels.tsv into a folder being made.

    Attributes:
        memory_ids, query_ids: What was written, as the source names it.
        replaced: How many secrets were found.
    """

    def __init__(self, folder: Path, redactor: Redactor | None = None) -> None:
        self.memory_ids: set[str] = set()
        self.query_ids: set[str] = set()
        self.replaced = 0
        self._folder = folder
        self._redactor = redactor
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._memories, self._queries, self._qrels = (
            self._stack.enter_context((self._folder / name).open("wb"))
            for name in (MEMORIES, QUERIES, QRELS)
        )
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def memory(self, row: Mapping[str, Any]) -> str | None:
        """Write a memory's line; return what is wrong with it when it was not written."""
        redact = self._redactor.memory if self._redactor else None
        return self._write(self._memories, row, records.MEMORY, self.memory_ids, redact)

    def query(self, row: Mapping[str, Any]) -> str | None:
        """Write a query's line; return what is wrong with it when it was not written."""
        redact = self._redactor.query if self._redactor else None
        return self._write(self._queries, row, records.QUERY, self.query_ids, redact)

    def judgment(self, query_id: str, memory_id: str, grade: int) -> None:
        """Write the grade of a memory for a query, both of which were written."""
        line = f"{self.id(query_id)}\t0\t{self.id(memory_id)}\t{grade}\n"
        self._qrels.write(line.encode())

    def id(self, own: str) -> str:
        """An id as it stands in the folder."""
        return self._redactor.identifier(own)[0] if self._redactor else own

    def _write(
        self,
        file: BinaryIO,
        row: Mapping[str, Any],
        fields: Fields,
        ids: set[str],
        redact: Callable[[Mapping[str, Any]], tuple[dict[str, Any], int]] | None,
    ) -> str | None:
        values, wrong = read_fields(row, fields)
        if wrong:
            return "; ".join(wrong)
        if values.get("category") == "all":
            return "category 'all' is taken: it names the headline mean"
        own = values["id"]
        if own in ids:
            return f"id {shown(own)} already stands before it"
        told, count = redact(row) if redact else (row, 0)
        try:
            line = json.dumps(told, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:
            return "holds half of a surrogate pair, which is no character"
        if len(line) > MAX_LINE_BYTES:
            return f"is longer than {MAX_LINE_BYTES} bytes"
        self.replaced += count
        ids.add(own)
        file.write(line)
        return None


def some_of(ids: Iterable[str]) -> str:
    """Name the first few ids, and say that there are more."""
    listed = list(ids)
    more = ", ..." if len(listed) > TOLD_IDS else ""
    return ", ".join(map(shown, listed[:TOLD_IDS])) + more
