"""Two evaluations to one verdict: may the candidate take the baseline's place?"""

from comis_eval.gating.baseline import BASELINES, load, read_baseline, write_baseline
from comis_eval.gating.explain import Explanation, Moved
from comis_eval.gating.judge import gate
from comis_eval.gating.policy import Limits, Policy, load_policy
from comis_eval.gating.reference import Reference, at_reference
from comis_eval.gating.render import as_document, junit_xml, markdown_comment
from comis_eval.gating.verdict import Check, Gated, Side, Verdict

__all__ = [
    "BASELINES",
    "Check",
    "Explanation",
    "Gated",
    "Limits",
    "Moved",
    "Policy",
    "Reference",
    "Side",
    "Verdict",
    "as_document",
    "at_reference",
    "gate",
    "junit_xml",
    "load",
    "load_policy",
    "markdown_comment",
    "read_baseline",
    "write_baseline",
]
