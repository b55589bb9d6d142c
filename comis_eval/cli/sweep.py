"""``comis-eval sweep``: search the knobs, and confirm what was found on unseen queries."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import click

from comis_eval.cli import options
from comis_eval.cli.swept import show_sweep
from comis_eval.cli.terminal import console, line, print_json, progress
from comis_eval.config import Config
from comis_eval.datasets import Dataset, load_dataset
from comis_eval.errors import StudyError, TrackingError
from comis_eval.tracking import SweepLog, Tracker, dashboard_command
from comis_eval.tracking.records import top_of
from comis_eval.tuning import folder as studies
from comis_eval.tuning.dashboard import write_journal
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.replay import objectives_of
from comis_eval.tuning.space import Space
from comis_eval.tuning.sweep import JOURNAL, SweepPlan, SweepResult, checked, sweep
from comis_eval.tuning.tracked import parent_of, run_of, texts_of

_OPTUNA = "optuna.journal"
_LEDGER = Path("experiments") / "ledger.jsonl"

_OPTIONS = (
    click.option("--trials", type=click.IntRange(min=0), default=1000, show_default=True,
                 help="How many trials the study shall have; 0 with --resume runs none."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                 help="Of the sampler, the splits and the tests."),
    click.option("--space", type=options.FILE, help="What may vary, as YAML; see docs/tuning.md."),
    click.option("--objective", "objectives", metavar="NAME", multiple=True, default=("utility",),
                 show_default=True, help="A metric or latency_ms; several give a front."),
    click.option("--sampler", type=click.Choice(["tpe", "random", "nsga2"]), default=None,
                 help="Who proposes trials; tpe, or nsga2 for several objectives."),
    click.option("--study", metavar="NAME", help="Name of the study; a free one when left out."),
    click.option("--storage", metavar="URL",
                 help="Keep the study in a database or journal:FILE instead of its folder."),
    click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True,
                 help="Processes that search; the same command elsewhere joins them."),
    click.option("--resume", is_flag=True, help="Go on with the study of that name."),
    click.option("--freeze-trust", is_flag=True, help="Leave trustAlpha as it is."),
    click.option("--no-confirm", is_flag=True, help="Do not look at held-out queries."),
    click.option("--tracking-uri", metavar="URI", help="MLflow's; sqlite under experiments/."),
    click.option("--no-track", is_flag=True, help="Leave MLflow alone."),
    click.option("--with-text", is_flag=True,
                 help="Upload the dataset's own files too; else no text leaves the machine."),
    click.option("--log-trials", metavar="WHICH", default="all", show_default=True,
                 help="Which trials become MLflow runs: all, top:N or none."),
    click.option("--out", type=click.Path(file_okay=False, path_type=Path),
                 help="Folder of the study; experiments/studies/NAME when left out."),
)  # fmt: skip


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command
@click.argument("dataset")
@options.configured
@options.any_pipeline
@_with_options
@click.option("--no-cache", is_flag=True, help="Neither read nor keep anything on disk.")
@options.JSON
def command(dataset: str, *, as_json: bool, **given: Any) -> None:
    """Search the knobs and confirm what was found on unseen queries.

    DATASET is a dataset folder, or the name of one in datasets/.

    \b
    Example:
        comis-eval sweep datasets/starter --trials 200 --seed 0
        comis-eval sweep datasets/starter --trials 200 --pipeline recall-tool
    """
    own = {name: given.pop(name) for name in _OWN}
    asked = options.Options(**given)
    current, labelled = asked.configuration(), load_dataset(dataset)
    plan, place = _plan(own, labelled, asked.pipeline)
    checked(plan, labelled, current)
    top_of(own["log_trials"])
    tracker = None if own["no_track"] else Tracker.open(own["tracking_uri"])
    started = round(time.time() * 1000)
    trouble: TrackingError | None = None
    with ExitStack() as stack:

        @cache
        def log() -> SweepLog | None:
            """Begun with the first trial: a sweep that cannot begin leaves no run behind."""
            if tracker is None:
                return None
            begun = parent_of(plan, labelled, current, started_ms=started)
            return stack.enter_context(tracker.sweep(begun, which=own["log_trials"]))

        result = _searched(plan, labelled, current, asked, log)
        studies.write(result, place)
        write_journal(result.study, place / _OPTUNA, plan.name)
        figures = _figures(place)
        if (opened := log()) is not None:
            try:
                files = _files(place, figures)
                if own["with_text"]:
                    files |= texts_of(labelled)
                _logged(opened, plan, labelled, current, result, files, started)
            except TrackingError as error:
                trouble = error
    if as_json:
        print_json(studies.as_json(result))
    else:
        out = console()
        show_sweep(result, out)
        line(out, f"study folder: {place}")
        study = shlex.quote(str(own["out"] or plan.name))
        journal = shlex.quote(str(place / _OPTUNA))
        line(out, f"fragment: comis-eval config export {study}")
        line(out, f"Optuna:   pip install optuna-dashboard && optuna-dashboard {journal}")
        if tracker is not None:
            line(out, f"MLflow:   {dashboard_command(own['tracking_uri'])}")
    if trouble is not None:
        raise trouble


_OWN = (
    "trials", "space", "objectives", "sampler", "study", "storage", "workers", "resume",
    "freeze_trust", "no_confirm", "tracking_uri", "no_track", "log_trials", "with_text", "out",
)  # fmt: skip


def _plan(own: dict[str, Any], dataset: Dataset, pipeline: str) -> tuple[SweepPlan, Path]:
    """What to search, and the study's folder."""
    root = studies.STUDIES
    if own["study"] is None and own["resume"]:
        raise StudyError("--resume goes on with a study by name; say --study NAME")
    name = studies.checked_name(own["study"] or studies.free_name(root, dataset.name))
    place = own["out"] or root / name
    objectives = tuple(objective.name for objective in objectives_of(own["objectives"]))
    sampler = own["sampler"] or ("tpe" if len(objectives) == 1 else "nsga2")
    context = click.get_current_context()
    there = (place / JOURNAL).exists()
    if own["storage"] is None and there and not own["resume"]:
        raise StudyError(
            f"{place}: the study is there already; go on with --resume, or take another --study"
        )
    if own["storage"] is None and own["resume"] and not there:
        raise StudyError(f"{place}: there is no study to go on with; leave out --resume")
    plan = SweepPlan(
        name=name,
        trials=own["trials"],
        seed=context.params["seed"],
        space=None if own["space"] is None else Space.load(own["space"]),
        space_file=own["space"],
        objectives=objectives,
        pipeline=pipeline,
        sampler=sampler,
        freeze_trust=own["freeze_trust"],
        folder=place,
        resume=own["resume"],
        storage=own["storage"],
        workers=own["workers"],
        confirm=not own["no_confirm"],
        ledger=_LEDGER,
    )
    return plan, place


