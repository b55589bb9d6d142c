"""The store: memories, their entities and embeddings in one SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import StoreError
from comis_eval.stages.recall_tool.writing import Writing, writing_of
from comis_eval.store import records, rules, upsert
from comis_eval.store.corpus import Corpus, entities_of, tenancies_of
from comis_eval.store.entities import Entity, Resolver
from comis_eval.store.opening import WAIT_S, copy_into, create_private
from comis_eval.store.schema import APPLICATION_ID, INDEX, MIGRATIONS, UNINDEX
from comis_eval.store.upsert import Remembered, Writer
from comis_eval.types import Memory, Tenancy, TrustLevel

_ENVIRONMENT = ("BUSY", "LOCKED", "READONLY", "FULL", "IOERR", "CORRUPT", "NOTADB", "CANTOPEN")
"""SQLite errors whose cause lies outside this package."""


class Embeddings(NamedTuple):
    """Stored vectors of one model, aligned with the corpus.

    Attributes:
        vectors: One row a memory, shape (m, dim), float32; zeros where there is none.
        has: Which memories have one, shape (m,).
    """

    vectors: NDArray[np.float32]
    has: NDArray[np.bool_]


class Store:
    """Memories in SQLite; open one with :meth:`open`, close it or use it in a ``with``.

    Everything that is written passes the rules of :mod:`comis_eval.store.rules`, in one
    transaction a call: all of it is stored or nothing. Many may read a file at a time,
    one may write. A store belongs to the thread that opened it.
    """

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._resolver: Resolver | None = None
        self._resolved_at = -1

    @classmethod
    def open(cls, path: Path | None = None) -> Self:
        """Open a store, creating the file (mode 0600) or taking it to the newest schema.

        Args:
            path: Where it is; None keeps it in memory, gone when closed.

        Raises:
            StoreError: If the file is no store, of a newer schema, or cannot be opened.
        """
        if path is not None:
            create_private(path)
        connection = sqlite3.connect(
            ":memory:" if path is None else path.absolute(),
            isolation_level=None,
            timeout=WAIT_S,
        )
        store = cls(connection, "the in-memory store" if path is None else str(path))
        try:
            store._prepare()
        except BaseException:
            connection.close()
            raise
        return store

    @classmethod
    def copied(cls, path: Path) -> Self:
        """Open a copy of a store in memory; the file is read once and never written.

        Raises:
            StoreError: If there is no such file, it is no store, of a newer schema, or
                cannot be read.
        """
        if not path.is_file():
            raise StoreError(f"{path} is not there; give the path of a store")
        connection = sqlite3.connect(":memory:", isolation_level=None, timeout=WAIT_S)
        store = cls(connection, str(path))
        try:
            with store._errors_named():
                copy_into(path, connection)
            store._prepare()
        except BaseException:
            connection.close()
            raise
        return store

    def close(self) -> None:
        """Close the database; an in-memory store is gone."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, memories: Iterable[Memory]) -> None:
        """Write memories, in the order given; entity mentions are resolved in that order.

        Sources may be in the same call, in any order.

        Raises:
            LaunderingError: If a derived memory claims more trust than its sources have.
            StoreError: If a memory breaks a writing rule, its id is taken, a source is
                unknown, or another writer is at work. Nothing is stored then.
        """
        batch = tuple(memories)
        for memory in batch:
            rules.check_values(memory)
        with self._transaction("IMMEDIATE"):
            rules.check_trust(batch, self._trust_for(batch))
            first = self._insert(batch)
            self._link(batch, first)

    def remember(self, arguments: Mapping[str, object], writer: Writer) -> Remembered:
        """Write one memory as the tool ``remember`` does: a key has one memory.

        Args:
            arguments: By the names of the tool's arguments, ``writing.WRITTEN``.
            writer: Who writes, and when.

        Raises:
            RequestError: If an argument is not allowed: all that are, at once.
            StoreError: If key, tags or content are refused, ``expected_version`` is another
                than there is, the key has a configured fact, or another writer is at work.
                Nothing is stored then.
        """
        writer = replace(writer, tenancy=writer.tenancy.named)
        said = writing_of(arguments, writer.now)
        with self._transaction("IMMEDIATE"):
            said = upsert.resolved(self._connection, said, writer)
            standing = upsert.stands(self._connection, said, writer)
            upsert.check_version(said, standing)
            if standing is None:
                memory = upsert.created(str(uuid4()), said, writer)
            else:
                memory = upsert.updated(standing, said, writer)
            upsert.check(memory)
            rules.check_values(memory)
            near = upsert.near_key(self._connection, memory, writer)
            self._write(standing, memory, said, writer)
        return Remembered(memory, "created" if standing is None else "updated", near)

    def _write(
        self, standing: upsert.Standing | None, memory: Memory, said: Writing, writer: Writer
    ) -> None:
        if standing is None:
            row = self._insert([memory])
        else:
            row, before = standing
            # What was there before the first write is a revision too.
            upsert.revise(self._connection, row, before, by=before.created_by, reason=None)
            upsert.replace_row(self._connection, row, memory)
        by = writer.tenancy.agent_id
        upsert.revise(self._connection, row, memory, by=by, reason=said.reason)

    def stamp(self) -> tuple[int, int]:
        """Return what differs whenever this or another connection has written."""
        with self._errors_named():
            return self._number("PRAGMA data_version"), self._connection.total_changes

    def update_content(self, memory_id: str, content: str) -> None:
        """Replace a memory's text; its embeddings, made from the old one, are dropped.

        Raises:
            StoreError: If the id is unknown, the content blank, or another writer at work.
        """
        rules.check_content(memory_id, content)
        with self._transaction("IMMEDIATE"):
            row = (self._row_of(memory_id),)
            self._connection.execute(UNINDEX, row)
            self._connection.execute(
                "UPDATE memories SET content = ?, simhash = NULL WHERE row = ?", (content, *row)
            )
            self._connection.execute(INDEX + "WHERE row = ?", row)
            self._connection.execute("DELETE FROM embeddings WHERE memory = ?", row)

    def delete(self, memory_ids: Iterable[str]) -> None:
        """Delete memories with their links and embeddings.

        Entities and their mention counts stay: they tell what was written.

        Raises:
            StoreError: If an id is unknown, or another writer is at work. Nothing is
                deleted then.
        """
        with self._transaction("IMMEDIATE"):
            rows = [(self._row_of(memory_id),) for memory_id in dict.fromkeys(memory_ids)]
            self._connection.executemany(UNINDEX, rows)
            self._connection.executemany("DELETE FROM memories WHERE row = ?", rows)

    def get(self, memory_ids: Iterable[str]) -> dict[str, Memory]:
        """Return memories by id, in the order asked for.

        Raises:
            StoreError: If an id is unknown.
        """
        with self._transaction("DEFERRED"):
            return {
                memory_id: records.from_row(self._select(memory_id))
                for memory_id in dict.fromkeys(memory_ids)
            }

    def corpus(self) -> Corpus:
        """Read all memories as columns, in insertion order.

        Rows are numbered consecutively: after a deletion those behind it move up.
        """
        with self._transaction("DEFERRED"):
            kept = self._connection.execute(
                f"SELECT {', '.join(records.COLUMNS)} FROM memories ORDER BY row"  # noqa: S608
            ).fetchall()
            links = self._connection.execute(
                "SELECT memory, entity FROM entity_links ORDER BY memory, entity"
            ).fetchall()
            rows = self._rows()
            names = self._load_resolver().names
        memories = tuple(map(records.from_row, kept))
        pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
        positions = np.searchsorted(rows, pairs[:, 0])
        return Corpus(memories, entities_of(positions, pairs[:, 1], names), tenancies_of(memories))

    def entities(self) -> tuple[Entity, ...]:
        """Return every entity, in the order in which they were founded."""
        with self._transaction("DEFERRED"):
            resolver = self._load_resolver()
        return tuple(map(resolver.entity, range(len(resolver))))

    def put_embeddings(
        self, fingerprint: str, memory_ids: Sequence[str], vectors: NDArray[np.float32]
    ) -> None:
        """Store vectors of one model, replacing those the memories had of it.

        Args:
            fingerprint: The model's, as its ``fingerprint`` says.
            memory_ids: One a vector.
            vectors: Shape (n, dim), finite; a row of zeros is stored but never found.

        Raises:
            StoreError: If shapes do not agree, a number is not finite, the dimension is not
                that of the model's stored vectors, an id is unknown, or another writer is
                at work. Nothing is stored then.
        """
        if vectors.ndim != 2 or len(vectors) != len(memory_ids) or not vectors.shape[1]:
            raise StoreError(
                f"embeddings must have shape ({len(memory_ids)}, dim), one row a memory, "
                f"got {vectors.shape}"
            )
        unusable = ~np.isfinite(vectors).all(axis=1)
        if unusable.any():
            raise StoreError(
                f"the embedding of memory {memory_ids[int(unusable.argmax())]!r} holds NaN or "
                "infinity; embed it again"
            )
        stored = vectors.astype("<f4")
        dim = stored.shape[1]
        with self._transaction("IMMEDIATE"):
            for (other,) in self._connection.execute(
                "SELECT DISTINCT dim FROM embeddings WHERE model = ? AND dim <> ?",
                (fingerprint, dim),
            ):
                raise StoreError(
                    f"the embedding of memory {memory_ids[0]!r} has {dim} dimensions, those "
                    f"stored for model {fingerprint!r} have {other}"
                )
            self._connection.executemany(
                "INSERT OR REPLACE INTO embeddings (memory, model, dim, vector) "
                "VALUES (?, ?, ?, ?)",
                [
                    (self._row_of(memory_id), fingerprint, dim, vector.tobytes())
                    for memory_id, vector in zip(memory_ids, stored, strict=True)
                ],
            )

    def embeddings(self, fingerprint: str) -> Embeddings:
        """Read one model's vectors, row by row of :meth:`corpus`; dim is 0 without any."""
        with self._transaction("DEFERRED"):
            rows = self._rows()
            found = self._connection.execute(
                "SELECT memory, dim, vector FROM embeddings WHERE model = ?", (fingerprint,)
            ).fetchall()
        dim = found[0][1] if found else 0
        vectors = np.zeros((len(rows), dim), dtype=np.float32)
        has = np.zeros(len(rows), dtype=bool)
        if found:
            positions = np.searchsorted(rows, [memory for memory, _, _ in found])
            blob = b"".join(vector for _, _, vector in found)
            vectors[positions] = np.frombuffer(blob, dtype="<f4").reshape(-1, dim)
            has[positions] = True
        return Embeddings(vectors, has)

    def _prepare(self) -> None:
        with self._errors_named():
            execute = self._connection.execute
            for setting in ("foreign_keys = ON", "trusted_schema = OFF", "synchronous = NORMAL"):
                execute(f"PRAGMA {setting}")
            version = self._number("PRAGMA user_version")
            self._check_ours(version)
            if version == len(MIGRATIONS):
                return
            execute("PRAGMA journal_mode = WAL")
        with self._transaction("IMMEDIATE"):
            for migration in MIGRATIONS[self._number("PRAGMA user_version") :]:
                for statement in migration:
                    execute(statement)
            execute(f"PRAGMA application_id = {APPLICATION_ID}")
            execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _check_ours(self, version: int) -> None:
        ours = self._number("PRAGMA application_id") == APPLICATION_ID
        if not ours and self._number("SELECT count(*) FROM sqlite_master"):
            raise StoreError(
                f"{self._name} is a SQLite database of another program; give the path of a "
                "store or of a new file, and bring foreign memories in with `import`"
            )
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{self._name} has schema version {version}, this comis_eval knows versions up "
                f"to {len(MIGRATIONS)}; upgrade comis_eval to open it"
            )

    def _insert(self, batch: Sequence[Memory]) -> int:
        first = self._number("SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence")
        columns = ", ".join(records.COLUMNS)
        marks = ", ".join("?" * (1 + len(records.COLUMNS)))
        try:
            self._connection.executemany(
                f"INSERT INTO memories (row, {columns}) VALUES ({marks})",  # noqa: S608
                ((row, *records.to_row(memory)) for row, memory in enumerate(batch, first)),
            )
        except sqlite3.IntegrityError as error:
            raise self._refusal(batch, first, error) from error
        self._connection.execute(INDEX + "WHERE row >= ?", (first,))
        return first

    def _refusal(
        self, batch: Sequence[Memory], first: int, error: sqlite3.IntegrityError
    ) -> StoreError:
        """Name the id that is taken: the first that is found elsewhere than it was put."""
        for row, memory in enumerate(batch, first):
            found = self._find_row(memory.id)
            if found not in (0, row):
                where = "is in the store already" if found < first else "is given twice"
                return StoreError(
                    f"memory {memory.id!r} {where}; ids are unique, so rename or drop one"
                )
        return StoreError(f"{self._name} refused the memories: {error}")

    def _link(self, batch: Sequence[Memory], first: int) -> None:
        mentioning = [(row, m) for row, m in enumerate(batch, first) if m.entities]
        if not mentioning:
            return
        resolver = self._load_resolver()
        links: set[tuple[int, int]] = set()
        self._resolver = None  # until its mentions are written, it is ahead of the file
        for row, memory in mentioning:
            links.update((row, resolver.resolve(memory.tenancy, name)) for name in memory.entities)
        touched = ((number, resolver.entity(number)) for number in {e for _, e in links})
        self._connection.executemany(
            "INSERT INTO entities (number, tenant_id, agent_id, canonical_name, canonical_key, "
            "mention_count) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (number) DO UPDATE SET mention_count = excluded.mention_count",
            ((number, *e.tenancy, e.name, e.key, e.mentions) for number, e in touched),
        )
        self._connection.executemany(
            "INSERT INTO entity_links (memory, entity) VALUES (?, ?)", sorted(links)
        )
        self._resolver = resolver

    def _load_resolver(self) -> Resolver:
        """Return the resolver of all entities; read anew when another writer was at work."""
        version = self._number("PRAGMA data_version")
        if self._resolver is None or self._resolved_at != version:
            known = self._connection.execute(
                "SELECT tenant_id, agent_id, canonical_name, canonical_key, mention_count "
                "FROM entities ORDER BY number"
            )
            self._resolver = Resolver(
                Entity(Tenancy(tenant, agent), name, key, mentions)
                for tenant, agent, name, key, mentions in known
            )
            self._resolved_at = version
        return self._resolver

    def _trust_for(self, batch: Sequence[Memory]) -> dict[str, TrustLevel]:
        """Trust of the batch and of every stored source it names."""
        trust = {memory.id: memory.trust_level for memory in batch}
        for source in {s for memory in batch for s in memory.source_ids} - trust.keys():
            for (level,) in self._connection.execute(
                "SELECT trust_level FROM memories WHERE id = ?", (source,)
            ):
                trust[source] = TrustLevel(level)
        return trust

    def _rows(self) -> NDArray[np.int64]:
        found = self._connection.execute("SELECT row FROM memories ORDER BY row").fetchall()
        return np.array(found, dtype=np.int64).reshape(-1)

    def _select(self, memory_id: str) -> tuple[object, ...]:
        columns = ", ".join(records.COLUMNS)
        found: tuple[object, ...] = self._connection.execute(
            f"SELECT {columns} FROM memories WHERE row = ?",  # noqa: S608
            (self._row_of(memory_id),),
        ).fetchone()
        return found

    def _row_of(self, memory_id: str) -> int:
        row = self._find_row(memory_id)
        if not row:
            raise StoreError(f"memory {memory_id!r} is not in {self._name}")
        return row

    def _find_row(self, memory_id: str) -> int:
        """Row of a memory, 0 when there is none."""
        return self._number("SELECT coalesce(max(row), 0) FROM memories WHERE id = ?", memory_id)

    def _number(self, query: str, *values: str) -> int:
        number: int = self._connection.execute(query, values).fetchone()[0]
        return number

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        with self._errors_named():
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._resolver = None
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Tell faults of the file and its surroundings from bugs of ours."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "SQLITE_").removeprefix("SQLITE_")
            if not name.startswith(_ENVIRONMENT):
                raise
            if name.startswith(("BUSY", "LOCKED")):
                raise StoreError(
                    f"{self._name} is being written by somebody else; one writer at a time, so "
                    "wait until it is done or close it"
                ) from error
            raise StoreError(f"{self._name} cannot be used: {error}") from error
