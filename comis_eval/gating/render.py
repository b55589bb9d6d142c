"""A verdict as JSON, as a pull request's comment and as JUnit XML; none of them judges again.

Whatever a dataset or a live system wrote (ids, categories, names) is disarmed for the place
it is shown in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from comis_eval.comparison import Delta
from comis_eval.gating.explain import Explanation, Moved
from comis_eval.gating.verdict import Check, Gated, Verdict, sentence
from comis_eval.text import markdown, printable, xml

SHOWN = 10
"""Queries that people are shown; JSON has all that were followed."""

_ROWS = 60
_COMMENT_CHARS = 60_000
_NAME_CHARS = 80
_TOLD_CHARS = 600
_HEADLINES = {
    "leak": "LEAK: a promise of the pipeline is broken",
    "regression": "REGRESSION: the candidate is worse",
    "undecided": "UNDECIDED: too few queries to tell",
    "pass": "PASS: no worse than the baseline",
    "improvement": "IMPROVEMENT: better than the baseline",
}


def headline(verdict: Verdict) -> str:
    """The verdict in a line."""
    return _HEADLINES[verdict.outcome]


# --- JSON -----------------------------------------------------------------------------------


def as_document(verdict: Verdict) -> dict[str, Any]:
    """The whole verdict as JSON has it; undefined figures are null."""
    document = {
        "outcome": verdict.outcome,
        "exit_status": verdict.exit_status,
        "reasons": list(verdict.reasons),
        "baseline": asdict(verdict.baseline),
        "candidate": asdict(verdict.candidate),
        "policy": verdict.policy.model_dump(mode="json"),
        "undecided": verdict.undecided,
        "checks": [asdict(check) for check in verdict.checks],
        "gated": [
            {**delta_document(g.delta), "margin": g.margin, "outcome": g.outcome}
            for g in verdict.gated
        ],
        "reported": [delta_document(delta) for delta in verdict.reported],
        "explanation": _explanation(verdict.explanation),
        "reference": verdict.reference,
        "touched": list(verdict.touched),
        "notes": list(verdict.notes),
    }
    return {key: finite(value) for key, value in document.items()}


def delta_document(delta: Delta) -> dict[str, Any]:
    """One figure's difference, flat, as JSON has it."""
    told = asdict(delta)
    figures = told.pop("figures")
    return {key: finite(value) for key, value in {**told, **figures}.items()}


def _explanation(explanation: Explanation | None) -> dict[str, Any] | None:
    if explanation is None:
        return None
    moved = [
        {**one._asdict(), "parting": None if one.parting is None else one.parting._asdict()}
        for one in explanation.moved
    ]
    return {**explanation._asdict(), "moved": moved}