def _searched(
    plan: SweepPlan,
    dataset: Dataset,
    current: Config,
    asked: options.Options,
    log: Callable[[], SweepLog | None],
) -> SweepResult:
    objectives = objectives_of(plan.objectives)
    with progress() as tell:

        def told(record: TrialRecord, best: TrialRecord | None) -> None:
            if (opened := log()) is not None:
                opened.add(run_of(record, objectives, at_ms=round(time.time() * 1000)))
            if tell is not None:
                figure = "" if best is None else f", best {best.values[0]:.4f}"
                tell("trials", record.number + 1, max(plan.trials, record.number + 1), figure)

        return sweep(
            dataset,
            current,
            plan,
            retriever=asked.retriever(dataset, tell),
            stage=tell,
            progress=told,
        )


def _logged(
    log: SweepLog,
    plan: SweepPlan,
    dataset: Dataset,
    current: Config,
    result: SweepResult,
    files: dict[str, Path],
    started: int,
) -> None:
    """Tell MLflow every trial, those of an earlier run included, and how it ended."""
    at = round(time.time() * 1000)
    for record in result.study.trials:
        log.add(run_of(record, result.study.objectives, at_ms=at))
    ended = parent_of(plan, dataset, current, started_ms=started, result=result, artifacts=files)
    log.finish(ended, planned=result.study.counts.run)


def _files(place: Path, figures: list[Path]) -> dict[str, Path]:
    """What of the study folder is uploaded: ids and numbers, no text."""
    names = (studies.TRIALS, *studies.FRAGMENTS.values(), studies.RESULT, JOURNAL)
    files = {name: place / name for name in names if (place / name).is_file()}
    return files | {f"figures/{path.name}": path for path in figures}


def _figures(place: Path) -> list[Path]:
    from comis_eval.report.files import save_figures

    return save_figures("study", place, place / "figures")
