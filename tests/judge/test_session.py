"""What a judge is shown next."""

from dataclasses import replace

import pytest

from comis_eval.judge.journal import Act, read_journal
from comis_eval.judge.session import OutOfTurnError
from tests.judge.small import MEMORIES, PAIRS, dataset, session


def step(opened, act=Act.GRADE, grade=1):
    now = opened.progress()
    return opened.act(act, turn=now.turn, grade=grade if act is Act.GRADE else None)


def test_all_pairs_come_once_and_then_none(tmp_path):
    with session(tmp_path) as opened:
        shown = []
        while (now := opened.progress()).pair is not None:
            assert (now.graded, now.total) == (len(shown), 6)
            shown.append(now.pair)
            step(opened)
        assert shown == list(opened.pairs)
        assert sorted(shown) == sorted(PAIRS)
        assert (now.graded, now.skipped, now.place) == (6, 0, 0)
        with pytest.raises(OutOfTurnError):
            step(opened)


def test_progress_numbers_queries_and_memories(tmp_path):
    with session(tmp_path) as opened:
        seen = []
        for _ in PAIRS:
            now = opened.progress()
            seen.append((now.query, now.queries, now.place, now.of))
            step(opened)
    assert seen == [(q, 2, m, 3) for q in (1, 2) for m in (1, 2, 3)]


def test_what_is_put_off_comes_back_at_the_end_in_turn(tmp_path):
    with session(tmp_path) as opened:
        order = list(opened.pairs)
        step(opened, Act.SKIP)
        step(opened, Act.SKIP)
        for _ in order[2:]:
            step(opened)
        assert opened.progress().pair == order[0]
        assert opened.progress().skipped == 2
        step(opened, Act.SKIP)
        assert opened.progress().pair == order[1]
        step(opened)
        assert opened.progress().pair == order[0]


def test_undo_goes_back_step_by_step_to_the_start_and_no_further(tmp_path):
    with session(tmp_path) as opened:
        acts = (Act.GRADE, Act.SKIP, Act.GRADE)
        shown = []
        for act in acts:
            shown.append(opened.progress().pair)
            step(opened, act)
        for pair in reversed(shown):
            step(opened, Act.UNDO)
            assert opened.progress().pair == pair
        assert not opened.progress().can_undo
        with pytest.raises(OutOfTurnError):
            step(opened, Act.UNDO)
        assert len(read_journal(opened.journal.path).entries) == 6


def test_a_turn_is_answered_once(tmp_path):
    with session(tmp_path) as opened:
        turn = opened.progress().turn
        opened.act(Act.GRADE, turn=turn, grade=1)
        with pytest.raises(OutOfTurnError):
            opened.act(Act.GRADE, turn=turn, grade=2)
        assert opened.progress().graded == 1


def test_started_again_it_goes_on_where_it_ended(tmp_path):
    with session(tmp_path) as opened:
        for act in (Act.GRADE, Act.SKIP, Act.GRADE):
            step(opened, act)
        before = opened.progress()
    with session(tmp_path) as opened:
        assert opened.progress() == before
        step(opened, Act.UNDO)
        assert opened.progress().graded == 1


def test_undo_of_another_pools_acts_is_not_offered(tmp_path):
    with session(tmp_path, pairs=PAIRS[:3]) as opened:
        step(opened)
    with session(tmp_path, pairs=PAIRS[3:]) as opened:
        assert opened.progress().graded == 0
        assert not opened.progress().can_undo
        step(opened)
        step(opened, Act.UNDO)
    with session(tmp_path, pairs=PAIRS[:3]) as opened:
        assert opened.progress().graded == 1


def test_a_changed_text_is_asked_again_and_the_new_grade_counts(tmp_path):
    with session(tmp_path) as opened:
        for _ in PAIRS:
            step(opened)
    changed = dataset(memories=[MEMORIES[0], replace(MEMORIES[1], content="new"), *MEMORIES[2:]])
    with session(tmp_path, of=changed) as opened:
        assert {pair.memory_id for pair in opened.stale} == {"m1"}
        assert len(opened.stale) == 2
        assert opened.progress().graded == 4
        step(opened)
        step(opened)
        assert opened.progress().pair is None
    with session(tmp_path, of=changed) as opened:
        assert opened.stale == []


def test_the_second_sitting_starts_afresh(tmp_path):
    with session(tmp_path) as opened:
        for _ in PAIRS:
            step(opened)
    with session(tmp_path, sitting=2) as opened:
        assert opened.progress().graded == 0
        step(opened, grade=3)
    with session(tmp_path) as opened:
        assert opened.progress().graded == 6


def test_after_its_end_nothing_is_taken(tmp_path):
    with session(tmp_path) as opened:
        turn = opened.progress().turn
    with pytest.raises(OutOfTurnError):
        opened.act(Act.GRADE, turn=turn, grade=1)
