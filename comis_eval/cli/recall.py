"""``comis-eval recall``: one query, every stage of the way, and why each memory is in or out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from comis_eval.candidates import Rankings
from comis_eval.cli import options
from comis_eval.cli.stages import recall_json, show_recall
from comis_eval.cli.terminal import cell, console, line, more, print_json, progress, table
from comis_eval.cli.tool_stages import call_json, show_call
from comis_eval.comparison import Parting, first_parting
from comis_eval.config import Config
from comis_eval.config_file import parse_yaml
from comis_eval.datasets import Dataset
from comis_eval.errors import DatasetError, RequestError
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stages.present import iso_date
from comis_eval.text import close_matches, printable
from comis_eval.types import Filters, Query, Tenancy, Turn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MS = 2**53 - 1


class Moment(click.ParamType[int]):
    """A time: ISO 8601 (UTC when it names no zone), or milliseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a time as milliseconds."""
        try:
            moment = int(value)
        except ValueError:
            moment = self._of_iso(str(value), param, ctx)
        if abs(moment) > _MAX_MS:
            self.fail(f"{value!r} is further than 2^53 milliseconds from 1970", param, ctx)
        return moment

    def _of_iso(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            parsed = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                f"{text!r} is neither ISO 8601 (2026-05-28T12:00Z) nor milliseconds", param, ctx
            )
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)


@click.command
@click.argument("dataset")
@click.argument("text", metavar="QUERY", required=False)
@options.configured
@options.run
@click.option(
    "--turn", "turns", metavar="TEXT", multiple=True, help="An earlier user turn; oldest first."
)
@click.option("--tenant", metavar="ID", help="Whose memories; default: most queries' tenant.")
@click.option("--agent-id", metavar="ID", help="Which agent's; default: most queries' agent.")
@click.option("--now", type=Moment(), help="Moment of asking; default: most queries' now.")
@click.option(
    "--parameter",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="Of the recall tool, such as limit=3 or tags_any=[a, b]; may be repeated.",
)
@click.option("--query-id", metavar="ID", help="Ask one of the dataset's queries instead.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Rows shown of each table.",
)
@click.option(
    "--against",
    type=options.FILE,
    help="A second configuration: show the first stage at which the two part.",
)
@options.JSON
def command(
    dataset: str,
    text: str | None,
    *,
    query_id: str | None,
    limit: int,
    against: Path | None,
    as_json: bool,
    turns: tuple[str, ...],
    parameters: tuple[str, ...],
    tenant: str | None,
    agent_id: str | None,
    now: int | None,
    **given: Any,
) -> None:
    """Answer one query and show every stage of the way.

    DATASET is a dataset folder, or the name of one in datasets/. Labels are not used; with
    --query-id they are shown beside the memories.

    \b
    Example:
        comis-eval recall datasets/starter "when is the dentist?" --turn "my appointments"
        comis-eval recall datasets/starter dentist --pipeline recall-tool --parameter limit=3
    """
    own: dict[str, object] = {
        "QUERY": text,
        "--turn": turns or None,
        "--parameter": parameters or None,
        "--tenant": tenant,
        "--agent-id": agent_id,
        "--now": now,
    }
    _check_one_question(own, query_id)
    asked = options.Options(**given)
    _check_fits(asked.pipeline, turns, parameters)
    config = asked.configuration()
    other = None if against is None else asked.configuration(against)
    chosen = asked.dataset(dataset)
    query = (
        _posed(
            chosen, text or "", turns, _filters(parameters), tenant=tenant, agent=agent_id, now=now
        )
        if query_id is None
        else _known(chosen, query_id)
    )
    answer = _call if asked.pipeline == RecallTool.name else _recall
    with progress() as tell:
        retriever = asked.retriever(chosen, tell)
        first = answer(retriever, config, query)
        second = None if other is None else answer(retriever, other, query)

    grades = _grades(chosen, query)
    parting = None if second is None else first_parting(first.rankings, second.rankings, 0)
    if as_json:
        document = first.document(grades)
        if second is not None:
            document["against"] = second.document(grades)
            document["parting"] = None if parting is None else parting._asdict()
        print_json(document)
        return
    out = console()
    _show_question(query, config, out)
    if against is not None:
        _show_parting(parting, against, limit, out)
    first.show(grades, limit, out)


class _Answer(NamedTuple):
    """One answer, however it came about.

    Attributes:
        rankings: Its stages.
        document: Tells it as JSON, given the grades.
        show: Prints it, given the grades and how many rows a table may have.
    """

    rankings: Rankings
    document: Callable[[dict[str, int]], dict[str, Any]]
    show: Callable[[dict[str, int], int, Console], None]


def _recall(retriever: Retriever, config: Config, query: Query) -> _Answer:
    rankings = MemoryRecall(retriever, config).live(query)
    told = result(rankings, 0)
    return _Answer(
        rankings,
        lambda grades: recall_json(rankings, told, grades=grades),
        lambda grades, limit, out: show_recall(rankings, told, grades=grades, limit=limit, out=out),
    )


def _call(retriever: Retriever, config: Config, query: Query) -> _Answer:
    paged = RecallTool(retriever, config).live(query)
    return _Answer(
        paged.rankings,
        lambda grades: call_json(paged, grades=grades),
        lambda grades, limit, out: show_call(paged, grades=grades, limit=limit, out=out),
    )


def _check_fits(pipeline: str, turns: Iterable[str], parameters: Iterable[str]) -> None:
    if pipeline == RecallTool.name and turns:
        raise click.UsageError(
            "--turn is of memory-recall: the recall tool is asked by its query alone",
            click.get_current_context(),
        )
    if pipeline != RecallTool.name and parameters:
        raise click.UsageError(
            "--parameter is of the recall tool; add --pipeline recall-tool",
            click.get_current_context(),
        )


def _filters(parameters: Iterable[str]) -> Filters:
    """Parameters of a call as a query has them; their values are YAML."""
    given: dict[str, Any] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not equals:
            raise RequestError(
                f"--parameter: {printable(parameter, limit=80)!r} is not NAME=VALUE, "
                "such as limit=3"
            )
        where = f"--parameter {printable(name, limit=60)}"
        if name in given:
            raise RequestError(f"{where}: given twice; a list is written [a, b]")
        given[name] = parse_yaml(value, where=where)
    return Filters(parameters=given)


def _check_one_question(own: dict[str, object], query_id: str | None) -> None:
    stated = [name for name, value in own.items() if value is not None]
    if query_id is None and own["QUERY"] is None:
        raise click.UsageError(
            "what is asked? give QUERY, or --query-id", click.get_current_context()
        )
    if query_id is not None and stated:
        raise click.UsageError(
            f"--query-id asks a query as the dataset has it; leave out {', '.join(stated)}",
            click.get_current_context(),
        )


def _known(dataset: Dataset, query_id: str) -> Query:
    if query_id not in dataset.position_of:
        near = close_matches(query_id, dataset.position_of)
        raise DatasetError(
            f"{dataset.name}: no query {printable(query_id, limit=60)!r} among "
            f"{len(dataset.queries)}{f'; {near}' if near else ''}"
        )
    return dataset.queries[dataset.position_of[query_id]]


def _posed(
    dataset: Dataset,
    text: str,
    turns: Iterable[str],
    filters: Filters,
    *,
    tenant: str | None,
    agent: str | None,
    now: int | None,
) -> Query:
    """A query of one's own, asked by whom and when most of the dataset's queries are."""
    return Query(
        id="asked",
        text=text,
        turns=tuple(Turn("user", turn) for turn in turns),
        now=dataset.usual_now if now is None else now,
        tenancy=_asker(dataset, tenant, agent),
        filters=filters,
    )


def _asker(dataset: Dataset, tenant: str | None, agent: str | None) -> Tenancy:
    """The most common tenancy that has the tenant and agent named; queries count first."""
    asking = [query.tenancy for query in dataset.queries]
    owning = [memory.tenancy for memory in dataset.memories]
    for tenancies in (asking, owning):
        fitting = [t for t in tenancies if tenant in (None, t[0]) and agent in (None, t[1])]
        if fitting:
            return Counter(fitting).most_common(1)[0][0]
    known = ", ".join(f"{t}/{a}" for t, a in dict.fromkeys(owning))
    named = ", ".join(
        f"{option} {value}"
        for option, value in (("--tenant", tenant), ("--agent-id", agent))
        if value is not None
    )
    raise DatasetError(
        f"{printable(named)}: nothing in {dataset.name} is theirs; tenants and agents there: "
        f"{printable(known, limit=200)}"
    )


def _grades(dataset: Dataset, query: Query) -> dict[str, int]:
    """Judgments of one of the dataset's queries by memory id, the best first."""
    if (
        query.id not in dataset.position_of
        or dataset.queries[dataset.position_of[query.id]] != query
    ):
        return {}
    judged = dataset.judgments.judged(dataset.position_of[query.id])
    pairs = zip(judged.rows.tolist(), judged.grades.tolist(), strict=True)
    graded = {dataset.memories[row].id: grade for row, grade in pairs}
    return dict(sorted(graded.items(), key=lambda item: -item[1]))


