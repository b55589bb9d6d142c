"""Which knobs matter."""

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.tuning.importance import importances
from comis_eval.tuning.measured import Objective
from comis_eval.tuning.study import run_study
from tests.tuning.fake import SPACE, TWO, UTILITY, Measure, Scores, space_of

PLAIN = space_of(
    rag__scoring__recencyAlpha={"low": 0, "high": 1},
    rag__scoring__proofAlpha={"low": 0, "high": 1},
    rag__maxResults={"low": 1, "high": 20},
)


def only_recency(config):
    utility = -((config.rag.scoring.recency_alpha - 0.7) ** 2)
    figures = {"utility": utility, "context_chars": 100.0 * config.rag.max_results}
    return Scores(figures, (utility,), {}, np.array([utility]))


def found(measure=only_recency, space=PLAIN, *, objectives=UTILITY, trials=60, base=None):
    return run_study(
        measure, space, base or Config(), objectives=objectives, trials=trials, seed=0,
        sampler="random", required=1,
    )  # fmt: skip


def test_the_knob_that_matters_has_the_largest_share():
    told = importances(found())
    assert set(told) == set(PLAIN.distributions)
    assert sum(told.values()) == pytest.approx(1)
    assert told["rag.scoring.recencyAlpha"] > 0.8
    assert all(type(share) is float for share in told.values())


def test_knobs_below_a_switch_are_left_out():
    told = importances(found(Measure(), SPACE))
    assert "rag.rerank.enabled" in told
    assert not {"rag.rerank.maxCandidates", "rag.rerank.minResults"} & set(told)


def uneven(config):
    """Recency makes the good trials good, proof makes the bad ones bad."""
    scoring = config.rag.scoring
    utility = 1.0 if scoring.recency_alpha > 0.85 else -scoring.proof_alpha
    values = (utility, 100.0 * config.rag.max_results)
    figures = {"utility": utility, "context_chars": values[1]}
    return Scores(figures, values, {}, np.array([utility]))


def one(config):
    return uneven(config)._replace(values=uneven(config).values[:1])


def cost(config):
    figures = {"cost": -one(config).values[0]}
    return Scores(figures, (figures["cost"],), {}, np.array([figures["cost"]]))


@pytest.mark.parametrize(
    ("measure", "objectives"),
    [(one, UTILITY), (uneven, TWO), (cost, (Objective("cost", "minimize"),))],
    ids=["more", "several", "less"],
)
def test_what_makes_trials_good_counts_by_the_first_objective(measure, objectives):
    told = importances(found(measure, objectives=objectives))
    assert told["rag.scoring.recencyAlpha"] > 3 * told["rag.scoring.proofAlpha"]


def test_too_few_trials_say_nothing():
    assert importances(found(trials=10)) == {}  # nine besides the current configuration
    assert importances(found(trials=11)) != {}


def test_knobs_that_never_moved_are_left_out():
    study = found(trials=30)
    for record in study.trials:
        record.params["rag.maxResults"] = 4
    assert set(importances(study)) == {"rag.scoring.recencyAlpha", "rag.scoring.proofAlpha"}


def test_where_all_trials_are_equal_no_knob_matters():
    def flat(config):
        return Scores({"utility": 0.5}, (0.5,), {}, np.array([0.5]))

    assert importances(found(flat)) == {}


def test_optuna_keeps_its_warnings_to_itself(recwarn, capfd):
    importances(found())
    assert not recwarn.list
    assert capfd.readouterr().err == ""
