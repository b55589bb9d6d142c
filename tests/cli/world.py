"""A small dataset on disk that keyword search alone can answer, and the command line on it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from comis_eval.cli import main
from comis_eval.datasets import Dataset, Judgments, write_dataset
from comis_eval.types import Memory, Query, Source, Tenancy, TrustLevel, Turn
from tests.builders import DAY, NOW, memory, query

SYSTEM, EXTERNAL = TrustLevel.SYSTEM, TrustLevel.EXTERNAL

HOSTILE = "kiln \x1b[2J\x1b]8;;http://x\x07 [bold red]no[/] :skull: \u202etxet\u202c \x9b31m end"
"""ANSI, an OSC link, rich markup, an emoji code, bidi overrides and a C1 control."""


def asked(text: str, id_: str, **fields: Any) -> Query:
    """A query that is a group of its own."""
    return query(text, id_, group=id_, **fields)


MEMORIES = (
    memory("kiln-hot", "the kiln runs at 1240 degrees for glaze", entities=("kiln",)),
    memory("kiln-old", "the kiln was bought in spring", created_at=NOW - 900 * DAY),
    memory("kiln-web", "kiln forum: never trust a kiln", trust_level=EXTERNAL),
    memory("kiln-twin", "the kiln runs at 1240 degrees for glaze", created_at=NOW - 3 * DAY),
    memory("tax", "the tax letter is in the blue folder", trust_level=SYSTEM, entities=("kiln",)),
    memory("hostile", HOSTILE, source=Source("\x1b[31mEve", "chat")),
    memory("theirs", "the kiln of another tenant", tenancy=Tenancy("t2", "a2")),
)
QUERIES = (
    asked("how hot is the kiln?", "q-hot", category="fact"),
    asked("where is the tax letter?", "q-tax", category="fact"),
    asked("and the folder?", "q-turns", category="context", turns=(Turn("user", "tax letter"),)),
    asked("who won the regatta?", "q-none", category="none", answerable=False),
)
JUDGED = {
    ("q-hot", "kiln-hot"): 3,
    ("q-hot", "kiln-old"): 0,
    ("q-tax", "tax"): 3,
    ("q-turns", "tax"): 2,
}


def world(
    folder: Path,
    memories: Sequence[Memory] = MEMORIES,
    queries: Sequence[Query] = QUERIES,
    judged: Mapping[tuple[str, str], int] = JUDGED,
    **fields: Any,
) -> str:
    """Write the dataset and return where it is."""
    rows = {m.id: row for row, m in enumerate(memories)}
    places = {q.id: place for place, q in enumerate(queries)}
    triples = [(places[q], rows[m], grade) for (q, m), grade in judged.items()]
    dataset = Dataset(
        name="world",
        version="7",
        licence="CC0-1.0",
        judged_by="people",
        memories=tuple(memories),
        queries=tuple(queries),
        judgments=Judgments.of(triples, n_queries=len(queries)),
        **fields,
    )
    return str(write_dataset(dataset, folder / "world"))


def run(*arguments: str, **options: Any) -> Result:
    """Run a command line as a script would; a bug is raised here."""
    result = CliRunner().invoke(main, arguments, **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def output(*arguments: str) -> str:
    """What a command that must succeed prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def document(*arguments: str) -> Any:
    """The JSON that a command prints."""
    return json.loads(output(*arguments, "--json"))


def error(*arguments: str) -> str:
    """The one line that an expected error prints, with exit status 2 and nothing else."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("comis-eval: ")
    return result.stderr


def is_tame(text: str) -> bool:
    """Whether nothing in a text can steer a terminal or hide."""
    return not any(
        (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u202c" for c in text
    )