def _show_question(query: Query, config: Config, out: Console) -> None:
    tenant, agent = query.tenancy
    minutes = query.now // 60_000 % 1_440
    asked = f"{iso_date(query.now)}T{minutes // 60:02d}:{minutes % 60:02d}+00:00"
    line(out, f"query {query.id}: {query.text or '(blank)'}", "bold")
    for turn in query.turns:
        line(out, f"  earlier, {turn.role}: {turn.text}")
    line(
        out,
        f"asked by tenant {tenant}, agent {agent} at {asked} ({query.now}); "
        f"semantics {config.semantics.preset}",
    )
    out.print()


def _show_parting(parting: Parting | None, against: Path, limit: int, out: Console) -> None:
    """Say where the second configuration first does otherwise; the tables are the first's."""
    if parting is None:
        line(out, f"{against}: the same at every stage", "bold")
        out.print()
        return
    line(out, f"{against} first parts at {parting.stage}: {parting.what}", "bold")
    sides = list(zip_longest(parting.first, parting.second))
    rows = [
        (
            str(place),
            *(cell(memory_id, limit=40) for memory_id in pair),
            "" if pair[0] == pair[1] else "differs",
        )
        for place, pair in enumerate(sides[:limit], start=1)
    ]
    if rows:
        out.print(table(["place", "first", "second", ""], rows, numbers=["place"]))
    rest = more(limit, len(sides))
    if rest is not None:
        line(out, rest)
    out.print()