def finite(value: Any) -> Any:
    """The same with None for what JSON has no number for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


# --- Markdown -------------------------------------------------------------------------------


def markdown_comment(verdict: Verdict) -> str:
    """A comment for a pull request, at most 60,000 characters."""
    blocks = list(_blocks(verdict))
    kept, length = [], 0
    for block in blocks:
        length += len(block) + 2
        if length > _COMMENT_CHARS:
            kept.append("_What comes after this is too long for a comment; see the JSON._")
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def _blocks(verdict: Verdict) -> Iterator[str]:
    yield f"### Recall gate: {headline(verdict)}"
    before, after = verdict.baseline, verdict.candidate
    yield (
        f"{_md(after.label)} against {_md(before.label)} on {_md(after.dataset)} "
        f"{_md(after.version)} (fingerprint `{_code(after.fingerprint[:12])}`, split "
        f"{_md(after.split)}, {after.queries} queries); configuration "
        f"`{_code(before.config_hash[:12])}` to `{_code(after.config_hash[:12])}`."
    )
    if verdict.touched:
        listed = ", ".join(map(_md, verdict.touched[:SHOWN]))
        more = len(verdict.touched) - SHOWN
        yield (
            f"**This change touches what it is judged by**: {listed}"
            f"{f' and {more} more' if more > 0 else ''}. "
            f"The verdict used these files as commit `{_code((verdict.reference or '')[:12])}` "
            "holds them."
        )
    wrong = [check for check in verdict.checks if check.outcome != "ok"]
    if wrong:
        yield "\n".join(f"- **{_md(c.name)}**: {_md(c.told, limit=_TOLD_CHARS)}" for c in wrong)
    yield _table(
        ("gated", "baseline", "candidate", "difference", "95% interval", "p", "margin", "verdict"),
        map(_gated_row, verdict.gated),
        level=verdict.policy.level,
    )
    if verdict.explanation is not None:
        yield from _explained(verdict.explanation)
    if verdict.reported:
        rows = [_delta_cells(delta) for delta in verdict.reported[:_ROWS]]
        columns = ("reported", "baseline", "candidate", "difference", "95% interval", "p")
        laid = _table(columns, rows, level=verdict.policy.level)
        more = len(verdict.reported) - len(rows)
        rest = f"\n\n... and {more} more (JSON)" if more > 0 else ""
        yield f"<details><summary>By category</summary>\n\n{laid}{rest}\n\n</details>"
    if verdict.notes:
        yield "\n".join(f"- {_md(note, limit=_TOLD_CHARS)}" for note in verdict.notes)
    yield (
        "Differences are turned so that higher is better; p is corrected "
        f"({'MaxT' if verdict.policy.correction == 'maxt' else 'Holm'}) over the gated figures, "
        "by group of queries."
    )


def _gated_row(gated: Gated) -> tuple[str, ...]:
    shown = "**regression**" if gated.outcome == "regression" else gated.outcome
    return (*_delta_cells(gated.delta), f"{gated.margin:g}", shown)


def _delta_cells(delta: Delta) -> tuple[str, ...]:
    f = delta.figures
    return (
        f"{_md(delta.metric)} of {_md(delta.category)}",
        figure(delta.before),
        figure(delta.after),
        signed(f.mean),
        f"{signed(f.low)} .. {signed(f.high)}",
        figure(delta.p_adjusted),
    )


def _explained(explanation: Explanation) -> Iterator[str]:
    name = f"{_md(explanation.metric)} of {_md(explanation.category)}"
    yield (
        f"**What moved** in {name}: {explanation.lost} queries lost, {explanation.gained} gained."
        + (f" First part at: {stages(explanation)}." if explanation.stages else "")
        + (f" No stage is told: {_md(explanation.untraced)}." if explanation.untraced else "")
    )
    yield _table(
        ("query", "category", "baseline", "candidate", "parts at", "in"),
        (_moved_row(moved) for moved in explanation.moved[:SHOWN]),
    )


def _moved_row(moved: Moved) -> tuple[str, ...]:
    stage, what = ("", "") if moved.parting is None else moved.parting[:2]
    return (
        _md(moved.query_id),
        _md(moved.category),
        figure(moved.before),
        figure(moved.after),
        stage,
        _md(what, limit=200),
    )


def stages(explanation: Explanation) -> str:
    """How many of the followed queries part at each stage."""
    return ", ".join(f"{stage} {count}" for stage, count in explanation.stages.items())


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, level: float = 0.05) -> str:
    named = [column.replace("95%", f"{100 * (1 - level):g}%") for column in columns]
    lines = [named, ["---"] * len(named), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _md(text: str, *, limit: int = _NAME_CHARS) -> str:
    return markdown(printable(text, limit=limit))


def _code(text: str) -> str:
    """Text for a code span, which only a backtick or a line end could leave."""
    return "".join(c for c in text if c.isalnum())


# --- JUnit ----------------------------------------------------------------------------------


def junit_xml(verdict: Verdict) -> str:
    """A test suite: a case a check and a case a gated figure."""
    cases = [_check_case(check) for check in verdict.checks]
    cases += [_gated_case(gated, verdict) for gated in verdict.gated]
    failures = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="comis-eval gate" {counts}>\n'
        f'  <properties><property name="outcome" value="{verdict.outcome}"/></properties>\n'
        + "".join(cases)
        + "</testsuite>\n"
    )


def _check_case(check: Check) -> str:
    inner = "" if check.outcome == "ok" else _wrong("failure", check.outcome, check.told)
    return _case("checks", check.name, inner)


def _gated_case(gated: Gated, verdict: Verdict) -> str:
    inner = ""
    if gated.outcome == "regression":
        inner = _wrong("failure", "regression", sentence(gated))
    elif gated.outcome == "undecided":
        # A case must not say less than the exit status, nor more.
        kind = "skipped" if verdict.undecided == "pass" else "failure"
        inner = _wrong(kind, "undecided", sentence(gated))
    return _case(gated.delta.category, gated.delta.metric, inner)


def _wrong(kind: str, outcome: str, told: str) -> str:
    what = "" if kind == "skipped" else f' type="{outcome}"'
    return f'<{kind}{what} message="{_xml(told)}"/>'


def _case(group: str, name: str, inner: str) -> str:
    return f'  <testcase classname="gate.{_xml(group)}" name="{_xml(name)}">{inner}</testcase>\n'


def _xml(text: str) -> str:
    return xml(printable(text, limit=_TOLD_CHARS))


# --- figures --------------------------------------------------------------------------------


def figure(value: float) -> str:
    """A figure with four decimals, a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def signed(value: float) -> str:
    """A difference with four decimals and its sign, a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:+.4f}"
