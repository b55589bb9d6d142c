"""A whole sweep: retrieve once, search, choose, confirm, and say what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config, config_hash
from comis_eval.datasets import Dataset, folds_of, split_of
from comis_eval.evaluation.inputs import Judge
from comis_eval.metrics import ALL, leaks, means, parse
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stats import Comparison, compare, within_one_standard_error
from comis_eval.tuning import ledger
from comis_eval.tuning.confirm import MARGIN, Choice, by_category, choose, distinct_feasible
from comis_eval.tuning.errors import StudyError
from comis_eval.tuning.knob import Value
from comis_eval.tuning.parts import Bench, coverage_of
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.replay import objectives_of
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.select import SMALL, Decision, decide, flat_region
from comis_eval.tuning.space import Space
from comis_eval.tuning.study import Progress, run_study

FOLDS = 5
"""How often a small set is searched again without a part of it."""

Stage = Callable[[str, int, int], None]
"""Told which part of the sweep runs, how far it is, and how far it goes."""


class HeldOut(NamedTuple):
    """What queries outside the search said.

    Attributes:
        kind: ``test`` (a split opened once) or ``folds`` (searched again without each part).
        comparison: Winner against current; of ``folds``, the winners of the searches that
            never saw the query.
        per_category: The same by category.
        opened_before: How often queries of this dataset were held out before.
        winners: The trial recommended; of ``folds``, one point a fold.
    """

    kind: str
    comparison: Comparison
    per_category: Mapping[str, Mapping[str, Any]]
    opened_before: int
    winners: tuple[Mapping[str, Value], ...]


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
        leaked: Memories that an enforced policy keeps out and the winner lets in, anywhere.
        judged: judged@k of current and winner on all queries.
        unjudged: (query id, memory id) pairs that the winner shows and nobody judged.
        importances: Share of the variation that each knob explains, by PED-ANOVA.
        flat: What each knob may be within noise of the best.
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
    leaked: int = 0
    judged: tuple[float, float] = (float("nan"), float("nan"))
    unjudged: tuple[tuple[str, str], ...] = ()
    importances: Mapping[str, float] = field(default_factory=dict)
    flat: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
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
        sampler: tpe, random or nsga2.
        freeze_trust: Leave trustAlpha out of the default space.
        folder: Where journals are kept; None keeps the study in memory.
        resume: Go on with what is in the folder.
        confirm: Look at held-out queries at the end.
        ledger: Where openings of held-out queries are written down; None: nowhere.
    """

    name: str
    trials: int = 1000
    seed: int = 0
    space: Space | None = None
    objectives: tuple[str, ...] = ("utility",)
    sampler: str = "tpe"
    freeze_trust: bool = False
    folder: Path | None = None
    resume: bool = False
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
    space = plan.space or default_space(dataset, current, freeze_trust=plan.freeze_trust)
    space.check(current)
    table = retriever.covering(dataset.queries, current, coverage_of(space, current))
    bench = Bench(dataset, table, current, plan.objectives)
    parts = _parts(dataset, plan.seed)
    tune = bench.replay(None if parts is None else parts["tune"])
    search = partial(
        run_study,
        space=space,
        base=current,
        objectives=objectives_of(plan.objectives),
        sampler=plan.sampler,
        study_name=plan.name,
        fingerprint={
            "dataset": dataset.fingerprint,
            "split": "all" if parts is None else "tune",
            "config": config_hash(current),
        },
    )
    study = search(
        tune,
        trials=plan.trials,
        seed=plan.seed,
        journal=None if plan.folder is None else plan.folder / "study.jsonl",
        resume=plan.resume,
        progress=progress,
    )
    importances, flat = _shape(
        study, tune, bench.groups if parts is None else bench.groups[parts["tune"]]
    )
    told = {
        "name": plan.name,
        "dataset": dataset,
        "current": current,
        "seed": plan.seed,
        "sampler": plan.sampler,
        "study": study,
        "importances": importances,
        "flat": flat,
        "notes": study.notes,
    }
    if len(plan.objectives) > 1:
        front = Decision(
            "keep current",
            (f"{len(study.pareto)} trials form the front of {', '.join(plan.objectives)}: choose "
             "among them, then confirm the choice with one objective",),
        )  # fmt: skip
        return SweepResult(**told, choice=None, held_out=None, decision=front)

    choice = _choose(bench, study, parts, plan.seed)
    held_out = None
    if plan.confirm:
        held_out = _confirm(bench, study, choice, parts, plan, search, stage)
    changed = config_hash(study.config(choice.number)) != config_hash(current)
    leaked, judged, unjudged = _whole(bench, study.config(choice.number))
    if held_out is None and changed:
        decision = Decision("keep current", ("nothing was confirmed on held-out queries",))
    else:
        decision = decide(
            None if held_out is None else held_out.comparison,
            choice.floor,
            tuned_gain=choice.tuned_gain,
            leaks=leaked,
            judged_gap=abs(judged[0] - judged[1]),
            changed=changed,
        )
    if held_out is not None and plan.ledger is not None:
        _write_down(plan, dataset, held_out, decision)
    return SweepResult(
        **told,
        choice=choice,
        held_out=held_out,
        decision=decision,
        leaked=leaked,
        judged=judged,
        unjudged=unjudged,
    )


