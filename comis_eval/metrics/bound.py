"""How large a rate may be of which little or nothing was seen."""

from __future__ import annotations

from comis_eval.errors import MetricError


def upper_bound(successes: int, n: int, *, level: float = 0.95) -> float:
    """Return the exact one-sided upper confidence bound of a rate.

    The largest rate under which at most ``successes`` of ``n`` would still be seen with
    probability 1 - level.

    Example: 0 leaks in 200 queries -> 0.0149.

    Args:
        successes: How often it happened, 0..n.
        n: How often it could have happened; 0 bounds nothing and gives 1.0.
        level: Confidence, in (0, 1).

    Raises:
        MetricError: If an argument is out of range.

    Source:
        Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the
        case of the binomial", Biometrika 26(4), 1934.
    """
    if not 0 <= successes <= n:
        raise MetricError(f"successes must lie in 0..n, got {successes} of {n}")
    if not 0 < level < 1:
        raise MetricError(f"level must lie strictly between 0 and 1, got {level}")
    if successes == n:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(successes + 1, n - successes, level))


def exact_interval(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the exact two-sided confidence interval of a rate.

    Example: 5 of 10 -> (0.187, 0.813).

    Args:
        successes: How often it happened, 0..n.
        n: How often it could have happened; 0 bounds nothing and gives (0.0, 1.0).
        level: Confidence, in (0, 1); each side holds half of the rest.

    Raises:
        MetricError: If an argument is out of range.

    Source:
        Clopper and Pearson, as above.
    """
    one_sided = (1 + level) / 2
    high = upper_bound(successes, n, level=one_sided)
    return 1 - upper_bound(n - successes, n, level=one_sided), high
