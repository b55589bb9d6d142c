"""A whole sweep: retrieve once, search, choose, confirm, and say what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from comis_eval.config import Config, config_hash
from comis_eval.datasets import Dataset, load_dataset
from comis_eval.errors import ConfigError, StudyError
from comis_eval.evaluation import evaluate
from comis_eval.evaluation.inputs import objective_of
from comis_eval.evaluation.measure import LOCAL, check_serves
from comis_eval.metrics import ALL, leaks, means, parse
from comis_eval.metrics.lists import given
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tuning import ledger
from comis_eval.tuning.answers import enforces, retrieved
from comis_eval.tuning.confirm import Choice
from comis_eval.tuning.flat import flat_region
from comis_eval.tuning.holdout import FOLDS, HeldOut, chosen, held_out, parts_of
from comis_eval.tuning.importance import importances as importances_of
from comis_eval.tuning.parts import Bench
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.replay import Replay, objectives_of
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.select import Decision, decide
from comis_eval.tuning.space import Space
from comis_eval.tuning.study import Progress, run_study
from comis_eval.tuning.task import Plan, Task
from comis_eval.tuning.tool_space import tool_space
from comis_eval.tuning.workers import WorkerSpec, run_workers

JOURNAL = "study.jsonl"
"""Name of a study's journal in its folder."""

Stage = Callable[[str, int, int], None]
"""Told which part of the sweep runs, how far it is, and how far it goes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepResult:
    """What a sweep found and what it advises.

    Attributes:
        name: Of the study.
        dataset: What was searched on.
        current: The configuration in use.
        seed: Of sampler, splits and tests.
        sampler: Who proposed trials.
        study: Every trial.
        choice: The winner among the best; None when several objectives leave a front.
        held_out: The one look at other queries; None when not asked for.
        decision: What to do.
        pipeline: Whose knobs were searched.
        leaked: Memories that an enforced policy keeps out and the winner lets in, anywhere.
        judged: judged@k of current and winner on all queries.
        unjudged: (query id, memory id) pairs that the winner shows and nobody judged.
        importances: Share of the variation that each knob explains, by PED-ANOVA.
        flat: What each knob may be within noise of the best.
        references: Plain rankings of the same memories beside current and winner: figures of
            the whole dataset by row, then by metric.
        notes: What the user should know.
    """

    name: str
    dataset: Dataset
    current: Config
    seed: int
    sampler: str
    study: StudyResult
    choice: Choice | None
    held_out: HeldOut | None
    decision: Decision
    pipeline: str = "memory-recall"
    leaked: int = 0
    judged: tuple[float, float] = (float("nan"), float("nan"))
    unjudged: tuple[tuple[str, str], ...] = ()
    importances: Mapping[str, float] = field(default_factory=dict)
    flat: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    references: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def winner(self) -> TrialRecord | None:
        """The trial that was chosen; None when there is a front instead."""
        return None if self.choice is None else self.study.trial(self.choice.number)

    @property
    def recommended(self) -> Config:
        """The configuration to use: the winner's when it is to be adopted, else the current."""
        if self.decision.outcome == "adopt" and self.choice is not None:
            return self.study.config(self.choice.number)
        return self.current


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """What to search, how long, and where to keep it.

    Attributes:
        name: Of the study.
        trials: How many the study shall have; 0, to resume: no more than it has.
        seed: Of sampler, splits and tests.
        space: What varies; None: the default for the dataset.
        objectives: Names of metrics, or ``latency_ms``; one is confirmed on held-out queries.
        pipeline: Whose knobs are searched.
        sampler: tpe, random or nsga2.
        freeze_trust: Leave trustAlpha out of the default space.
        folder: Where journals are kept; None keeps the study in memory.
        resume: Go on with what is in the folder.
        storage: An Optuna storage instead of the journal in the folder.
        workers: How many processes search; more than one needs a storage that several can
            write to, and a dataset that was read from a folder.
        space_file: Where the space was read from: workers read it there too.
        confirm: Look at held-out queries at the end.
        ledger: Where openings of held-out queries are written down; None: nowhere.
    """

    name: str
    trials: int = 1000
    seed: int = 0
    space: Space | None = None
    objectives: tuple[str, ...] = ("utility",)
    pipeline: str = "memory-recall"
    sampler: str = "tpe"
    freeze_trust: bool = False
    folder: Path | None = None
    resume: bool = False
    storage: str | None = None
    workers: int = 1
    space_file: Path | None = None
    confirm: bool = True
    ledger: Path | None = None


