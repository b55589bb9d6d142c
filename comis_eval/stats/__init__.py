"""Statistics of paired differences: by group, weighted, seeded, with a p that is never 0.

::

    differences = candidate - baseline            # (queries, metrics), higher is better
    compare(differences, groups, weights, categories, margins=0.01)
    max_t(differences, groups, weights)           # p corrected over the metrics
"""

from comis_eval.stats.agreement import Agreement, weighted_kappa
from comis_eval.stats.comparison import Comparison, compare
from comis_eval.stats.groups import GroupSums, group_sums
from comis_eval.stats.intervals import Interval, IntervalKind, bootstrap_ci
from comis_eval.stats.mcnemar import mcnemar
from comis_eval.stats.multiplicity import holm, max_t
from comis_eval.stats.permutation import permutation_test
from comis_eval.stats.power import (
    cohens_dz,
    minimum_detectable_difference,
    needed_n,
    spread_of,
)
from comis_eval.stats.selection import SelectionFloor, selection_floor, within_one_standard_error
from comis_eval.stats.sign_flips import Alternative, flipped_sums
from comis_eval.stats.student import paired_t, standard_error
from comis_eval.stats.verdicts import Outcome, verdict

__all__ = [
    "Agreement",
    "Alternative",
    "Comparison",
    "GroupSums",
    "Interval",
    "IntervalKind",
    "Outcome",
    "SelectionFloor",
    "bootstrap_ci",
    "cohens_dz",
    "compare",
    "flipped_sums",
    "group_sums",
    "holm",
    "max_t",
    "mcnemar",
    "minimum_detectable_difference",
    "needed_n",
    "paired_t",
    "permutation_test",
    "selection_floor",
    "spread_of",
    "standard_error",
    "verdict",
    "weighted_kappa",
    "within_one_standard_error",
]
