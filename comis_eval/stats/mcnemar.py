"""Two yes-or-no outcomes of the same queries, compared exactly."""

from __future__ import annotations

from comis_eval.errors import MetricError


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p that the two outcomes happen equally often.

    Only queries where they differ say anything: under the null each falls on either side
    with probability one half. Example: (8, 1) -> 20 / 512 = 0.0390625. Without any, 1.

    Args:
        only_first: Queries where the first happened and the second did not, >= 0.
        only_second: The other way round, >= 0.

    Raises:
        MetricError: If a count is negative.

    Source:
        McNemar, Psychometrika 12, 1947; the exact binomial form.
    """
    if min(only_first, only_second) < 0:
        raise MetricError(f"counts must be >= 0, got {only_first} and {only_second}")
    if not only_first + only_second:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_first, only_first + only_second).pvalue)