def sweep(
    dataset: Dataset,
    current: Config | None = None,
    plan: SweepPlan | None = None,
    *,
    retriever: Retriever | None = None,
    stage: Stage | None = None,
    progress: Progress | None = None,
) -> SweepResult:
    """Search the knobs of recall and say whether another setting is better on unseen queries.

    Sets of 1,500 queries or more are cut in three by group: the search sees ``tune``, the
    best trials compete on ``select``, the winner is measured once on ``test``. Smaller sets
    are searched whole, and again without each of five parts, so that every query is answered
    by a winner whose search never saw it.

    Args:
        dataset: Queries with judgments.
        current: The configuration in use, trial 0; the documented defaults when left out.
        plan: How to search; a thousand trials of the default space when left out.
        retriever: Indexes and models over the same memories, when they are at hand.
        stage: Told of retrieval and of the repeated searches.
        progress: Told of each trial of the study.

    Raises:
        ConfigError: If a range leaves the configuration's bounds, before the first trial.
        StudyError: If the study cannot be begun or resumed.
    """
    current = current or Config()
    plan = plan or SweepPlan(name=dataset.name)
    retriever = retriever or Retriever(dataset, progress=stage)
    check_serves(retriever, dataset, current)
    space = checked(plan, dataset, current)
    table = retrieved(retriever, dataset, current, space, plan.pipeline)
    bench = Bench(dataset, table, current, plan.objectives)
    parts = parts_of(dataset, plan.seed)
    tune = bench.replay(None if parts is None else parts["tune"])
    given = {
        "dataset": dataset.fingerprint,
        "split": "all" if parts is None else "tune",
        "config": config_hash(current),
        "pipeline": plan.pipeline,
    }
    search = partial(
        run_study,
        space=space,
        base=current,
        objectives=objectives_of(plan.objectives),
        sampler=plan.sampler,
        study_name=plan.name,
        fingerprint=given,
    )
    if plan.workers > 1 and plan.trials > 0:
        spec = _spec(plan, dataset, current, given, retriever)
        study = run_workers(spec, plan.workers, progress=progress)
    else:
        in_folder = plan.storage is None and plan.folder is not None
        study = search(
            tune,
            trials=plan.trials,
            seed=plan.seed,
            journal=plan.folder / JOURNAL if in_folder and plan.folder is not None else None,
            storage=plan.storage,
            resume=plan.resume,
            progress=progress,
        )
    tuned = bench.groups if parts is None else bench.groups[parts["tune"]]
    made = partial(
        SweepResult,
        name=plan.name,
        dataset=dataset,
        current=current,
        seed=plan.seed,
        sampler=plan.sampler,
        pipeline=plan.pipeline,
        study=study,
        importances=importances_of(study),
        notes=(*study.notes, *_warnings(study)),
    )
    if len(plan.objectives) > 1:
        words = (
            f"{len(study.pareto)} trials form the front of {', '.join(plan.objectives)}: choose "
            "one, and confirm the choice by a sweep with one objective"
        )
        return made(choice=None, held_out=None, decision=Decision("keep current", (words,)))

    choice = chosen(bench, study, parts, plan.seed)
    winner = study.config(choice.number)
    changed = config_hash(winner) != config_hash(current)
    looked = None
    # A test split is not opened to hear that the current configuration equals itself.
    if plan.confirm and (changed or parts is None):

        def again(replay: Replay, fold: int) -> StudyResult:
            if stage is not None:
                stage(f"searching without part {fold + 1}", fold, FOLDS)
            journal = None if plan.folder is None else plan.folder / f"fold-{fold}.jsonl"
            return search(
                replay,
                trials=len(study.trials),
                seed=plan.seed + 1 + fold,
                journal=journal,
                resume=journal is not None and journal.is_file(),
            )

        looked = held_out(
            bench,
            study,
            choice,
            parts,
            seed=plan.seed,
            opened_before=_opened_before(plan, dataset),
            search_again=again,
        )
    leaked, judged, unjudged = _everywhere(bench, winner)
    if looked is None and changed:
        decision = Decision("keep current", ("nothing was confirmed on held-out queries",))
    else:
        decision = decide(
            None if looked is None else looked.comparison,
            choice.floor,
            tuned_gain=choice.tuned_gain,
            leaks=leaked,
            judged_gap=abs(judged[0] - judged[1]),
            changed=changed,
        )
    if looked is not None:
        _write_down(plan, dataset, looked, decision)
    return made(
        flat=flat_region(study, tune, choice.number, tuned),
        references=_beside(dataset, current, winner, retriever, plan.pipeline),
        choice=choice,
        held_out=looked,
        decision=decision,
        leaked=leaked,
        judged=judged,
        unjudged=unjudged,
    )


