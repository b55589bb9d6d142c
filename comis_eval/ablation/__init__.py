"""One switch at a time: what each difference, lane and boost is worth to a metric.

Every variant differs from the current configuration in one thing. Those that only change
what is done with the candidates share one table of them; those that change what is searched
get a table of their own. The constants of utility stay those of the current configuration.
"""

from comis_eval.ablation.effects import Ablation, Effect, ablate, as_document
from comis_eval.ablation.measure import Measured, measure
from comis_eval.ablation.tool_variants import tool_variants
from comis_eval.ablation.variants import Variant, variants

__all__ = [
    "Ablation",
    "Effect",
    "Measured",
    "Variant",
    "ablate",
    "as_document",
    "measure",
    "tool_variants",
    "variants",
]
