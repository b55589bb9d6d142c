"""Arguments that nobody means: one line and exit 2, no traceback."""

import pytest

from tests.cli.world import error

LONG = "n" * 5_000


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("evaluate", LONG), "File name too long"),
        (("report", LONG, "--out", "x.html"), "File name too long"),
        (("compare", LONG, LONG), "File name too long"),
        (("baseline", "show", LONG), "File name too long"),
        (("evaluate", "x", "--split", "test", "--seed", "-1"), "--seed"),
    ],
)
def test_one_line_and_2(command: tuple[str, ...], said: str) -> None:
    told = error(*command)
    assert said in told
    assert len(told) < 1_000
    assert told.count("\n") == 1
