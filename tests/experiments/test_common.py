"""What the experiments share: claims that can fail, pairs worked by hand, halves that part."""

import numpy as np
import pytest

from comis_eval.errors import DatasetError
from experiments.abstention.elsewhere import with_unanswerable
from experiments.common.claims import Claim, exchanged
from experiments.common.experiment import marked
from experiments.common.halves import halves
from experiments.common.pairs import Pair, paired
from experiments.common.scene import Scene, Scored, among
from tests.experiments.world import scene, where

AB = Pair("a", "b")


def results(mean: float | None, low: float = 0.0, high: float = 0.0, p: float = 0.01) -> dict:
    found = {"mean": mean, "low": low, "high": high, "p_adjusted": p}
    return {"sets": {"s": {"pairs": {AB.name: {"m": found}}}}}


def claim(expected, margin: float = 0.0) -> Claim:
    return Claim("says", AB, "m", expected, ("s",), margin)


@pytest.mark.parametrize(
    ("expected", "figures", "whole", "reduced"),
    [
        ("more", (0.2, 0.1, 0.3), True, True),
        ("more", (0.2, -0.1, 0.5), False, True),
        ("more", (0.2, 0.1, 0.3, 0.051), False, True),
        ("more", (0.2, 0.1, 0.3, 0.05), True, True),
        ("more", (-0.2, -0.3, -0.1), False, False),
        ("less", (-0.2, -0.3, -0.1), True, True),
        ("less", (-0.2, -0.5, 0.1), False, True),
        ("less", (0.0, 0.0, 0.0), False, False),
        ("same", (0.01, -0.02, 0.03), True, True),
        ("same", (0.01, -0.02, 0.06), False, True),
        ("same", (0.06, 0.04, 0.08), False, True),
        ("same", (-0.07, -0.08, -0.06), False, False),
        ("same", (0.07, 0.06, 0.08), False, False),
        ("more", (None, None, None), False, False),
    ],
)
def test_claim_holds_by_interval_at_full_size_and_by_direction_when_reduced(
    expected, figures, whole, reduced
):
    one, told = claim(expected, 0.05), results(*figures)

    assert one.holds(told, "s") is whole
    assert one.holds(told, "s", reduced=True) is reduced


def test_claim_of_a_set_that_was_not_run_does_not_hold():
    assert not claim("more").holds(results(0.2, 0.1, 0.3), "other")


def test_exchanged_arms_leave_the_others_alone():
    assert exchanged({"a": 1, "b": 2, "c": 3}, AB) == {"a": 2, "b": 1, "c": 3}


def test_pair_is_the_weighted_mean_of_defined_differences():
    found = scene("starter").part([0, 1, 2])
    values = {"a": np.array([1.0, 0.5, np.nan]), "b": np.array([0.0, 0.5, 1.0])}
    arms = {
        arm: {"m": among(column, np.array([True, True, True]))} for arm, column in values.items()
    }

    told = paired(found, arms, [AB], seed=0, resamples=50)[AB.name]["m"]

    assert told["mean"] == pytest.approx(0.5)
    assert (told["queries"], told["changed"]) == (2, 1)


def test_among_is_undefined_for_the_others_and_without_members():
    values = np.array([1.0, 0.0, np.nan])

    mine = among(values, np.array([True, False, True]))
    nobody = among(values, np.zeros(3, dtype=bool))

    assert np.isnan(mine.values).tolist() == [False, True, True]
    assert (mine.figure, mine.weights.tolist()) == (1.0, [1.0, 0.0, 0.0])
    assert np.isnan(nobody.figure)
    assert isinstance(nobody, Scored)


def test_halves_part_no_group_and_lose_no_query():
    found = scene("starter")
    tune, unseen = halves(found, 0)

    groups = np.array(found.groups)
    assert not set(groups[tune]) & set(groups[unseen])
    assert sorted([*tune, *unseen]) == list(range(len(groups)))


def test_reduced_set_keeps_whole_groups():
    whole, part = Scene.opened(where("starter")), Scene.opened(where("starter"), limit=30)

    assert 30 <= len(part.dataset.queries) < len(whole.dataset.queries)
    for group in set(part.groups):
        assert part.groups.count(group) == whole.groups.count(group)


def test_reduced_set_keeps_what_its_tenants_remember_and_every_judgment_of_it():
    whole, part = Scene.opened(where("core")).dataset, Scene.opened(where("core"), limit=30).dataset

    tenants = {query.tenancy.tenant_id for query in part.queries}
    assert [m for m in whole.memories if m.tenancy.tenant_id in tenants] == list(part.memories)
    assert len(part.memories) < len(whole.memories)
    for position, query in enumerate(part.queries):
        before = whole.position_of[query.id]
        for place, memory in enumerate(part.memories):
            rows = np.array([[place], [whole.row_of[memory.id]]])
            asked = np.array([position]), np.array([before])
            assert part.judgments.grade(asked[0], rows[0]) == whole.judgments.grade(
                asked[1], rows[1]
            )


def test_set_with_unanswerable_queries_is_asked_as_it_is():
    found = scene("starter")

    assert with_unanswerable(found) is found


def test_no_question_is_asked_elsewhere_where_there_is_no_other_place():
    found = scene("starter")
    here = found.dataset.queries[0].tenancy
    only = [
        place
        for place, query in enumerate(found.dataset.queries)
        if query.answerable and query.tenancy == here
    ]

    with pytest.raises(DatasetError, match="one tenancy alone"):
        with_unanswerable(found.part(only))


@pytest.mark.slow
def test_questions_asked_elsewhere_have_no_answer_there():
    found = with_unanswerable(scene("locomo")).dataset

    added = [query for query in found.queries if query.category == "elsewhere"]
    assert added
    for query in added:
        asked = found.queries[found.position_of[query.id.removesuffix("-elsewhere")]]
        assert query.tenancy != asked.tenancy
        assert not (found.judgments.queries == found.position_of[query.id]).any()


def test_text_goes_between_the_marks_and_nowhere_else():
    readme = "a\n<!-- by run.py -->\nold\n<!-- end run.py -->\nb\n"

    once = marked(readme, "new")

    assert once == "a\n<!-- by run.py -->\nnew\n<!-- end run.py -->\nb\n"
    assert marked(once, "new") == once
    with pytest.raises(ValueError, match=r"needs a line '<!-- by clock\.py -->'"):
        marked(readme, "new", by="clock.py")
