"""The data behind the figures of an evaluation, each worked on paper."""

from math import isnan

import numpy as np
import pytest

from comis_eval.report.categories import categories
from comis_eval.report.drawing import NARROW, WIDE, Box, Dot, Label
from comis_eval.report.factors import factors
from comis_eval.report.funnel import funnel
from comis_eval.report.headline import headline, interval
from comis_eval.report.lanes import lanes
from comis_eval.report.movers import movers
from comis_eval.report.scatter import scatter
from comis_eval.report.trace import trace_of
from tests.report.build import NAN, candidate, evaluation, write_trace

NDCG = {"ndcg@10": [0.2, 0.4, 0.6, 0.8]}
FUNNEL = {
    f"unwanted_after_{stage}": [count, 0, 0, 0]
    for stage, count in zip(
        ("search", "fuse", "rerank", "score", "trust", "dedup", "budget"),
        (4, 4, 4, 3, 1, 1, 1),
        strict=True,
    )
}


def texts(drawing):
    return [mark.text for mark in drawing.marks if isinstance(mark, Label)]


def test_a_figure_stands_among_its_references_worst_first():
    measured = evaluation(
        NDCG, references={"random": {"ndcg@10": 0.1}, "oracle": {"ndcg@10": 0.9}, "fts": {"map": 1}}
    )
    found = headline({"now": measured}, "ndcg@10")
    assert [(s.label, s.value, s.kind) for s in found.standings] == [
        ("random", 0.1, "reference"), ("now", 0.5, "first"), ("oracle", 0.9, "oracle"),
    ]  # fmt: skip
    assert found.headroom == pytest.approx(0.4)
    low, high = found.standings[1].low, found.standings[1].high
    assert 0.2 <= low < 0.5 < high <= 0.8
    assert isnan(found.standings[0].low)


def test_two_evaluations_stand_side_by_side():
    worse = evaluation({"ndcg@10": [0.1, 0.1, 0.1, 0.1]})
    found = headline({"a": evaluation(NDCG), "b": worse}, "ndcg@10")
    assert [(s.label, s.kind) for s in found.standings] == [("b", "second"), ("a", "first")]
    assert isnan(found.headroom)
    shapes = {mark.role: mark.shape for mark in found.draw().marks if isinstance(mark, Dot)}
    assert shapes == {"first": "circle", "second": "diamond"}


def test_the_interval_draws_whole_groups():
    together = evaluation(NDCG, groups=["g", "g", "h", "h"])
    apart = evaluation(NDCG)
    wide, narrow = (interval(one, "ndcg@10") for one in (together, apart))
    assert wide[0] == pytest.approx(0.3)  # both draws took the group of 0.2 and 0.4
    assert wide[1] == pytest.approx(0.7)
    assert narrow[1] - narrow[0] < 0.4


@pytest.mark.parametrize("metric", ["laundered", "later@3", "utility"])
def test_a_sum_a_later_metric_and_unknown_weights_have_no_interval(metric):
    assert all(isnan(end) for end in interval(evaluation({metric: [1, 2, 3, 4]}), metric))


def test_utility_weighs_as_its_figure_does():
    values = {"utility": [0.0, 1.0, 1.0, 0.8], "abstention": [NAN, NAN, NAN, 0.0]}
    measured = evaluation(values, categories=["x", "x", "y", "none"], groups=list("ggab"))
    low, high = interval(measured, "utility")
    # 0.9 x mean of (x 0.5, y 1.0) + 0.1 x 0.8; strata of one group cannot be told apart
    assert low <= 0.9 * 0.75 + 0.1 * 0.8 <= high


def test_categories_have_their_own_means_and_intervals():
    found = categories({"now": evaluation({"ndcg@10": [0.2, 0.4, 0.6, NAN]})}, "ndcg@10")
    bars = {bar.category: bar for bar in found.series["now"]}
    assert [*bars] == ["all", "x", "y"]
    assert [bars[c].value for c in bars] == pytest.approx([0.4, 0.3, 0.6])
    assert [bars[c].n for c in bars] == [3, 2, 1]
    assert (bars["x"].low, bars["x"].high) == pytest.approx((0.2, 0.4))
    assert isnan(bars["y"].low)  # one group tells nothing of the spread


def test_an_undefined_category_is_a_dash():
    drawing = categories({"now": evaluation({"ndcg@10": [0.2, 0.4, NAN, NAN]})}, "ndcg@10").draw()
    assert "y (0)" in texts(drawing)
    assert "-" in texts(drawing)


def test_a_scatter_pairs_queries_and_counts_who_moved():
    first = evaluation({"ndcg@10": [0.5, 0.5, 0.5, NAN]})
    second = evaluation({"ndcg@10": [0.5, 0.75, 0.25, 0.5]})
    found = scatter(first, second, "ndcg@10", ("a", "b"))
    assert [(p.x, p.y, p.queries) for p in found.points] == [
        (0.5, 0.25, ("q3",)), (0.5, 0.5, ("q1",)), (0.5, 0.75, ("q2",)),
    ]  # fmt: skip
    assert (found.better, found.worse, found.same, found.undefined) == (1, 1, 1, 1)


def test_queries_of_the_same_two_values_are_one_larger_mark():
    same = evaluation({"ndcg@10": [1.0] * 4})
    found = scatter(same, same, "ndcg@10", ("a", "b"))
    assert found.points == ((1.0, 1.0, ("q1", "q2", "q3", "q4")),)
    dot = [mark for mark in found.draw().marks if isinstance(mark, Dot)][-1]
    assert dot.radius > 3
    assert dot.tip.startswith("q1, q2, q3 and 1 more: 1.000")


