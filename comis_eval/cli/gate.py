"""``comis-eval gate``: may the candidate take the baseline's place?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from comis_eval.cli import options
from comis_eval.cli.terminal import console, line, print_json
from comis_eval.cli.verdicts import show_verdict
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation, read_evaluation
from comis_eval.gating import (
    BASELINES,
    Policy,
    Reference,
    Verdict,
    as_document,
    at_reference,
    gate,
    junit_xml,
    load,
    load_policy,
    markdown_comment,
)
from comis_eval.gating.baseline import place_of
from comis_eval.gating.verdict import Undecided

_WRITTEN = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=BASELINES,
    show_default=True,
    help="Where baselines live.",
)


@click.command
@click.argument("baseline")
@click.argument("candidate", type=options.FILE)
@click.option("--policy", type=click.Path(path_type=Path), help="YAML; the defaults without it.")
@click.option(
    "--baseline-ref",
    metavar="REF",
    help="Take baseline, policy and dataset from this commit, so no change blesses itself.",
)
@click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    help="Where the dataset's folder is, for --baseline-ref; datasets/NAME without it.",
)
@FOLDER
@click.option(
    "--undecided",
    type=click.Choice(["report", "pass", "fail"]),
    default="report",
    show_default=True,
    help="Exit status when too few queries can tell: 4, 0 or 1.",
)
@click.option("--markdown", type=_WRITTEN, help="Write a comment for a pull request.")
@click.option("--junit", type=_WRITTEN, help="Write JUnit XML.")
@options.JSON
@click.pass_context
def command(
    ctx: click.Context,
    baseline: str,
    candidate: Path,
    *,
    policy: Path | None,
    baseline_ref: str | None,
    dataset: Path | None,
    folder: Path,
    undecided: Undecided,
    markdown: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Say whether a candidate may take a baseline's place.

    BASELINE is a name (see `comis-eval baseline`) or the file of a baseline or of an
    evaluation, CANDIDATE the file of an evaluation. Exits 0 for pass and improvement, 1 for
    a regression, failed queries or dead lanes, 3 for a leak, 4 when undecided, and 2 when
    no verdict is possible.

    \b
    Example:
        comis-eval gate starter candidate.json --markdown comment.md
    """
    for written in (markdown, junit):
        if written is not None and any(
            read is not None and written.resolve() == Path(read).resolve()
            for read in (candidate, baseline, policy)
        ):
            raise EvaluationError(f"{written}: is read, so it is not written to; name another file")
        # A verdict that is not reached must not leave an older one to be read.
        _write(written, lambda path: path.unlink(missing_ok=True))
    measured = read_evaluation(candidate)
    with _inputs(baseline, policy, baseline_ref, dataset, folder, measured) as (
        before,
        file,
        rules,
        at,
    ):
        verdict = gate(
            before,
            measured,
            rules,
            undecided=undecided,
            labels=(baseline, str(candidate)),
            files=(file, candidate),
            reference=at,
        )
    _write(markdown, lambda path: path.write_text(markdown_comment(verdict), encoding="utf-8"))
    _write(junit, lambda path: path.write_text(junit_xml(verdict), encoding="utf-8"))
    _show(verdict, as_json=as_json)
    ctx.exit(verdict.exit_status)


@contextmanager
def _inputs(
    baseline: str,
    policy: Path | None,
    ref: str | None,
    dataset: Path | None,
    folder: Path,
    candidate: Evaluation,
) -> Iterator[tuple[Evaluation, Path, Policy, Reference | None]]:
    """The baseline, beside which file its trace lies, the policy, and the commit of both."""
    if ref is None:
        before, file = load(baseline, folder=folder)
        yield before, file, Policy() if policy is None else load_policy(policy), None
        return
    there = place_of(baseline, folder=folder)
    held = dataset or Path("datasets") / candidate.dataset["name"]
    with at_reference(ref, baseline=there, policy=policy, dataset=held) as at:
        before, _ = load(str(at.baseline), folder=folder)
        yield before, there, Policy() if at.policy is None else load_policy(at.policy), at


def _write(path: Path | None, write: Callable[[Path], object]) -> None:
    if path is None:
        return
    try:
        write(path)
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be written: {error.strerror}") from error


def _show(verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        print_json(as_document(verdict))
        line(console(err=True), f"exit status {verdict.exit_status}: {verdict.outcome}")
    else:
        show_verdict(verdict, out=console())