def default_space(dataset: Dataset, current: Config, *, freeze_trust: bool = False) -> Space:
    """The knobs that do something on a dataset, over the ranges in which they do."""
    return Space.default(
        has_usefulness=bool(dataset.usefulness),
        freeze_trust=freeze_trust,
        rerank=True,
        entities=any(memory.entities for memory in dataset.memories),
        vector="vector" in current.harness.lanes,
    )


def _parts(dataset: Dataset, seed: int) -> dict[str, NDArray[np.intp]] | None:
    """Positions of the queries of each split; None when the set is too small to be cut."""
    if len(dataset.queries) < SMALL and not dataset.splits:
        return None
    names = split_of(dataset, seed)
    parts = {name: np.flatnonzero(names == name) for name in ("tune", "select", "test")}
    empty = [name for name, positions in parts.items() if not len(positions)]
    if empty:
        raise StudyError(
            f"{dataset.name}: no query falls into {', '.join(empty)}; a sweep needs all three "
            "splits, or none fixed in dataset.yaml"
        )
    return parts


def _choose(
    bench: Bench, study: StudyResult, parts: Mapping[str, NDArray[np.intp]] | None, seed: int
) -> Choice:
    groups = bench.groups
    if parts is None:
        return choose(study, bench.replay(), groups, select=None, seed=seed)
    return choose(
        study,
        bench.replay(parts["tune"]),
        groups[parts["tune"]],
        select=bench.replay(parts["select"]),
        select_groups=groups[parts["select"]],
        seed=seed,
    )


def _confirm(
    bench: Bench,
    study: StudyResult,
    choice: Choice,
    parts: Mapping[str, NDArray[np.intp]] | None,
    plan: SweepPlan,
    search: Callable[..., StudyResult],
    stage: Stage | None,
) -> HeldOut:
    sign = study.objectives[0].sign
    before = [] if plan.ledger is None else ledger.openings(plan.ledger, bench.dataset.fingerprint)
    if parts is not None:
        positions, replay = parts["test"], bench.replay(parts["test"])
        winner = replay(study.config(choice.number)).per_query
        standing = replay(bench.current).per_query
        weights, points = replay.query_weights, (study.trial(choice.number).params,)
    else:
        positions, whole = np.arange(len(bench.dataset.queries)), bench.replay()
        standing, weights = whole(bench.current).per_query, whole.query_weights
        winner, points = _searched_again(bench, plan, search, stage, trials=len(study.trials))
    groups, categories = bench.groups[positions], bench.categories[positions]
    comparison = compare(
        sign * (winner - standing), groups, weights, categories, margins=MARGIN, seed=plan.seed
    )[0]
    return HeldOut(
        "folds" if parts is None else "test",
        comparison,
        by_category(winner, standing, groups, categories, sign=sign, seed=plan.seed),
        len([opening for opening in before if opening.study != plan.name]),
        points,
    )