def test_less_is_better_turns_the_scatter_and_the_movers():
    first, second = (evaluation({"context_chars": [v, 10, 10, 10]}) for v in (100, 50))
    found = scatter(first, second, "context_chars", ("a", "b"))
    assert found.lower_is_better
    assert (found.better, found.worse) == (1, 0)
    moved = movers(first, second, "context_chars")
    assert [m.query for m in moved.gained] == [0]
    assert moved.lost == ()


def test_movers_are_the_largest_first_and_in_file_order_when_equal():
    first = evaluation({"ndcg@10": [0.5, 0.5, 0.9, NAN]})
    second = evaluation({"ndcg@10": [0.4, 0.4, 0.3, 1.0]})
    moved = movers(first, second, "ndcg@10", most=2)
    assert [(m.query, m.first, m.second) for m in moved.lost] == [(2, 0.9, 0.3), (0, 0.5, 0.4)]
    assert moved.gained == ()


def _trace(tmp_path, rows):
    trace = write_trace(rows, tmp_path / "a.trace.parquet")
    return trace_of(evaluation(NDCG, trace=trace), tmp_path / "a.json")


def test_factors_are_spread_over_candidates_and_over_the_context(tmp_path):
    rows = [
        candidate("q1", f"m{place}", place, recency=factor, fate=fate)
        for place, factor, fate in (
            (1, 1.2, "included"), (2, 1.0, "included"), (3, 0.8, "trust_filtered"),
            (4, 1.0, "beyond_max_results"), (5, 1.0, "deduped"),
        )
    ]  # fmt: skip
    found = factors(_trace(tmp_path, rows))
    recency = found.candidates[0]
    assert recency.factor == "recency"
    assert (recency.least, recency.p25, recency.median, recency.p75, recency.most) == pytest.approx(
        (0.8, 1.0, 1.0, 1.0, 1.2)
    )
    assert (recency.neutral, recency.n) == (pytest.approx(0.6), 5)
    inside = found.context[0]
    assert (inside.least, inside.median, inside.most, inside.n) == pytest.approx((1.0, 1.1, 1.2, 2))


def test_nothing_in_the_context_leaves_the_other_strips(tmp_path):
    found = factors(_trace(tmp_path, [candidate("q1", "m", 1, fate="trust_filtered")]))
    assert found.context == ()
    assert found.draw(NARROW).marks


def test_no_candidate_has_no_factors(tmp_path):
    (tmp_path / "a.trace.parquet").touch()
    rows = [candidate("q1", "m", 1)]
    trace = _trace(tmp_path, rows)
    assert factors(trace) is not None
    empty = trace_of(
        evaluation(NDCG, trace=write_trace_without_rows(rows, tmp_path / "a.trace.parquet")),
        tmp_path / "a.json",
    )
    assert factors(empty) is None


def write_trace_without_rows(rows, path):
    import hashlib

    import pyarrow.parquet as pq

    write_trace(rows, path)
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def test_the_funnel_counts_by_stage_and_a_leak_is_loud():
    found = funnel({"now": evaluation(FUNNEL)})
    assert found.stages == ("search", "fuse", "rerank", "score", "trust", "dedup", "budget")
    assert found.counts == {"now": (4, 4, 4, 3, 1, 1, 1)}
    frame = found.frame()
    assert frame["now"].to_dict() == dict(zip(found.stages, found.counts["now"], strict=True))
    drawing = found.draw()
    assert "1 LEAKED" in texts(drawing)
    assert any(mark.role == "bad" for mark in drawing.marks if isinstance(mark, Box))


def test_what_was_not_counted_is_not_drawn_as_zero():
    uncounted = {**FUNNEL, "unwanted_after_trust": [NAN] * 4}
    assert "trust" not in funnel({"now": evaluation(uncounted)}).stages
    assert funnel({"now": evaluation(NDCG)}) is None


def test_a_dead_lane_is_loud():
    found = lanes({"now": evaluation(NDCG, lanes={"fts": 3, "causal": 0})})
    assert [(r.lane, r.hits, r.queries, r.dead) for r in found.reaches] == [
        ("fts", 3, 4, False), ("causal", 0, 4, True),
    ]  # fmt: skip
    assert "DEAD, 0 of 4" in texts(found.draw())
    assert lanes({"now": evaluation(NDCG, lanes={})}) is None


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_everything_is_drawn_within_its_frame(width, tmp_path):
    long = "a very long name of a category that no phone has room for"
    measured = evaluation({**NDCG, **FUNNEL}, categories=[long, long, "y", "y"])
    named = {"first": measured, "second": measured}
    rows = [candidate("q1", "m", 1, recency=1.3)]
    drawn = [
        headline(named, "ndcg@10"),
        categories(named, "ndcg@10"),
        scatter(measured, measured, "ndcg@10", ("first", "second")),
        factors(_trace(tmp_path, rows)),
        funnel(named),
        lanes(named),
    ]
    for figure in drawn:
        drawing = figure.draw(width)
        assert drawing.width <= width
        assert drawing.title
        assert drawing.description
        for mark in drawing.marks:
            lengths = [v for v in mark if isinstance(v, int | float) and not isinstance(v, bool)]
            assert np.isfinite(lengths).all()
            if isinstance(mark, Dot):
                assert 0 <= mark.x <= drawing.width
                assert 0 <= mark.y <= drawing.height
            if isinstance(mark, Box):
                assert mark.width >= 0
                assert mark.x + mark.width <= drawing.width
