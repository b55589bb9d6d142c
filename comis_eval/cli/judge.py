"""``comis-eval judge``: label pooled candidates, compare judges, export their judgments."""

from __future__ import annotations

import getpass
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from comis_eval.cli import options
from comis_eval.cli.judged import (
    export_document,
    left_out_document,
    show_agreement,
    show_export,
    tell_agreement,
)
from comis_eval.cli.terminal import WRONG, console, line, print_json, progress
from comis_eval.datasets import UNJUDGED, Dataset, load_dataset
from comis_eval.errors import JudgeError
from comis_eval.files import replacing
from comis_eval.judge import agreement as agreements
from comis_eval.judge import export as exports
from comis_eval.judge.journal import Journal, Pair, grades, judge_name, read_all
from comis_eval.judge.page import document
from comis_eval.judge.pairs import ordered, read_pairs, second_pass, write_pairs
from comis_eval.judge.pool import PIPELINES, Pooled, default_pipelines, pool, pooled
from comis_eval.judge.server import JudgeServer
from comis_eval.judge.session import Session
from comis_eval.judge.shown import GUIDELINE
from comis_eval.pipelines.memory_recall import MemoryRecall

_WRITTEN = click.Path(dir_okay=False, path_type=Path)


@click.command
@click.argument("dataset")
@options.configured
@click.option("--judge", "name", metavar="NAME", help="Who judges; your login name.")
@click.option(
    "--pipelines",
    metavar="NAME,...",
    help=f"What is pooled: {', '.join(PIPELINES)}, or configuration files; all that fit.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="To which rank each pipeline's ranking is pooled.",
)
@click.option("--pairs", type=options.FILE, help="Judge these instead: query and memory, a line.")
@click.option(
    "--second-pass",
    "share",
    metavar="SHARE",
    type=float,
    help="Judge a drawn share of what was judged once more, blind.",
)
@click.option("--of", metavar="NAME", help="With --second-pass: whose judgments; your own.")
@click.option("--unjudged", is_flag=True, help="Leave out pairs that qrels.tsv has.")
@click.option("--guideline", type=options.FILE, help="Show this text instead of ours.")
@click.option(
    "--judgments",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where a file per judge is kept; DATASET/judgments.",
)
@click.option("--agreement", is_flag=True, help="Say how far the judges agree; open no page.")
@click.option("--export", is_flag=True, help="Merge the judgments into qrels.tsv; open no page.")
@click.option("--resolver", metavar="NAME", help="With --export: whose grade decides.")
@click.option(
    "--replace", is_flag=True, help="With --export: take the judges' grade where qrels.tsv differs."
)
@click.option(
    "--disagreements",
    type=_WRITTEN,
    help="With --agreement or --export: list them here for --pairs.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the order."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page; any free one.")
@click.option("--no-browser", is_flag=True, help="Only print the page's address.")
@click.option("--no-cache", is_flag=True, help="Neither read nor keep embeddings on disk.")
@options.JSON
def command(
    dataset: str,
    *,
    agreement: bool,
    export: bool,
    judgments: Path | None,
    resolver: str | None,
    replace: bool,
    disagreements: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Open a page to grade memories on, 0 to 3, and turn the grades into qrels.

    The candidates of several pipelines are pooled and shown without saying who found them.
    Keys: 0-3 grade, u takes back, s puts off. Every judgment is on disk before the next pair
    is shown; started again, it goes on where it ended. The dataset may still be unlabelled.

    \b
    Example:
        comis-eval judge mine --judge ada
        comis-eval judge mine --agreement --disagreements apart.tsv
        comis-eval judge mine --judge chair --pairs apart.tsv
        comis-eval judge mine --export --resolver chair
    """
    _check(agreement, export, resolver, replace, disagreements, as_json)
    labelled = load_dataset(dataset, labelled=False)
    folder = judgments or _home(labelled)
    if not (agreement or export):
        _judge(labelled, folder, _Asked(**given))
        return
    taken = _taken(labelled, folder)
    settled, unsettled = exports.merged(taken.grades, resolver=resolver)
    if disagreements is not None:
        with replacing(disagreements) as partial:
            partial.write_text(write_pairs([u.pair for u in unsettled]), encoding="utf-8")
    if agreement:
        tell_agreement(taken, unsettled, as_json)
        return
    planned = exports.plan(labelled, settled, unsettled, replace=replace)
    path = exports.write(labelled, planned, replace=replace)
    if as_json:
        print_json(export_document(path, planned, replace) | left_out_document(taken))
    else:
        show_export(path, planned, taken, replace, console())


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What says which pairs are judged, by whom and where."""

    name: str | None
    pipelines: str | None
    depth: int
    pairs: Path | None
    share: float | None
    of: str | None
    unjudged: bool
    guideline: Path | None
    seed: int
    port: int
    no_browser: bool
    no_cache: bool
    config: Path | None
    agent: str | None
    overrides: tuple[str, ...]
    semantics: str | None
    lanes: str | None
    embedder: str | None

    @property
    def options(self) -> options.Options:
        return options.Options(
            config=self.config,
            agent=self.agent,
            overrides=self.overrides,
            semantics=self.semantics,
            lanes=self.lanes,
            embedder=self.embedder,
            seed=self.seed,
            no_cache=self.no_cache,
        )


def _check(
    agreement: bool,
    export: bool,
    resolver: str | None,
    replace: bool,
    disagreements: Path | None,
    as_json: bool,
) -> None:
    if agreement and export:
        raise click.UsageError("--agreement and --export are two things; ask for one")
    if not export and (resolver is not None or replace):
        raise click.UsageError("--resolver and --replace belong to --export")
    if not (agreement or export) and (disagreements is not None or as_json):
        raise click.UsageError("--disagreements and --json belong to --agreement and --export")


def _home(dataset: Dataset) -> Path:
    if dataset.folder is None:
        raise JudgeError(f"{dataset.name} has no folder; name one with --judgments")
    return dataset.folder / "judgments"


def _judge(dataset: Dataset, folder: Path, asked: _Asked) -> None:
    judge = judge_name(asked.name if asked.name is not None else _login())
    if sum(given is not None for given in (asked.pairs, asked.share, asked.pipelines)) > 1:
        raise click.UsageError("--pipelines, --pairs and --second-pass each say what is judged")
    if asked.of is not None and asked.share is None:
        raise click.UsageError("--of belongs to --second-pass")
    guideline = GUIDELINE if asked.guideline is None else _text_of(asked.guideline)
    sitting = 2 if asked.share is not None and (asked.of or judge) == judge else 1
    out = console(err=True)
    pairs = _pairs(dataset, folder, judge, asked)
    if asked.unjudged:
        pairs = _without_grade(dataset, pairs)
    if not dataset.queries:
        raise JudgeError(
            f"{dataset.name} has no queries; draw some with `comis-eval sample` and copy its "
            "queries.jsonl here"
        )
    if not pairs:
        raise JudgeError("there is nothing to judge: no pair is left; see --depth and --pipelines")
    shuffled = ordered(pairs, judge=judge, seed=asked.seed, sitting=sitting)
    journal = Journal(folder, judge)
    session = Session(dataset, shuffled, journal, sitting=sitting)
    try:
        if journal.healed is not None:
            line(out, f"{journal.path}: its last line was cut off before it was taken and is gone: "
                 f"{journal.healed} - what it was about is asked again", WRONG)  # fmt: skip
        if session.stale:
            line(out, f"{len(session.stale)} pairs are asked again: their texts have changed since")
        before = session.progress()
        page = document(judge=judge, guideline=guideline)
        server = JudgeServer(
            session, page, agreement=lambda: _agreement_table(dataset, folder), port=asked.port
        )
        line(out, f"{before.graded} of {before.total} judged; judge the others at {server.url}")
        line(out, "press Ctrl-C to end")
        if not asked.no_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            out.print()
        finally:
            server.server_close()
    finally:
        session.close()
    _summary(dataset, folder, session, before.graded)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise JudgeError("who judges? say so with --judge NAME") from error


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise JudgeError(f"--guideline {path}: not UTF-8; save it as UTF-8") from error


def _pairs(dataset: Dataset, folder: Path, judge: str, asked: _Asked) -> list[Pair]:
    if asked.pairs is not None:
        return read_pairs(asked.pairs, dataset)
    if asked.share is not None:
        whose = judge_name(asked.of) if asked.of is not None else judge
        held = read_all(folder)
        if whose not in held:
            raise JudgeError(f"--second-pass: {whose} has judged nothing in {folder} yet")
        grader = agreements.Grader(whose, 1)
        known = agreements.given(dataset, {whose: held[whose]}).grades.get(grader, {})
        return second_pass(known, share=asked.share, seed=asked.seed)
    with progress() as tell:
        retriever = asked.options.retriever(dataset, tell)
        config = asked.options.configuration()
        names = asked.pipelines.split(",") if asked.pipelines else default_pipelines(dataset)
        sources = []
        for name in names:
            if name not in PIPELINES and Path(name).is_file():
                own = asked.options.configuration(Path(name))
                sources.append(
                    Pooled(name, partial(MemoryRecall(retriever, own).rank, dataset.queries))
                )
            else:
                sources.append(pooled(name, retriever, config))
        return pool(dataset, sources, depth=asked.depth)


def _without_grade(dataset: Dataset, pairs: Sequence[Pair]) -> list[Pair]:
    import numpy as np

    places = np.array(
        [(dataset.position_of[p.query_id], dataset.row_of[p.memory_id]) for p in pairs]
    ).reshape(-1, 2)
    found = dataset.judgments.grade(places[:, 0], places[:, 1])
    return [pair for pair, grade in zip(pairs, found, strict=True) if grade == UNJUDGED]


def _taken(dataset: Dataset, folder: Path) -> agreements.Given:
    held = read_all(folder)
    if not held:
        raise JudgeError(f"there are no judgments in {folder}; make some with comis-eval judge")
    for judge, file in held.items():
        if file.torn:
            line(console(err=True), f"{folder / judge}.jsonl ends in a line that is cut off or "
                 "still being written; it does not count", WRONG)  # fmt: skip
    return agreements.given(dataset, held)


def _agreement_table(dataset: Dataset, folder: Path) -> Mapping[str, Any]:
    found = agreements.compared(agreements.given(dataset, read_all(folder)).grades)
    return {"head": list(agreements.TABLE), "rows": agreements.rows(found)}


def _summary(dataset: Dataset, folder: Path, session: Session, before: int) -> None:
    out = console()
    now, judge = session.progress(), session.journal.judge
    line(
        out,
        f"{judge}: {now.graded - before} judged now, {now.graded} of {now.total} in all, "
        f"{now.skipped} put off; kept in {session.journal.path}",
    )
    found = agreements.compared(agreements.given(dataset, read_all(folder)).grades)
    if found:
        show_agreement(found, out)
    total = len(grades(session.journal.entries, sitting=1))
    if total:
        line(out, f"export: comis-eval judge {dataset.folder} --export")
