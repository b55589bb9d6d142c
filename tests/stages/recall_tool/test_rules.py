"""The rules by hand: what the golden files do not pin."""

import time

import numpy as np
import pytest

from comis_eval.config import RecallToolConfig
from comis_eval.stages.recall_tool import (
    bands,
    fade,
    gate,
    graph,
    importance,
    key_match,
    profile,
    screening,
    tags,
    twins,
    view,
)
from comis_eval.text import simhash


def floats(*values):
    return np.array(values, dtype=np.float64)


def ints(*values):
    return np.array(values, dtype=np.int64)


def test_profiles_stand_on_both_sides_of_a_checkpoints_importance():
    settings = RecallToolConfig()
    checkpoint = importance.importance("a note", ["kind:session-checkpoint"])
    assert checkpoint == pytest.approx(0.3)
    assert profile.preset("multi-session", settings).min_importance < checkpoint
    assert profile.preset("factual", settings).min_importance > checkpoint


@pytest.mark.parametrize(
    ("new", "old", "value"),
    [(["a", "b"], ["b", "a", "c"], 0.6), (["a", "b"], ["a"], 0.5), ([], ["a"], 0.5)],
)
def test_an_update_that_repeats_the_old_tags_matters_more(new, old, value):
    assert importance.reinforced(0.5, new, old) == pytest.approx(value)


def test_importance_never_exceeds_one():
    assert importance.reinforced(0.95, ["a"], ["a"]) == 1
    assert importance.importance("security", ["kind:pinned", "relevance:1"]) == 1


def test_an_exact_key_leads_and_one_or_two_shared_words_do_not_count():
    assert key_match.boost("kiln-log", "kiln-log") == 3
    assert key_match.boost("kiln-glaze-recipe-copper", "glaze and kiln") == 0
    assert key_match.boost("kiln-kiln-kiln-glaze", "kiln glaze") == 0
    assert key_match.boost("kiln-glaze-log-red", "red kiln glaze log") == 0
    assert key_match.boost("kiln-glaze-recipe", "recipe: glaze, kiln") == 1


def test_bands_hang_on_their_first_score_and_do_not_chain():
    order = bands.rerank(
        ints(0, 0, 0, 0), floats(0.9, 0.86, 0.82, 0.1), floats(0.1, 0.2, 1.0, 1.0), band=0.061
    )
    assert order.tolist() == [1, 0, 2, 3]


def test_a_boost_leads_whatever_the_score_and_equal_boosts_keep_their_order():
    order = bands.rerank(
        ints(0, 1, 3, 1), floats(0.9, 0.5, 0.1, 0.6), floats(1.0, 0.1, 0.1, 1.0), band=1.0
    )
    assert order.tolist() == [2, 1, 3, 0]


def test_freshness_and_decay():
    assert [fade.freshness(s) for s in ("active", "stale", "superseded", "archived", None)] == [
        1.0, 0.25, 0.1, 0.0, 1.0,
    ]  # fmt: skip
    assert fade.freshness("conflicted") == 0.5
    left = fade.decay(floats(0, 1, 0.5, -3), 0.95)
    assert left == pytest.approx([1, 0.95, 0.95**0.5, 1])


def test_text_alone_is_never_noise_and_vectors_alone_need_a_word_in_common():
    wanted = gate.query_words("zzqx blorf")
    alike = gate.overlaps(wanted, ["a kiln", "zzqx"])
    strange = gate.overlaps(wanted, ["a kiln"])
    assert (alike, strange) == (True, False)

    def verdict(*, best=1.0, of_both=0.7, arms=True, overlap, floor=0.0):
        return gate.reason(
            best, of_both=of_both, arms=arms, overlap=overlap, noise=0.73, floor=floor
        )

    assert verdict(overlap=True) == ""
    assert verdict(overlap=False) == "noise"
    assert verdict(of_both=0.73, overlap=False) == ""
    assert verdict(of_both=0.3, arms=False, overlap=False) == ""
    assert verdict(best=0.2, overlap=True, floor=0.3) == "threshold"
    assert verdict(best=None, overlap=True) == "unscored"


def everyone(rows):
    return np.ones(len(rows), dtype=bool)


def walk(seeds, edges, allowed=everyone, *, hops=2, min_weight=0.1, edges_per_hop=200):
    a, b, weights = zip(*edges, strict=True)
    return graph.walk(
        seeds,
        graph.Edges(ints(*a), ints(*b), floats(*weights)),
        allowed,
        hops=hops,
        min_weight=min_weight,
        edges_per_hop=edges_per_hop,
    )


