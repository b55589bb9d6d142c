"""``comis-eval import``: from a file of another format to a dataset folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from comis_eval.cli.terminal import WRONG, console, line, more, print_json, progress, table, titled
from comis_eval.datasets.importers import (
    FORMATS,
    MAX_BAD,
    PARTS,
    TOPIC_FIELDS,
    UNITS,
    ImportReport,
    Redactor,
    Request,
)
from comis_eval.datasets.importers.redact import read_key
from comis_eval.datasets.write import check_free
from comis_eval.errors import DatasetError
from comis_eval.text import printable

# --out and --json are spelled here: options.py brings the evaluation, which no import needs,
# and its start would be a good part of a small import.
_LISTED = 50
_FILE = click.Path(dir_okay=False, path_type=Path)
_WITHIN = click.Path(path_type=Path)
_PAIR = re.compile(r"(-?[0-9]{1,3})=([0-3])")
_NAMES = {"redactor": "--redact", "grades": "--grade"}


def _grades(
    ctx: click.Context,  # noqa: ARG001
    option: click.Parameter,  # noqa: ARG001
    given: tuple[str, ...],
) -> tuple[tuple[int, int], ...]:
    """Read each FROM=TO; a grade becomes one thing."""
    pairs: dict[int, int] = {}
    for text in given:
        parts = _PAIR.fullmatch(text)
        if parts is None:
            raise click.BadParameter(
                f"'{printable(text, limit=40)}' is not FROM=TO, TO from 0 to 3, such as 4=3"
            )
        if pairs.setdefault(int(parts[1]), int(parts[2])) != int(parts[2]):
            raise click.BadParameter(f"grade {parts[1]} is to become two things")
    return tuple(pairs.items())


@click.command
@click.argument("format_", metavar="FORMAT")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    required=True,
    help="The dataset folder to make; it must not exist, or be empty.",
)
@click.option("--redact", is_flag=True, help="Replace what identifies people or opens doors.")
@click.option(
    "--redact-key",
    metavar="FILE",
    type=_FILE,
    help="Key of the placeholders, made when it is not there; default: a new one, kept nowhere.",
)
@click.option(
    "--max-bad",
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    help=f"Share of malformed records that is still imported.  [default: {MAX_BAD}]",
)
@click.option("--tenant", metavar="ID", help="Take this tenant's memories alone.")
@click.option("--agent", metavar="ID", help="Take this agent's memories alone.")
@click.option("--no-embeddings", is_flag=True, help="Leave the database's vectors out.")
@click.option("--database", metavar="FILE", type=_FILE, help="The memory.db of a recall trace.")
@click.option(
    "--query-log",
    metavar="FILE",
    type=_FILE,
    help="Your own queries, a text a line (or .jsonl with text), to name a trace's queries.",
)
@click.option(
    "--usefulness",
    metavar="FILE",
    type=_FILE,
    help="CSV of memory,used,ignored for weak labels, instead of the database's counts.",
)
@click.option(
    "--unit",
    type=click.Choice(UNITS),
    help=f"What of LongMemEval becomes a memory.  [default: {UNITS[0]}]",
)
@click.option(
    "--split",
    type=click.Choice(tuple(PARTS)),
    help="The only file of a BEIR folder's judgments to take; default: each, as fixed splits.",
)
@click.option("--docs", metavar="PATH", type=_WITHIN, help="Documents in a TREC folder.")
@click.option("--topics", metavar="PATH", type=_WITHIN, help="Topics in a TREC folder.")
@click.option("--qrels", metavar="PATH", type=_WITHIN, help="Judgments in a TREC folder.")
@click.option(
    "--topics-by-position", is_flag=True, help="TREC qrels count topics in file order, from 1."
)
@click.option(
    "--topic-field",
    type=click.Choice(tuple(TOPIC_FIELDS)),
    help="What of a TREC topic is asked.  [default: title]",
)
@click.option(
    "--grade",
    "grades",
    metavar="FROM=TO",
    multiple=True,
    callback=_grades,
    help="What a grade of BEIR or TREC becomes; may be repeated. Above 3 it must be said.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(
    format_: str,
    source: Path,
    *,
    folder: Path,
    as_json: bool,
    redact: bool,
    redact_key: Path | None,
    **given: Any,
) -> None:
    """Turn a file of another format into a dataset folder.

    FORMAT is locomo, longmemeval, beir (a folder), trec (a folder with documents, topics and
    qrels), comis (a memory.db) or recall-trace. Prints how many records came in,
    went out and were dropped, and every reason. The source is only read.

    \b
    Example:
        comis-eval import comis memory.db --out datasets/mine --redact
    """
    if format_ not in FORMATS:
        raise DatasetError(
            f"there is no format '{printable(format_, limit=40)}'; there are {', '.join(FORMATS)}"
        )
    if redact_key is not None and not redact:
        raise click.UsageError("--redact-key needs --redact", click.get_current_context())
    _check_options(format_, given, redact=redact)
    check_free(folder)  # early: writing would refuse it after minutes of importing
    redactor = None
    if redact:
        redactor = Redactor() if redact_key is None else Redactor(read_key(redact_key))
    with progress() as tell:
        report = FORMATS[format_].run(
            Request(source=source, folder=folder, redactor=redactor, tell=tell, **given)
        )
    if as_json:
        print_json(_document(report, folder))
    else:
        _show(report, folder, console())


def _check_options(format_: str, given: dict[str, Any], *, redact: bool) -> None:
    """Refuse what the format does not heed: a --redact that does nothing would be a leak."""
    stated = [name for name, value in given.items() if value not in (None, False, ())]
    stated += ["redactor"] * redact
    foreign = [name for name in stated if name not in FORMATS[format_].options]
    if foreign:
        told = [_option(name) for name in foreign]
        raise click.UsageError(
            f"the format {format_} does not take {', '.join(told)}", click.get_current_context()
        )


def _option(name: str) -> str:
    return _NAMES.get(name, "--" + name.replace("_", "-"))


def _document(report: ImportReport, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "fingerprint": report.fingerprint,
        "counts": {
            kind: {**count._asdict(), "dropped": count.dropped}
            for kind, count in report.counts.items()
        },
        "reasons": report.reasons,
        "notes": [note._asdict() for note in report.notes],
    }


def _show(report: ImportReport, folder: Path, out: Console) -> None:
    rows = [
        (kind, str(count.found), str(count.kept), str(count.dropped))
        for kind, count in report.counts.items()
    ]
    columns = ["", "in", "out", "dropped"]
    titled(out, f"{report.name} -> {folder}", table(columns, rows, numbers=columns[1:]))
    for note in report.notes[:_LISTED]:
        line(out, str(note), WRONG if "malformed" in note.done else "")
    rest = more(_LISTED, len(report.notes), "--json lists all")
    if rest is not None:
        line(out, rest)
    if report.fingerprint is not None:
        line(out, f"fingerprint {report.fingerprint}")