def _searched_again(
    bench: Bench,
    plan: SweepPlan,
    search: Callable[..., StudyResult],
    stage: Stage | None,
    *,
    trials: int,
) -> tuple[NDArray[np.float64], tuple[Mapping[str, Value], ...]]:
    """Search without each part of the queries and answer that part by the winner."""
    count = min(FOLDS, len(set(bench.groups.tolist())))
    folds = folds_of(bench.dataset, count, plan.seed)
    answered = np.full(len(folds), np.nan)
    points = []
    for fold in range(count):
        if stage is not None:
            stage(f"searching without part {fold + 1} of {count}", fold, count)
        seen, unseen = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        tune = bench.replay(seen)
        journal = None if plan.folder is None else plan.folder / f"fold-{fold}.jsonl"
        found = search(
            tune,
            trials=trials,
            seed=plan.seed + 1 + fold,
            journal=journal,
            resume=journal is not None and journal.is_file(),
        )
        winner = choose(found, tune, bench.groups[seen], select=None, seed=plan.seed)
        answered[unseen] = bench.replay(unseen)(found.config(winner.number)).per_query
        points.append(found.trial(winner.number).params)
    return answered, tuple(points)


def _whole(
    bench: Bench, winner: Config
) -> tuple[int, tuple[float, float], tuple[tuple[str, str], ...]]:
    """Leaks of the winner on every query, judged@k of both, and what nobody judged."""
    judge, replay = Judge(bench.dataset), bench.replay()
    judged = parse(f"judged@{replay.constants.k0}")
    shares, inputs = [], None
    for config in (bench.current, winner):
        inputs = judge.inputs(rank(bench.table, config), replay.constants)
        shares.append(means({judged: judged(inputs)}, inputs)[ALL][judged.name].value)
    assert_inputs = inputs
    if assert_inputs is None or assert_inputs.ranking is None or assert_inputs.ranking.row is None:
        raise StudyError("the winner could not be ranked on the whole dataset")
    top = assert_inputs.ranking
    unjudged = [
        (bench.dataset.queries[q].id, bench.dataset.memories[top.row[q, c]].id)  # type: ignore[index]
        for q, c in np.argwhere(
            top.within(replay.constants.k0) & (top.grade[:, : replay.constants.k0] < 0)
        )
    ]
    return len(leaks(assert_inputs)), (shares[0], shares[1]), tuple(unjudged)


def _shape(
    study: StudyResult, tune: Any, groups: Sequence[str]
) -> tuple[dict[str, float], dict[str, tuple[Any, ...]]]:
    """How much each knob matters, and how far it may move without leaving the noise."""
    from comis_eval.tuning.importance import importances

    ranked = distinct_feasible(study)
    sign, current = study.objectives[0].sign, study.per_query(0)
    matrix = sign * (study.matrix([record.number for record in ranked]) - current).T
    near = within_one_standard_error(matrix, groups, tune.query_weights)
    return importances(study), flat_region([record.params for record in ranked], near)


def _write_down(plan: SweepPlan, dataset: Dataset, held_out: HeldOut, decision: Decision) -> None:
    if plan.ledger is None:
        return
    known = ledger.openings(plan.ledger, dataset.fingerprint)
    if any(o.study == plan.name and o.seed == plan.seed for o in known):
        return
    at = datetime.now(UTC).isoformat(timespec="seconds")
    ledger.record(
        plan.ledger,
        ledger.Opening(
            dataset.fingerprint, held_out.kind, plan.seed, plan.name, at, decision.outcome
        ),
    )