def test_a_row_on_two_ways_has_the_better_one():
    found = walk({0: 1.0, 1: 0.5}, [(0, 2, 0.3), (2, 1, 0.9)])
    assert found[2] == graph.Node(pytest.approx(0.45), 1)


def test_a_row_that_may_not_be_shown_is_no_bridge_either():
    edges = [(0, 1, 1.0), (1, 2, 1.0)]
    assert walk({0: 1.0}, edges).keys() == {0, 1, 2}
    assert walk({0: 1.0}, edges, lambda rows: rows != 1).keys() == {0}


def test_hops_weights_and_edges_are_limited():
    chain = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]
    assert walk({0: 1.0}, chain, hops=1).keys() == {0, 1}
    assert walk({0: 1.0}, [(0, 1, 0.05)]).keys() == {0}
    assert walk({0: 1.0}, [(0, 1, 0.5), (0, 2, 0.9)], edges_per_hop=1).keys() == {0, 2}


def test_displaced_rows_come_right_behind_the_page_and_nothing_twice():
    assert graph.merged([1, 2, 3, 4, 5, 6], [9, 6], 4) == [1, 2, 9, 6, 3, 4, 5]
    assert graph.merged([1], [9], 4) == [1, 9]


def test_a_short_page_loses_nothing_and_a_single_slot_is_not_shared():
    assert graph.reserve(1, 0.25) == 0
    assert graph.merged([1, 2, 3], [], 10) == [1, 2, 3]


@pytest.mark.parametrize(
    ("content", "label"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----", "private-key"),
        ("token sk-" + "ab-" * 3 + "x" * 20, "api-token"),
        ("ghp_" + "a1" * 16, "api-token"),
        ("github_pat_" + "a1" * 20, "api-token"),
        ("xoxb-" + "1" * 20, "api-token"),
        ("AKIA" + "A1" * 8, "api-token"),
        ("DB_PASSWORD=abcdefghijkl", "secret-assignment"),
        ("export db_api_key='abcdefghijkl'", "secret-assignment"),
    ],
)
def test_secrets_are_refused_and_not_repeated(content, label):
    found = screening.screen(content)
    assert found is not None
    assert found.label == label
    assert content not in str(found)


@pytest.mark.parametrize(
    "content",
    [
        "task-" + "x" * 30, "sk-" + "ab-" * 20, "ghp_" + "a" * 31, "AKIA" + "A" * 15,
        "AKIA" + "A" * 17, "DB_PASSWORD=${SECRET_NAME}", "DB_PASSWORD=$(cat secret.txt)",
        "DB_PASSWORD=<your password>", "DB_PASSWORD: abcdefghijkl", "DB_PASSWORD=short",
        "_PASSWORD=abcdefghijkl", "PASSWORDS=abcdefghijkl",
    ],
)  # fmt: skip
def test_what_only_looks_a_little_like_a_secret_passes(content):
    assert screening.screen(content) is None


@pytest.mark.parametrize(
    "piece", ["sk-", "<system", "ignore ", "-----BEGIN ", "A_", "ghp_", "xoxb-", "a=", "A" * 12]
)
def test_screening_takes_time_linear_in_the_text(piece):
    started = time.process_time()
    screening.screen(piece * (400_000 // len(piece)))
    assert time.process_time() - started < 3


def test_tags_are_counted_and_measured_in_bytes():
    assert tags.tag_fault(["t"] * 20) is None
    assert "21 tags; at most 20" in (tags.tag_fault(["t"] * 21) or "")
    assert tags.tag_fault(["é" * 32]) is None
    assert "has 66 bytes" in (tags.tag_fault(["é" * 33]) or "")


def test_the_first_near_hash_is_found_and_short_texts_are_near_nothing():
    value = simhash("a kiln that fires to 1280 degrees")
    others = np.array([0, ~value, value ^ 0b1011, value], dtype=np.int64)
    assert twins.first_near(value, others) == 2
    assert twins.first_near(value, others, most=0) == 3
    assert twins.first_near(0, others) is None
    assert twins.first_near(1, np.array([0], dtype=np.int64)) is None


@pytest.mark.parametrize("letter", ["x", "ж", "😀"])
def test_content_is_cut_by_code_points(letter):
    assert view.cut(letter * 300) == letter * 300
    assert view.cut(letter * 301) == letter * 300 + "…"
    assert view.cut(letter * 301).encode().decode() == letter * 300 + "…"
