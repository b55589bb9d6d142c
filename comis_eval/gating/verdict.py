"""The verdict: one record that text, JSON, Markdown, JUnit and the exit status are told from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from comis_eval.comparison import Delta
from comis_eval.evaluation import Evaluation
from comis_eval.gating.explain import Explanation
from comis_eval.gating.policy import Policy
from comis_eval.stats import Outcome
from comis_eval.text import html_table, notebook_html, printable

Undecided = Literal["report", "pass", "fail"]
Found = Literal["ok", "leak", "regression"]
Said = Literal["leak", "regression", "undecided", "pass", "improvement"]

LEAK, REGRESSION, UNDECIDED, PASS = 3, 1, 4, 0
"""Exit statuses; 2 is input that no verdict can be made of."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two evaluations is."""

    label: str
    """How the caller names it."""
    dataset: str
    version: str
    fingerprint: str
    split: str
    pipeline: str
    config_hash: str
    versions: Mapping[str, str]
    queries: int
    failed: int

    @classmethod
    def of(cls, evaluation: Evaluation, label: str) -> Side:
        """Sum up an evaluation."""
        data, counts = evaluation.dataset, evaluation.counts
        return cls(
            label,
            data["name"],
            data["version"],
            data["fingerprint"],
            data["split"],
            evaluation.pipeline,
            evaluation.config_hash,
            evaluation.versions,
            counts["queries"],
            counts["failed"],
        )


@dataclass(frozen=True, slots=True)
class Check:
    """Something that chance has no part in."""

    name: str
    outcome: Found
    told: str
    """What was found and what is allowed, as plain text that others may have written in."""


@dataclass(frozen=True, slots=True)
class Gated:
    """A figure that the policy gates."""

    delta: Delta
    margin: float
    outcome: Outcome

    @property
    def name(self) -> str:
        """The metric and its slice."""
        return f"{self.delta.metric} of {self.delta.category}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """May the candidate take the baseline's place?

    Attributes:
        baseline, candidate: What was compared.
        policy: By which rules.
        undecided: What an undecided outcome means to the caller: its own exit status, or
            that of pass or of regression.
        checks: Hard invariants and limits.
        gated: Figures that decide, one family of tests.
        reported: The same metrics on the other slices; they decide nothing.
        explanation: What moved and where; None when nothing did.
        reference: The commit that baseline, policy and dataset are from; None: no commit.
        touched: Of those, the files that the change touches.
        notes: What a reader must know beside.
    """

    baseline: Side
    candidate: Side
    policy: Policy
    undecided: Undecided
    checks: tuple[Check, ...]
    gated: tuple[Gated, ...]
    reported: tuple[Delta, ...]
    explanation: Explanation | None = None
    reference: str | None = None
    touched: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Said:
        """The gravest thing found."""
        found = {check.outcome for check in self.checks}
        judged = {gated.outcome for gated in self.gated}
        if "leak" in found:
            return "leak"
        if "regression" in found or "regression" in judged:
            return "regression"
        if "undecided" in judged:
            return "undecided"
        return "improvement" if "improvement" in judged else "pass"

    @property
    def exit_status(self) -> int:
        """What the process says: 3 leak, 1 regression, 4 undecided, 0 pass or improvement."""
        if self.outcome == "undecided":
            return {"report": UNDECIDED, "pass": PASS, "fail": REGRESSION}[self.undecided]
        return {"leak": LEAK, "regression": REGRESSION}.get(self.outcome, PASS)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What led to the outcome, one clause each."""
        if self.outcome in ("pass", "improvement"):
            return tuple(f"{g.name} improved" for g in self.gated if g.outcome == "improvement")
        told = [check.told for check in self.checks if check.outcome == self.outcome]
        return tuple(told + [sentence(g) for g in self.gated if g.outcome == self.outcome])

    def _repr_html_(self) -> str:
        """What a notebook shows: the outcome, why, and every check and figure."""
        rows: list[tuple[str, str, str]] = [(c.name, c.outcome, c.told) for c in self.checks]
        rows += [(gated.name, gated.outcome, sentence(gated)) for gated in self.gated]
        sides = f"{printable(self.candidate.label)} against {printable(self.baseline.label)}"
        return notebook_html(
            f"{self.outcome}: {sides}",
            *map(printable, (*self.reasons, *self.notes)),
            html_table(["what", "outcome", "found"], [[*map(printable, r)] for r in rows], texts=3),
        )


def sentence(gated: Gated) -> str:
    """Say what was found of a figure, its interval and its margin."""
    delta, figures = gated.delta, gated.delta.figures
    if not figures.n_queries:
        return f"{gated.name}: no query has a value in both"
    return (
        f"{gated.name}: {delta.before:.4f} to {delta.after:.4f}, difference {figures.mean:+.4f} "
        f"[{figures.low:+.4f}, {figures.high:+.4f}], p {delta.p_adjusted:.4f} corrected, margin "
        f"{gated.margin:g}, n {figures.n_queries}"
    )
