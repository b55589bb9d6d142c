"""Fingerprints in both units, and dropping against a loop anybody can read."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.stages import dedup

Keep = Literal["best", "newest"]


def dropped(
    prints: list[int], created: list[int], alive: list[bool] | None = None, *, keep: Keep
) -> tuple[list[bool], list[int]]:
    done = dedup.drop(
        np.array([prints], dtype=np.int32),
        np.array([alive or [True] * len(prints)], dtype=bool).reshape(1, len(prints)),
        np.array([created], dtype=np.int64).reshape(1, len(prints)),
        keep=keep,
    )
    return done.kept[0].tolist(), done.by[0].tolist()


def test_a_fingerprint_is_cut_then_trimmed_then_lowered() -> None:
    # The cut comes first: of "  " + 199 letters, 198 are inside the first 200.
    assert dedup.fingerprint("  " + "A" * 199, units="code_points") == "a" * 198
    assert dedup.fingerprint("x" * 200 + "y", units="code_points") == "x" * 200


@pytest.mark.parametrize(
    ("content", "code_points", "utf16"),
    [
        ("\ufeffA", "\ufeffa", "a"),  # only JavaScript trims a byte order mark
        ("A\x1c", "a", "a\x1c"),  # only Python trims the separators U+001C..1F
        ("\x85A", "a", "\x85a"),  # and U+0085
        ("\u2028A\u3000", "a", "a"),
        ("ΟΔΟΣ", "οδος", "οδος"),  # the last sigma of a word
        ("İ", "i̇", "i̇"),
    ],
    ids=ascii,
)
def test_the_two_units_trim_differently(content: str, code_points: str, utf16: str) -> None:
    assert dedup.fingerprint(content, units="code_points") == code_points
    assert dedup.fingerprint(content, units="utf16") == utf16


def test_utf16_may_cut_a_pair_in_half() -> None:
    # Both emoji begin with U+D83D, and the cut leaves that alone.
    for emoji in "😀😎":
        assert dedup.fingerprint("x" * 199 + emoji, units="utf16") == "x" * 199 + "\ud83d"


def test_the_best_ranked_stays_or_the_newest_at_its_own_position() -> None:
    prints, created = [7, 8, 7, 7], [1, 1, 3, 2]
    assert dropped(prints, created, keep="best") == ([True, True, False, False], [-1, -1, 0, 0])
    assert dropped(prints, created, keep="newest") == ([False, True, True, False], [2, -1, -1, 2])


def test_of_the_equally_new_the_best_ranked_stays() -> None:
    assert dropped([7, 7, 7], [1, 5, 5], keep="newest") == ([False, True, False], [1, -1, 1])


def test_the_dead_are_neither_kept_nor_in_anybodys_way() -> None:
    kept, by = dropped([7, 7, 8], [9, 1, 1], [False, True, True], keep="newest")
    assert (kept, by) == ([False, True, True], [-1, -1, -1])


def test_nothing_to_drop_and_nobody_there() -> None:
    assert dropped([1, 2], [0, 0], keep="best") == ([True, True], [-1, -1])
    assert dropped([], [], keep="newest") == ([], [])


def naive(
    prints: list[int], created: list[int], alive: list[bool], keep: Keep
) -> tuple[list[bool], list[int]]:
    winner: dict[int, int] = {}
    for column, mark in enumerate(prints):
        if not alive[column]:
            continue
        held = winner.get(mark)
        if held is None or (keep == "newest" and created[column] > created[held]):
            winner[mark] = column
    kept = [alive[c] and winner[m] == c for c, m in enumerate(prints)]
    by = [winner[m] if alive[c] and winner[m] != c else -1 for c, m in enumerate(prints)]
    return kept, by


ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-3, 3) | st.integers(-(2**53), 2**53), st.booleans()),
    max_size=15,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(row=ROWS, keep=st.sampled_from(["best", "newest"]))
def test_dropping_is_what_a_plain_loop_does(row: list[tuple[int, int, bool]], keep: Keep) -> None:
    prints, created, alive = ([cell[i] for cell in row] for i in range(3))
    assert dropped(prints, created, alive, keep=keep) == naive(prints, created, alive, keep)
