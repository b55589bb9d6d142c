"""Order, second pass and lists of pairs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.errors import JudgeError
from comis_eval.judge.journal import Pair
from comis_eval.judge.pairs import ordered, read_pairs, second_pass, seen, write_pairs
from tests.judge.small import MEMORIES, PAIRS, QUERIES, dataset

MANY = [Pair(f"q{q}", f"m{m}") for q in range(12) for m in range(12)]
SUBSETS = st.lists(st.sampled_from(MANY), unique=True, min_size=1)


def queries_of(pairs):
    return list(dict.fromkeys(pair.query_id for pair in pairs))


@given(SUBSETS, st.integers(0, 5))
def test_the_order_is_the_same_whenever_it_is_made(pairs, seed):
    once = ordered(pairs, judge="ada", seed=seed)
    assert once == ordered(reversed(pairs), judge="ada", seed=seed)
    assert sorted(once) == sorted(pairs)


@given(SUBSETS)
def test_pairs_that_come_later_do_not_move_the_others(pairs):
    some = set(pairs)
    whole = ordered(MANY, judge="ada", seed=0)
    assert ordered(pairs, judge="ada", seed=0) == [pair for pair in whole if pair in some]


def test_a_querys_memories_stay_together():
    shuffled = ordered(MANY, judge="ada", seed=0)
    assert [pair.query_id for pair in shuffled] == [
        query for query in queries_of(shuffled) for _ in range(12)
    ]


def test_judges_share_the_order_of_queries_and_not_that_of_memories():
    ada, bob = (ordered(MANY, judge=judge, seed=0) for judge in ("ada", "bob"))
    assert ada != bob
    assert queries_of(ada) == queries_of(bob) != [f"q{n}" for n in range(12)]
    again = ordered(MANY, judge="ada", seed=0, sitting=2)
    assert queries_of(again) == queries_of(ada)
    assert again != ada
    assert queries_of(ordered(MANY, judge="ada", seed=1)) != queries_of(ada)


def test_place_says_nothing_of_the_memory():
    """Over many queries each memory comes first about as often."""
    wide = [Pair(f"q{q}", f"m{m}") for q in range(400) for m in range(4)]
    first = {}
    for pair in ordered(wide, judge="ada", seed=0):
        first.setdefault(pair.query_id, pair.memory_id)
    counts = [list(first.values()).count(f"m{m}") for m in range(4)]
    assert min(counts) > 70  # 100 expected, sd 8.7


def test_a_second_pass_draws_a_share_rounded_up_and_the_same_again():
    assert len(second_pass(MANY, share=0.2, seed=0)) == 29  # 28.8
    assert len(second_pass(MANY[:10], share=0.2, seed=0)) == 2
    assert second_pass(MANY, share=1, seed=0) == second_pass(reversed(MANY), share=1, seed=0)
    assert set(second_pass(MANY, share=1, seed=0)) == set(MANY)
    some = second_pass(MANY, share=0.5, seed=0)
    assert some[:29] == second_pass(MANY, share=0.2, seed=0)
    assert set(some) != set(second_pass(MANY, share=0.5, seed=1))


@pytest.mark.parametrize("share", [0, -1, 1.01, float("nan")])
def test_a_share_is_one(share):
    with pytest.raises(JudgeError, match=r"must lie in \(0, 1\]"):
        second_pass(MANY, share=share, seed=0)


def test_nothing_judged_has_no_second_pass():
    with pytest.raises(JudgeError, match="nothing was judged"):
        second_pass([], share=0.2, seed=0)


def test_a_list_of_pairs_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(write_pairs(PAIRS))
    assert read_pairs(path, dataset()) == PAIRS


def test_every_wrong_line_of_a_list_is_told(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("q1\tm1\nq1 m1\nq9 m1\nq1 m9\nq1\n")
    with pytest.raises(JudgeError) as raised:
        read_pairs(path, dataset())
    assert str(raised.value).split("\n")[1:] == [
        "pairs.tsv:2: the pair already stands on line 1",
        "pairs.tsv:3: query 'q9' is not in small",
        "pairs.tsv:4: memory 'm9' is not in small",
        "pairs.tsv:5: has 1 columns, must have 2: query memory",
    ]
    path.write_text("")
    with pytest.raises(JudgeError, match="is empty"):
        read_pairs(path, dataset())


def test_a_text_that_changed_is_seen():
    pair = Pair("q1", "m1")
    before = seen(dataset(), pair)
    assert before == seen(
        dataset(memories=[*MEMORIES[:2], replace(MEMORIES[2], content="x")]), pair
    )
    changed = [MEMORIES[0], replace(MEMORIES[1], content="otherwise")]
    assert before != seen(dataset(memories=changed), pair)
    assert before != seen(dataset(queries=[replace(QUERIES[0], text="other?")]), pair)
