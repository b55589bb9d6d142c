"""One word for a metric, the first rule that holds."""

from math import nan

import pytest

from comis_eval.errors import MetricError
from comis_eval.stats import verdict


@pytest.mark.parametrize(
    ("mean", "low", "p", "margin", "expected", "why"),
    [
        (0.03, 0.01, 0.01, 0.0, "improvement", "significant and above 0"),
        (0.03, -0.02, 0.05, 0.0, "improvement", "a p at the level is significant"),
        (-0.03, -0.05, 0.01, 0.0, "regression", "significant and below 0"),
        (-0.03, -0.05, 0.01, 0.02, "regression", "significant and below -margin"),
        (-0.03, -0.05, 0.01, 0.03, "undecided", "not below -margin, yet it may be worse"),
        (-0.01, -0.02, 0.01, 0.02, "pass", "significant, but within the margin for sure"),
        (0.0, 0.0, 1.0, 0.0, "pass", "nothing changed"),
        (0.01, -0.01, 0.2, 0.02, "pass", "no loss beyond the margin is plausible"),
        (-0.03, -0.08, 0.2, 0.02, "undecided", "a loss beyond the margin is plausible"),
        (0.03, -0.08, 0.2, 0.02, "undecided", "so it is although the mean rose"),
        (nan, nan, nan, 0.02, "undecided", "an undefined metric decides nothing"),
        (0.03, nan, 0.5, 0.02, "undecided", "nor does one without an interval"),
    ],
)
def test_first_rule_that_holds(mean, low, p, margin, expected, why):
    assert verdict(mean=mean, low=low, p_adjusted=p, margin=margin) == expected, why


def test_level_says_what_is_significant():
    assert verdict(mean=1.0, low=-1.0, p_adjusted=0.03, margin=0.0, level=0.01) == "undecided"


@pytest.mark.parametrize(
    ("margin", "level", "message"),
    [(-0.1, 0.05, "margin"), (nan, 0.05, "margin"), (0.0, 0.0, "level"), (0.0, nan, "level")],
)
def test_policies_out_of_range_are_named(margin, level, message):
    with pytest.raises(MetricError, match=f"{message} must"):
        verdict(mean=0.0, low=0.0, p_adjusted=1.0, margin=margin, level=level)
