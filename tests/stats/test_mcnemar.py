"""McNemar's exact test, by hand."""

import pytest

from comis_eval.errors import MetricError
from comis_eval.stats import mcnemar


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        (0, 5, 2 / 32),
        (8, 1, 2 * (1 + 9) / 512),
        (3, 3, 1.0),
    ],
)
def test_by_hand(first, second, p):
    assert mcnemar(first, second) == pytest.approx(p, abs=1e-12)


def test_a_negative_count_is_refused():
    with pytest.raises(MetricError, match=">= 0, got -1 and 2"):
        mcnemar(-1, 2)
