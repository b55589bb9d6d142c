"""What several sections share: which figures come first, and how values stand in cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from comis_eval.comparison.paired import incomparable
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL, Mean
from comis_eval.report.drawing import number
from comis_eval.report.markup import Html, element, table
from comis_eval.text import printable

HEADLINE = (
    "ndcg@10", "recall@5", "hit@5", "mrr@10", "context_recall", "utility", "judged@5",
)  # fmt: skip
"""The figures that stand at the top, those of them that were measured."""

MAIN = ("ndcg@10", "utility", "context_recall")
"""What pictures and the list of queries show: the first of these that was measured."""

TRUST = (
    "policy_leak", "scope_leak", "laundered", "resurrected", "over_block", "trust_inversion@5",
    "untrusted_share@5",
)  # fmt: skip
"""The figures of the section on trust."""

BY_STAGE = "unwanted_after_"
"""How the metrics begin that the funnel shows."""

Named = Mapping[str, Evaluation]
"""One evaluation or two, by the name they are shown under."""

_ID = 80


def main_metric(named: Named) -> str:
    """The figure that pictures and the list of queries show.

    Raises:
        EvaluationError: If there is none that every evaluation has.
    """
    first = next(iter(named.values()))
    found = measured((*MAIN, *first.values), named)
    if not found:
        raise EvaluationError("the evaluations have no metric in common; evaluate again with --out")
    return found[0]


def measured(names: Iterable[str], named: Named) -> list[str]:
    """Those of the metrics that every evaluation has, with the same constants behind them."""
    evaluations = tuple(named.values())
    return [
        name
        for name in dict.fromkeys(names)
        if all(name in e.values and name in e.means[ALL] for e in evaluations)
        and incomparable(evaluations, name) is None
    ]


def of(name: str, named: Named) -> str:
    """`` of NAME`` where there are two evaluations to tell apart."""
    return f" of {name}" if len(named) > 1 else ""


def shown(value: object) -> str:
    """Anything as short text on one line, a dash for what is missing."""
    return "-" if value is None else printable(str(value), limit=_ID)


def value_and_n(mean: Mean | None) -> tuple[str, str]:
    """A figure and the queries behind it."""
    return ("-", "-") if mean is None else (number(mean.value), str(mean.n))


def query_link(query_id: str, place: int) -> Html:
    """A link that opens a query in the browser."""
    return element("a", shown(query_id), href=f"#query={place}", class_="id")


def note(told: str) -> Html:
    """A remark, such as what was not measured."""
    return element("p", told, class_="note")


def alarm(loud: str, rest: str = "") -> Html:
    """What nobody may overlook."""
    return element("p", element("strong", loud), rest, class_="alarm")


def means_table(
    rows: Mapping[str, Mapping[str, Mean]],
    metrics: Sequence[str],
    *,
    bold: Sequence[str],
    caption: str = "",
) -> Html:
    """Figures by row and metric, with the n of the first metric."""
    body = [
        (name, value_and_n(row.get(metrics[0]))[1], *(value_and_n(row.get(m))[0] for m in metrics))
        for name, row in rows.items()
    ]
    marks = ["this" if name in bold else "" for name in rows]
    return table(["", "n", *metrics], body, caption=caption, rows=marks)
