"""The database schema, as numbered migrations.

Migration n (from 1) takes a file from schema version n - 1 to n; SQLite keeps the version
in the file's ``user_version``. A migration that has shipped is never edited: add another.
"""

from __future__ import annotations

APPLICATION_ID = 0x434F4D45
"""Marks a file as ours ("COME"), so that no foreign database is ever migrated."""

_MEMORIES = """
CREATE TABLE memories (
  row INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE CHECK (id <> ''),
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  content TEXT NOT NULL,
  trust_level TEXT NOT NULL CHECK (trust_level IN ('system', 'learned', 'external')),
  memory_type TEXT NOT NULL
    CHECK (memory_type IN ('working', 'episodic', 'semantic', 'procedural')),
  source_who TEXT,
  source_channel TEXT,
  source_session_key TEXT,
  source_type TEXT,
  taint_level TEXT,
  created_at INTEGER NOT NULL,
  occurred_at INTEGER,
  expires_at INTEGER,
  proof_count INTEGER CHECK (proof_count >= 0),
  confidence REAL CHECK (confidence BETWEEN 0 AND 1),
  source_ids TEXT NOT NULL,
  entities TEXT NOT NULL,
  tags TEXT NOT NULL,
  key TEXT,
  scope TEXT,
  project_id TEXT,
  created_by TEXT,
  author_type TEXT,
  relevance REAL,
  importance REAL,
  archived INTEGER CHECK (archived IN (0, 1)),
  status TEXT,
  updated_at INTEGER,
  duplicate_of TEXT
)"""

_ENTITIES = """
CREATE TABLE entities (
  number INTEGER PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  canonical_name TEXT NOT NULL,
  canonical_key TEXT NOT NULL,
  mention_count INTEGER NOT NULL CHECK (mention_count >= 0),
  UNIQUE (tenant_id, agent_id, canonical_key)
)"""

_ENTITY_LINKS = """
CREATE TABLE entity_links (
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  entity INTEGER NOT NULL REFERENCES entities (number),
  PRIMARY KEY (memory, entity)
) WITHOUT ROWID"""

_EMBEDDINGS = """
CREATE TABLE embeddings (
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  model TEXT NOT NULL,
  dim INTEGER NOT NULL CHECK (dim > 0),
  vector BLOB NOT NULL CHECK (length(vector) = 4 * dim),
  PRIMARY KEY (memory, model)
)"""

# Kept up by the store itself: triggers that write to it would need a trusted schema, and a
# file that may have been tampered with must not be trusted.
_FTS = """
CREATE VIRTUAL TABLE memories_fts USING fts5 (
  content, content='memories', content_rowid='row', tokenize='porter unicode61'
)"""

# A memory's simhash is NULL until somebody asks what it is near to: hashing costs more than
# all else of a write.
_VERSIONS = (
    "ALTER TABLE memories ADD COLUMN version INTEGER CHECK (version >= 1)",
    "ALTER TABLE memories ADD COLUMN simhash INTEGER",
    "CREATE INDEX memories_key ON memories (tenant_id, key)",
)

_REVISIONS = """
CREATE TABLE revisions (
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  version INTEGER NOT NULL CHECK (version >= 1),
  written_at INTEGER NOT NULL,
  written_by TEXT,
  reason TEXT,
  content TEXT NOT NULL,
  tags TEXT NOT NULL,
  relevance REAL,
  importance REAL,
  expires_at INTEGER,
  PRIMARY KEY (memory, version)
) WITHOUT ROWID"""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (_MEMORIES, _ENTITIES, _ENTITY_LINKS, _EMBEDDINGS, _FTS),
    (*_VERSIONS, _REVISIONS),
)

INDEX = "INSERT INTO memories_fts (rowid, content) SELECT row, content FROM memories "
UNINDEX = (
    "INSERT INTO memories_fts (memories_fts, rowid, content) "
    "SELECT 'delete', row, content FROM memories WHERE row = ?"
)
"""The keyword index keeps no text: to forget a memory it must be shown the old one again."""
