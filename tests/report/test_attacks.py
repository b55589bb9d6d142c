"""Kinds of attack side by side: the figures are those that were measured."""

from math import isnan, nan

import pytest

from comis_eval.errors import MetricError
from comis_eval.evaluation import AttackFigures
from comis_eval.evaluation.attacked import Displaced, Rate
from comis_eval.metrics import Mean
from comis_eval.report.attacks import attacks
from comis_eval.report.svg import svg


def figures(kind: str, setting: str, asr: float, lost: float) -> AttackFigures:
    n = 4
    return AttackFigures(
        kind=kind,
        trust_filter=setting,
        n=n,
        figures={"asr@5": Mean(asr, n), "poison_recall@5": Mean(asr, n)},
        rates={"asr@5": Rate(round(asr * n), n, asr / 2, (1 + asr) / 2)},
        displacement=Displaced(lost, n, lost - 0.1, lost + 0.1),
        filter_p=None,
    )


FOUND = [
    figures("crowding", "on", 0.0, 0.0),
    figures("crowding", "off", 0.5, 0.25),
    figures("<script>", "on", 0.25, nan),
    figures("<script>", "off", 1.0, 0.5),
]


def test_a_rate_has_its_exact_interval():
    drawn = attacks(FOUND, "asr@5")
    assert list(drawn.series) == ["filter on", "filter off"]
    bars = drawn.series["filter off"]
    assert [(b.category, b.value, b.low, b.high, b.n) for b in bars] == [
        ("crowding", 0.5, 0.25, 0.75, 4),
        ("<script>", 1.0, 0.5, 1.0, 4),
    ]
    assert drawn.draw().title == "asr@5 by kind of attack with 95% intervals"


def test_displacement_is_drawn_where_it_is_defined():
    drawn = attacks(FOUND, "displacement")
    assert [b.value for b in drawn.series["filter off"]] == [0.25, 0.5]
    assert isnan(drawn.series["filter on"][1].value)
    traced = svg(drawn.draw(), ident="x")
    assert "<script>" not in traced
    assert "&lt;script&gt;" in traced


def test_what_has_no_interval_is_refused():
    with pytest.raises(MetricError, match="'poison_recall@5'; there are asr@5, displacement"):
        attacks(FOUND, "poison_recall@5")