def checked(plan: SweepPlan, dataset: Dataset, current: Config) -> Space:
    """The space of a sweep, once nothing is left that could stop it before its first trial.

    Raises:
        ConfigError: If a knob does nothing.
        StudyError: If the plan cannot be carried out on this dataset.
    """
    if plan.pipeline not in LOCAL:
        raise StudyError(f"pipeline is {plan.pipeline!r}; there are {', '.join(LOCAL)}")
    space = plan.space or default_space(
        dataset, current, freeze_trust=plan.freeze_trust, pipeline=plan.pipeline
    )
    if other := [knob.path for knob in space.knobs if knob.pipeline != plan.pipeline]:
        raise ConfigError(
            f"{', '.join(other)}: does nothing for {plan.pipeline}; take it out of the space, or "
            "choose the other --pipeline"
        )
    space.check(current)
    if plan.trials < 1 and not plan.resume:
        raise StudyError(f"a study needs at least one trial, got {plan.trials}")
    if plan.workers > 1 and plan.storage is None:
        raise StudyError(
            "--workers needs a study that several processes can write: give --storage "
            "journal:FILE or --storage postgresql+psycopg://..."
        )
    if plan.workers > 1 and (dataset.folder is None or (plan.space and plan.space_file is None)):
        raise StudyError("--workers needs a dataset folder, and a space that is read from a file")
    confirms = plan.confirm and len(plan.objectives) == 1
    one = len({query.group for query in dataset.queries}) < 2
    if parts_of(dataset, plan.seed) is None and confirms and one:
        raise StudyError(
            f"{dataset.name}: all queries are of one group, so none can be held out; add "
            "others, or say --no-confirm"
        )
    return space


def task_of(
    dataset: str,
    fingerprint: str,
    config: Mapping[str, Any],
    objectives: Sequence[str],
    seed: int,
    space: str | None,
    freeze_trust: bool,
    cache: str | None,
    pipeline: str = "memory-recall",
) -> Task:
    """What a worker process searches, from what its parent told it in JSON.

    Args:
        dataset: The folder.
        fingerprint: Of the dataset that the parent has.
        config: The current configuration, as a file has it.
        objectives: By name.
        seed: Of the splits.
        space: The file of the space; None: the default one.
        freeze_trust: Leave trustAlpha out of the default space.
        cache: Folder of what is kept on disk; None keeps nothing.
        pipeline: Whose knobs.

    Raises:
        StudyError: If the folder holds another dataset.
    """
    labelled, current = load_dataset(dataset), Config.model_validate(config)
    if labelled.fingerprint != fingerprint:
        raise StudyError(
            f"{dataset}: holds {labelled.fingerprint[:12]}, the sweep is on {fingerprint[:12]}; "
            "several workers read the folder, so it must hold all that is swept and no more"
        )
    searched = (
        default_space(labelled, current, freeze_trust=freeze_trust, pipeline=pipeline)
        if space is None
        else Space.load(Path(space))
    )
    retriever = Retriever(labelled, cache=None if cache is None else Path(cache))
    table = retrieved(retriever, labelled, current, searched, pipeline)
    parts = parts_of(labelled, seed)
    bench = Bench(labelled, table, current, tuple(objectives))
    tune = bench.replay(None if parts is None else parts["tune"])
    return Task(tune, searched, current, objectives_of(objectives))


def _spec(
    plan: SweepPlan,
    dataset: Dataset,
    current: Config,
    given: Mapping[str, Any],
    retriever: Retriever,
) -> WorkerSpec:
    """The work of several processes, as JSON has it; :func:`checked` saw that it can be."""
    if plan.storage is None or dataset.folder is None:
        raise StudyError("--workers needs --storage, and a dataset folder")
    if retriever.embedder is not None or retriever.reranker is not None:
        raise StudyError("workers load their own models; leave out the retriever's, or --workers")
    return WorkerSpec(
        plan.storage,
        Plan(plan.name, plan.seed, plan.sampler, given),
        plan.trials,
        "comis_eval.tuning.sweep:task_of",
        {
            "dataset": str(dataset.folder.resolve()),
            "fingerprint": dataset.fingerprint,
            "config": current.to_tree(),
            "objectives": list(plan.objectives),
            "seed": plan.seed,
            "space": None if plan.space_file is None else str(plan.space_file.resolve()),
            "freeze_trust": plan.freeze_trust,
            "cache": None if retriever.cache is None else str(retriever.cache.absolute()),
            "pipeline": plan.pipeline,
        },
    )


