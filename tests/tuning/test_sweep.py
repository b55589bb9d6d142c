"""Whole sweeps on sets in which it is known what helps."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.config_file import load_config
from comis_eval.datasets import folds_of, load_dataset, write_dataset
from comis_eval.errors import ConfigError, StudyError
from comis_eval.evaluation import evaluate
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tuning import folder, ledger
from comis_eval.tuning import sweep as sweep_module
from comis_eval.tuning.holdout import FOLDS, parts_of
from comis_eval.tuning.journal import read_journal
from comis_eval.tuning.parts import Bench
from comis_eval.tuning.reach import coverage_of
from comis_eval.tuning.replay import Replay
from comis_eval.tuning.select import SMALL
from comis_eval.tuning.space import Space
from comis_eval.tuning.sweep import SweepPlan, checked, default_space, task_of
from comis_eval.types import TrustLevel
from tests.builders import memory
from tests.tuning.test_resume import Killed
from tests.tuning.worlds import (
    ALPHAS,
    FTS,
    SHARE,
    cut_in_three,
    distrusted,
    made,
    plan,
    shuffled,
    space,
    stale,
    swept,
)

DATASET = stale(20)
HEEDLESS = FTS.evolve(**{"rag.scoring.recency_alpha": 0.0})
"""Settings that much is better than."""
SIZES = {"low": 1, "high": 8}


# --- what is found ------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["random", pytest.param("tpe", marks=pytest.mark.slow)])
def test_what_truly_helps_is_adopted_and_helps_on_fresh_queries(tmp_path, sampler):
    dataset = stale(60)
    how = plan(ALPHAS, trials=40, sampler=sampler, folder=tmp_path)
    result = swept(dataset, how)
    assert result.decision.outcome == "adopt"
    assert result.held_out.kind == "folds"
    assert result.winner.params["rag.scoring.recencyAlpha"] > 0.4
    assert set(result.importances) == set(ALPHAS.distributions)
    low, high = result.flat["rag.scoring.recencyAlpha"]
    assert low <= result.winner.params["rag.scoring.recencyAlpha"] <= high

    folder.write(result, tmp_path)
    exported = load_config(tmp_path / "rag.yaml")
    assert exported.rag == result.recommended.rag
    fresh = stale(60, seed=1)

    def utility(config: Config) -> float:
        measured = evaluate(fresh, config, retriever=Retriever(fresh, cache=None))
        return measured.means["all"]["utility"].value

    gain = utility(result.recommended) - utility(FTS)
    found = result.held_out.comparison
    assert found.low < gain < found.high


def test_labels_that_say_nothing_change_nothing():
    result = swept(shuffled(DATASET, 0), plan(ALPHAS, trials=25))
    assert result.decision.outcome != "adopt"
    assert result.recommended is FTS
    assert result.choice.floor.percentile_95 > 0


def test_the_current_configuration_is_trial_0():
    current = FTS.evolve(**{"rag.scoring.recency_alpha": 0.123})
    result = swept(DATASET, plan(ALPHAS, trials=3, confirm=False), current)
    assert result.study.config(0) is current
    assert result.study.current.params == {
        "rag.scoring.recencyAlpha": 0.123,
        "rag.scoring.temporalAlpha": 0.2,
        "rag.scoring.proofAlpha": 0.1,
    }


def test_the_constants_of_the_objective_are_the_current_configurations():
    # Were they each trial's own, the most results would win; one memory of each topic counts.
    knobs = space(rag__maxResults=SIZES)
    fresh = FTS.evolve(**{"rag.scoring.recency_alpha": 1.0})
    result = swept(DATASET, plan(knobs, trials=30, confirm=False), fresh)
    assert result.study.best.params["rag.maxResults"] < 3
    assert result.references["current"]["utility"] == pytest.approx(result.study.current.values[0])
    assert result.references["winner"]["utility"] == pytest.approx(result.winner.values[0])


def test_constants_that_the_harness_fixes_hold_in_every_figure():
    fixed = FTS.evolve(**{"harness.utility.k0": 2, "harness.utility.c0": 700})
    result = swept(DATASET, plan(ALPHAS, trials=5, confirm=False), fixed)
    assert result.references["current"]["utility"] == pytest.approx(result.study.current.values[0])
    assert result.references["winner"]["utility"] == pytest.approx(result.winner.values[0])


def test_reference_rows_stand_beside_current_and_winner():
    result = swept(DATASET, plan(ALPHAS, trials=5, confirm=False))
    assert list(result.references)[:2] == ["current", "winner"]
    assert {"fts", "rank_bm25", "random", "oracle"} <= set(result.references)
    assert result.judged == (1.0, 1.0)


def test_memories_that_nobody_judged_are_listed_and_forbid_adopting():
    # Only the answers that the current settings find too are judged.
    dataset = stale(60)
    ranked = evaluate(dataset, FTS, retriever=Retriever(dataset, cache=None))
    assert ranked.means["all"]["judged@5"].value == 1
    judged = dataset.judgments
    kept = [
        (int(q), int(r), int(g))
        for q, r, g in zip(judged.queries, judged.rows, judged.grades, strict=True)
        if g > 0
    ]
    result = swept(made("bare", dataset.memories, dataset.queries, kept), plan(ALPHAS))
    assert result.decision.outcome == "not enough judgments"
    assert result.recommended is FTS
    assert abs(result.judged[0] - result.judged[1]) > 0.02
    answers = {(dataset.queries[q].id, dataset.memories[r].id) for q, r, _ in kept}
    assert result.unjudged
    assert not answers & set(result.unjudged)


# --- what cannot win ----------------------------------------------------------------------


def the_best_of_all(result):
    complete = [record for record in result.study.trials if record.state == "complete"]
    sign = result.study.objectives[0].sign
    return max(complete, key=lambda record: sign * record.values[0])


def test_more_trust_inversion_cannot_win():
    trusting = FTS.evolve(**{"rag.scoring.trust_alpha": 1.0})
    knobs = space(rag__scoring__trustAlpha=SHARE)
    result = swept(distrusted(12), plan(knobs, trials=25, confirm=False), trusting)
    tempting = the_best_of_all(result)
    assert tempting.values[0] > result.study.current.values[0] + 0.1
    assert tempting.constraints["trust_inversion"] > 0
    assert not tempting.feasible
    assert result.winner.feasible
    assert result.winner.values[0] < tempting.values[0] - 0.1
    assert tempting.number not in [entrant.number for entrant in result.choice.entrants]


def test_silence_cannot_win():
    knobs = space(rag__maxContextChars={"low": 1, "high": 4000})
    how = plan(knobs, trials=60, objectives=("context_chars",), confirm=False)
    result = swept(DATASET, how)
    tempting = the_best_of_all(result)
    assert tempting.values == (0.0,)
    assert tempting.constraints["silence"] == pytest.approx(0.99)
    assert result.winner.feasible
    assert 0 < result.winner.values[0] < result.study.current.values[0]
    assert result.choice.tuned_gain > 0  # fewer characters are better


def with_external(topics):
    """Answers of external origin, behind a learned memory each that answers half."""
    dataset = stale(topics, width=4)
    answers = set(dataset.judgments.rows[dataset.judgments.grades == 3].tolist())
    memories = tuple(
        replace(m, trust_level=TrustLevel.EXTERNAL) if row in answers else m
        for row, m in enumerate(dataset.memories)
    )
    return replace(dataset, memories=memories)


def test_a_leak_cannot_win():
    everyone = FTS.evolve(**{"rag.include_trust_levels": ("system", "learned", "external")})
    knobs = space(rag__scoring__recencyAlpha=SHARE, rag__maxResults=SIZES)
    result = swept(with_external(20), plan(knobs), everyone)
    tempting = the_best_of_all(result)
    assert tempting.constraints["policy_leak"] > 0
    assert tempting.number != 0
    assert result.leaked > 0
    assert result.decision.outcome == "keep current"


def test_no_search_can_let_external_memories_in():
    with pytest.raises(ConfigError, match=r"rag\.includeTrustLevels: is never searched"):
        space(rag__includeTrustLevels={"choices": [["system"], ["external"]]})
    result = swept(with_external(20), plan(ALPHAS, trials=10, confirm=False))
    assert all(record.constraints["policy_leak"] == 0 for record in result.study.trials)
    assert result.leaked == 0
    assert all(
        result.study.config(record.number).rag.include_trust_levels == FTS.rag.include_trust_levels
        for record in result.study.trials
    )


# --- what the search may see --------------------------------------------------------------


@pytest.fixture
def looks(monkeypatch):
    """The query ids that each replay was asked about, in the order in which it was asked."""
    seen: list[set[str]] = []
    real = Replay.answered

    def spied(self, config):
        seen.append({query.id for query in self.table.queries})
        return real(self, config)

    monkeypatch.setattr(Replay, "answered", spied)
    return seen


@pytest.fixture
def phases(monkeypatch, looks):
    """How many looks each search had had when it ended, beside all looks."""
    ends: list[int] = []
    real = sweep_module.run_study

    def counted(*given, **how):
        found = real(*given, **how)
        ends.append(len(looks))
        return found

    monkeypatch.setattr(sweep_module, "run_study", counted)
    return ends


def ids(dataset, positions):
    return {dataset.queries[at].id for at in positions}


def test_the_search_never_sees_select_or_test(looks, phases):
    dataset = cut_in_three(DATASET)
    result = swept(dataset, plan(ALPHAS, trials=20), HEEDLESS)
    parts = parts_of(dataset, 0)
    tune, select, test = (ids(dataset, parts[name]) for name in ("tune", "select", "test"))
    (searched,) = phases
    assert all(look == tune for look in looks[:searched])
    after = [look for look in looks[searched:] if look != tune]
    opened = after.index(test)
    assert after[:opened]
    assert all(look == select for look in after[:opened])
    # One comparison: winner and current, and what each query weighs.
    assert [look for look in after if look == test] == [test] * 3
    assert result.held_out.kind == "test"
    assert result.held_out.comparison.n_queries == len(test)


def test_a_test_split_is_not_opened_for_the_settings_in_use(looks, tmp_path):
    dataset = cut_in_three(DATASET)
    how = plan(ALPHAS, trials=10, ledger=tmp_path / "ledger.jsonl")
    result = swept(dataset, how, FTS.evolve(**{"rag.scoring.recency_alpha": 1.0}))
    assert result.winner.number == 0
    assert result.held_out is None
    assert ids(dataset, parts_of(dataset, 0)["test"]) not in looks
    assert not how.ledger.exists()
    assert result.decision.reasons == ("no trial within noise of the best is another setting",)


def test_no_fold_sees_its_own_queries(looks, phases):
    swept(DATASET, plan(ALPHAS, trials=10))
    folds = folds_of(DATASET, FOLDS, 0)
    everything = ids(DATASET, range(len(DATASET.queries)))
    assert len(phases) == 1 + FOLDS
    assert all(look == everything for look in looks[: phases[0]])
    for fold in range(FOLDS):
        unseen = ids(DATASET, np.flatnonzero(folds == fold))
        searched = looks[phases[fold] : phases[fold + 1]][-10:]
        assert all(look == everything - unseen for look in searched)
        # They are then asked of its winner and of the current settings, and of nobody before.
        assert unseen not in looks[: phases[fold + 1]]
        assert looks.count(unseen) == 2


def test_a_large_set_is_cut_in_three():
    dataset = stale(SMALL // 2, width=4)
    result = swept(dataset, plan(ALPHAS, trials=8))
    assert result.held_out.kind == "test"
    assert result.held_out.comparison.n_queries == len(parts_of(dataset, 0)["test"])
    assert len(result.study.per_query(0)) == len(parts_of(dataset, 0)["tune"])
    assert result.decision.outcome == "adopt"


# --- the ledger ---------------------------------------------------------------------------


def test_a_look_is_written_down_once_a_study_and_told_to_the_next(tmp_path):
    path, dataset = tmp_path / "ledger.jsonl", cut_in_three(DATASET)
    first = plan(ALPHAS, trials=8, folder=tmp_path / "a", name="a", ledger=path)
    result = swept(dataset, first, HEEDLESS)
    assert result.held_out.opened_before == 0
    for trials in (0, 12):
        again = swept(dataset, replace(first, trials=trials, resume=True), HEEDLESS)
        assert again.held_out.opened_before == 0
    (opening,) = ledger.openings(path, dataset.fingerprint)
    assert (opening.study, opening.seed, opening.held_out) == ("a", 0, "test")
    assert opening.verdict == result.decision.outcome
    second = swept(dataset, plan(ALPHAS, trials=8, name="b", ledger=path), HEEDLESS)
    assert second.held_out.opened_before == 1
    third = swept(dataset, plan(ALPHAS, trials=8, name="b", seed=1, ledger=path), HEEDLESS)
    assert third.held_out.opened_before == 2
    other = swept(DATASET, plan(ALPHAS, trials=2, name="b", ledger=path))
    assert other.held_out.opened_before == 0
    (opening,) = ledger.openings(path, DATASET.fingerprint)
    assert opening.held_out == "folds"


def test_without_a_look_nothing_is_written_down(tmp_path):
    path = tmp_path / "ledger.jsonl"
    result = swept(DATASET, plan(ALPHAS, trials=8, confirm=False, ledger=path))
    assert not path.exists()
    assert result.held_out is None
    assert result.decision.outcome == "keep current"
    assert result.decision.reasons == ("nothing was confirmed on held-out queries",)


# --- going on -----------------------------------------------------------------------------


def told(result):
    """What two sweeps must have in common: all but the time that trials took."""
    trials = [record._replace(ms=0.0, figures={}) for record in result.study.trials]
    return trials, json.dumps(folder.as_json(result))


@pytest.mark.parametrize("sampler", ["random", pytest.param("tpe", marks=pytest.mark.slow)])
def test_a_sweep_that_was_broken_off_ends_as_if_it_had_not_been(tmp_path, sampler):
    whole = told(swept(DATASET, plan(ALPHAS, trials=14, sampler=sampler, folder=tmp_path / "w")))
    how = plan(ALPHAS, trials=14, sampler=sampler, folder=tmp_path / "s")
    # In the search, in the first of the repeated ones, in the third, and before its end.
    for place, after in enumerate((5, 9, 9, 25, 12)):
        left = [after]

        def dying(*_, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        real, Replay.__call__ = Replay.__call__, _with(Replay.__call__, dying)
        try:
            with pytest.raises(Killed):
                swept(DATASET, replace(how, resume=place > 0))
        finally:
            Replay.__call__ = real
    resumed = swept(DATASET, replace(how, resume=True))
    assert told(resumed) == whole


def _with(real, before):
    def called(self, config):
        before()
        return real(self, config)

    return called


def test_zero_trials_finish_what_is_there(tmp_path):
    how = plan(ALPHAS, trials=9, folder=tmp_path)
    whole = told(swept(DATASET, how))
    searches = len(read_journal(tmp_path / "study.jsonl").entries)
    calls = []
    resumed = swept(DATASET, replace(how, trials=0, resume=True), progress=calls.append)
    assert searches == 9
    assert calls == []
    assert told(resumed) == whole


def test_more_trials_go_on_in_every_search(tmp_path):
    how = plan(ALPHAS, trials=6, folder=tmp_path / "s")
    swept(DATASET, how)
    resumed = swept(DATASET, replace(how, trials=11, resume=True))
    whole = swept(DATASET, plan(ALPHAS, trials=11, folder=tmp_path / "w"))
    assert told(resumed) == told(whole)


def test_another_sweep_cannot_be_gone_on_with(tmp_path):
    how = plan(ALPHAS, trials=3, folder=tmp_path, confirm=False)
    swept(DATASET, how)
    for changed, what in (
        ({"seed": 1}, "seed was 0, is 1"),
        ({"objectives": ("ndcg@10",)}, "objectives"),
        ({"space": space(rag__maxResults=SIZES)}, r"space\."),
    ):
        with pytest.raises(StudyError, match=f"is another study.*{what}"):
            swept(DATASET, replace(how, resume=True, **changed))
    with pytest.raises(StudyError, match=r"is another study.*dataset was"):
        swept(stale(20, seed=1), replace(how, resume=True))
    with pytest.raises(StudyError, match=r"is another study.*current"):
        swept(DATASET, replace(how, resume=True), FTS.evolve(**{"rag.max_results": 6}))


# --- several objectives -------------------------------------------------------------------


def test_several_objectives_leave_a_front_and_no_winner(tmp_path):
    knobs = space(rag__scoring__recencyAlpha=SHARE, rag__maxResults=SIZES)
    how = plan(
        knobs, trials=80, sampler="nsga2", folder=tmp_path, ledger=tmp_path / "ledger.jsonl",
        objectives=("ndcg@10", "context_chars", "latency_ms"),
    )  # fmt: skip
    result = swept(DATASET, how)
    assert result.winner is None
    assert result.recommended is FTS
    assert result.held_out is None
    assert not how.ledger.exists()
    front = result.study.pareto
    assert len(front) > 2
    for record in front:
        for other in front:
            better = other.values[0] > record.values[0] and other.values[1] < record.values[1]
            assert not better
    assert (
        f"{len(front)} trials form the front of ndcg@10, context_chars"
        in (result.decision.reasons[0])
    )
    folder.write(result, tmp_path)
    tree = folder.read_result(tmp_path)
    assert tree["pareto"] == [record.number for record in front]
    assert tree["winner"] is None
    assert load_config(tmp_path / "rag.yaml").rag == FTS.rag


# --- what cannot begin --------------------------------------------------------------------


def refused(dataset=DATASET, current=FTS, **how):
    with pytest.raises((ConfigError, StudyError)) as caught:
        checked(plan(**{"knobs": ALPHAS, **how}), dataset, current)
    return str(caught.value)


def test_a_plan_that_cannot_work_is_refused_before_anything_is_searched(tmp_path):
    assert "at least one trial, got 0" in refused(trials=0)
    assert "give --storage journal:FILE" in refused(workers=2)
    shared = {"workers": 2, "storage": f"journal:{tmp_path / 's.log'}"}
    assert "needs a dataset folder, and a space" in refused(**shared)
    capped = space(rag__rerank__maxCandidates={"low": 5, "high": 9})
    assert "does nothing while rag.rerank.enabled is false" in refused(knobs=capped)
    alone = replace(DATASET, queries=tuple(replace(q, group="g") for q in DATASET.queries))
    assert "so none can be held out; add others, or say --no-confirm" in refused(alone)
    assert checked(plan(ALPHAS, confirm=False), alone, FTS) is ALPHAS
    uncut = replace(DATASET, splits={"tune": tuple(q.group for q in DATASET.queries)})
    assert "no query falls into select, test" in refused(uncut)


def test_nothing_is_retrieved_for_a_plan_that_cannot_work(monkeypatch):
    monkeypatch.setattr(Retriever, "covering", lambda *_: pytest.fail("was searched"))
    with pytest.raises(StudyError, match="at least one trial"):
        swept(DATASET, plan(ALPHAS, trials=0))


def test_the_default_space_has_what_does_something_on_the_dataset():
    plain = default_space(DATASET, FTS).distributions
    assert "rag.lanes.vector.weight" not in plain
    assert "rag.entityLane.enabled" not in plain
    assert "rag.feedback.enabled" not in plain
    assert "rag.scoring.trustAlpha" in plain
    frozen = default_space(DATASET, FTS, freeze_trust=True).distributions
    assert "rag.scoring.trustAlpha" not in frozen
    named = replace(DATASET, memories=(*DATASET.memories, memory("e", "e", entities=("Ann",))))
    full = default_space(named, Config()).distributions
    assert {"rag.lanes.vector.weight", "rag.entityLane.enabled"} <= set(full)


# --- workers ------------------------------------------------------------------------------


@pytest.fixture
def on_disk(tmp_path: Path) -> dict:
    dataset = replace(stale(8), licence="CC0-1.0", version="1", judged_by="nobody")
    path = write_dataset(dataset, tmp_path / "data")
    knobs = tmp_path / "space.yaml"
    knobs.write_text("knobs:\n  rag.scoring.recencyAlpha: {low: 0, high: 1}\n")
    return {"dataset": str(path), "space": str(knobs)}


def given_to_workers(on_disk, **changes):
    return {
        **on_disk, "fingerprint": dataset_of(on_disk).fingerprint, "config": FTS.to_tree(),
        "objectives": ["utility"], "seed": 0, "freeze_trust": False, "cache": None, **changes,
    }  # fmt: skip


def dataset_of(on_disk):
    return load_dataset(on_disk["dataset"])


def test_a_worker_searches_what_its_parent_does(on_disk):
    told_to = given_to_workers(on_disk)
    task = task_of(**json.loads(json.dumps(told_to)))
    assert task.base == FTS
    assert task.space == Space.load(Path(on_disk["space"]))
    config = FTS.evolve(**{"rag.scoring.recency_alpha": 0.7})
    here = swept(dataset_of(on_disk), plan(task.space, trials=1, confirm=False))
    expected = here.study.task.measure(config).per_query
    assert task.measure(config).per_query.tolist() == expected.tolist()


def test_a_worker_refuses_another_dataset_than_its_parents(on_disk):
    with pytest.raises(StudyError, match=r"holds .*, the sweep is on 000000000000"):
        task_of(**given_to_workers(on_disk, fingerprint="0" * 64))


def test_a_worker_keeps_nothing_on_disk_unless_told(on_disk, tmp_path, monkeypatch):
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(tmp_path / "default"))
    task_of(**given_to_workers(on_disk))
    assert not (tmp_path / "default").exists()
    task_of(**given_to_workers(on_disk, cache=str(tmp_path / "cache")))
    assert list((tmp_path / "cache" / "candidates").glob("*.npz"))


@pytest.mark.slow
def test_several_processes_search_one_study(on_disk, tmp_path):
    dataset = dataset_of(on_disk)
    how = SweepPlan(
        name="s", trials=12, space=Space.load(Path(on_disk["space"])), sampler="random",
        space_file=Path(on_disk["space"]), workers=2, storage=f"journal:{tmp_path / 's.log'}",
        folder=tmp_path / "s",
    )  # fmt: skip
    result = swept(dataset, how)
    assert result.study.counts.run == 12
    assert result.held_out.kind == "folds"
    # What is missing is told later, without workers.
    again = swept(dataset, replace(how, trials=0, resume=True))
    assert told(again) == told(result)
    with pytest.raises(StudyError, match="workers load their own models"):
        sweep_module.sweep(
            dataset, FTS, replace(how, name="t"),
            retriever=Retriever(dataset, reranker=object(), cache=None),  # type: ignore[arg-type]
        )  # fmt: skip


# --- each knob alone ----------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def grid(knob):
    """Its values, about twenty of them."""
    if knob.choices:
        return list(knob.choices)
    if knob.kind == "int" and not knob.log:
        step = int(knob.step or 1)
        return list(range(int(knob.low), int(knob.high) + 1, step))
    spaced = np.geomspace if knob.log else np.linspace
    values = [float(value) for value in spaced(knob.low, knob.high, 21)]
    return [round(v) if knob.kind == "int" else knob.rounded(v) for v in values]


def moved(replay, knob):
    """A row of docs/tuning.md: one knob alone over its range, and whether a bound is best."""
    base = replay.current.evolve(**{path: options[0] for path, options in knob.when})
    values = grid(knob)
    scores = [replay(base.evolve(**{knob.path: value})) for value in values]
    utility = np.array([scored.values[0] for scored in scores])
    feasible = np.array([max(scored.constraints.values()) <= 0 for scored in scores])
    here = replay(base).values[0]
    allowed = "none"
    if feasible.any():
        at = int(np.argmax(np.where(feasible, utility, -np.inf)))
        allowed = f"{utility[at]:.3f} at {values[at]}"
    if np.ptp(utility) < 1e-9:
        return f"| `{knob.path}` | {here:.3f} | the same everywhere | {allowed} |", False
    best = int(np.argmax(utility))
    row = f"| `{knob.path}` | {here:.3f} | {utility[best]:.3f} at {values[best]} | {allowed} |"
    return row, not knob.choices and best in (0, len(values) - 1)


@pytest.mark.slow
def test_each_knob_alone_is_best_inside_its_range_or_the_docs_say_why():
    """``pytest tests/tuning/test_sweep.py -m slow -k alone -s`` prints the table of the docs."""
    dataset, current = load_dataset(ROOT / "datasets" / "starter"), Config()
    knobs = default_space(dataset, current)
    table = Retriever(dataset).covering(dataset.queries, current, coverage_of(knobs, current))
    replay = Bench(dataset, table, current, ("utility",)).replay()
    found = [(knob.path, *moved(replay, knob)) for knob in knobs.knobs]
    print("", *(row for _, row, _ in found), sep="\n")  # noqa: T201
    docs = (ROOT / "docs" / "tuning.md").read_text()
    assert [row for _, row, _ in found if row not in docs] == []
    reasons = docs.partition("### Best at a bound")[2].partition("\n## ")[0]
    assert [path for path, _, at_bound in found if at_bound and f"`{path}`" not in reasons] == []