def _warnings(study: StudyResult) -> tuple[str, ...]:
    """What is odd about the study as a whole."""
    over = {name: amount for name, amount in study.current.constraints.items() if amount > 0}
    told = ", ".join(f"{name} by {amount:.4g}" for name, amount in over.items())
    found = [f"the current configuration itself oversteps its bounds: {told}"] if over else []
    if study.best is None:
        found.append("no trial is within the bounds, so none can win")
    return tuple(found)


def default_space(
    dataset: Dataset,
    current: Config,
    *,
    freeze_trust: bool = False,
    pipeline: str = "memory-recall",
) -> Space:
    """The knobs that do something on a dataset, over the ranges in which they do."""
    if pipeline == "recall-tool":
        return tool_space(dataset, current)
    return Space.default(
        has_usefulness=bool(dataset.usefulness),
        freeze_trust=freeze_trust,
        rerank=True,
        entities=any(memory.entities for memory in dataset.memories),
        vector="vector" in current.harness.lanes,
    )


def _everywhere(
    bench: Bench, winner: Config
) -> tuple[int, tuple[float, float], tuple[tuple[str, str], ...]]:
    """Leaks of the winner on every query, judged@k of both, and what of it nobody judged."""
    dataset, replay = bench.dataset, bench.replay()
    k = replay.constants.k0
    judged = parse(f"judged@{k}")
    inputs = [replay.whole(config) for config in (bench.current, winner)]
    shares = [means({judged: judged(part)}, part)[ALL][judged.name].value for part in inputs]
    ranking = given(inputs[1].ranking, "the ranking")
    rows, grades = given(ranking.row, "its rows")[:, :k], ranking.grade[:, :k]
    unjudged = np.argwhere((rows >= 0) & (grades < 0))
    return (
        sum(leak.why in enforces(bench.table) for leak in leaks(inputs[1])),
        (shares[0], shares[1]),
        tuple((dataset.queries[q].id, dataset.memories[rows[q, c]].id) for q, c in unjudged),
    )


def _beside(
    dataset: Dataset, current: Config, winner: Config, retriever: Retriever, pipeline: str
) -> dict[str, dict[str, float]]:
    """Figures of current, winner and the reference rows on the whole dataset."""
    names = ("utility", "ndcg@10", "recall@5", "hit@5", "context_chars")
    objective = objective_of(current)
    constants = {"harness.utility.k0": objective.k0, "harness.utility.c0": objective.c0}
    standing = evaluate(dataset, current, pipeline=pipeline, metrics=names, retriever=retriever)
    chosen_ = evaluate(
        dataset,
        winner.evolve(**constants),
        pipeline=pipeline,
        metrics=names,
        retriever=retriever,
        references=False,
    )
    rows = {
        "current": standing.means[ALL],
        "winner": chosen_.means[ALL],
        **standing.references,
    }
    return {
        name: {metric: mean.value for metric, mean in row.items() if metric in names}
        for name, row in rows.items()
    }


def _opened_before(plan: SweepPlan, dataset: Dataset) -> int:
    """How often other sweeps looked at held-out queries of this dataset."""
    if plan.ledger is None:
        return 0
    known = ledger.openings(plan.ledger, dataset.fingerprint)
    return sum((o.study, o.seed) != (plan.name, plan.seed) for o in known)


def _write_down(plan: SweepPlan, dataset: Dataset, looked: HeldOut, decision: Decision) -> None:
    """Note the look, once a study: going on with one shows nothing new."""
    if plan.ledger is None:
        return
    known = ledger.openings(plan.ledger, dataset.fingerprint)
    if any(o.study == plan.name and o.seed == plan.seed for o in known):
        return
    at = datetime.now(UTC).isoformat(timespec="seconds")
    opening = ledger.Opening(
        dataset.fingerprint, looked.kind, plan.seed, plan.name, at, decision.outcome
    )
    ledger.record(plan.ledger, opening)
