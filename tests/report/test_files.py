"""Figures as files: what is in them, and that the same source gives the same bytes."""

from xml.etree import ElementTree

import pytest

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import evaluate, write_evaluation
from comis_eval.report import save_figures
from comis_eval.report.drawing import Box, Dot, Drawing, Label, Line, Trail
from comis_eval.report.raster import write_png
from comis_eval.report.svg import svg
from tests.report.build import NAN, candidate, evaluation, study, write_trace

HOSTILE = "</text><script>alert(1)</script> $\\frac{1}{2}$ \x1b[31m \u202e \u4e2d"
EVERY_MARK = Drawing(
    100,
    60,
    f"title {HOSTILE}",
    f"told {HOSTILE}",
    (
        Line(0, 0, 10, 10, dashed=True),
        Trail(((0, 0), (5, 5), (9, 2)), "first"),
        Box(1, 1, 5, 5, "band"),
        Box(1, 1, 5, 5, "bad", hollow=True),
        *(Dot(20, 20, 4, "good", shape, tip=HOSTILE) for shape in ("circle", "square", "diamond")),
        Dot(30, 20, 4, "second", "up", hollow=True),
        Dot(40, 20, 4, "second", "down"),
        Label(50, 50, HOSTILE, bold=True),
    ),
)


@pytest.mark.parametrize("standalone", [True, False])
def test_svg_is_well_formed_and_holds_text_as_text(standalone):
    traced = svg(EVERY_MARK, ident="one", standalone=standalone)
    root = ElementTree.fromstring(traced)  # noqa: S314  (ours)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {
        "svg", "title", "desc", "line", "polyline", "rect", "circle", "polygon", "text",
    }  # fmt: skip
    assert "<script" not in traced
    assert "style=" not in traced
    assert "\x1b" not in traced
    assert "\u202e" not in traced
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == "one-t one-d"
    assert ("class=" in traced) != standalone


def test_png_draws_text_as_given_and_the_same_bytes_again(tmp_path):
    for name in ("one.png", "two.png"):
        write_png(EVERY_MARK, tmp_path / name)
    first = (tmp_path / "one.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert first == (tmp_path / "two.png").read_bytes()
    assert b"Matplotlib" not in first


def test_a_notebook_shows_a_drawing_of_its_own():
    shown = EVERY_MARK._repr_svg_()
    assert shown.startswith("<svg xmlns=")
    assert "<script" not in shown


def _written(tmp_path, **fields):
    measured = evaluation(
        {"ndcg@10": [0.2, 0.4, 0.6, NAN]}, references={"fts": {"ndcg@10": 0.3}}, **fields
    )
    write_evaluation(measured, tmp_path / "a.json")
    return tmp_path / "a.json"


def test_an_evaluation_has_a_file_a_figure_twice(tmp_path):
    rows = [candidate("q1", "m1", 1)]
    path = _written(tmp_path, trace=write_trace(rows, tmp_path / "a.trace.parquet"))
    written = save_figures("evaluation", path, tmp_path / "figures")
    names = ["categories", "factors", "headline", "lanes"]
    assert [file.name for file in written] == [
        f"{n}.{kind}" for n in names for kind in ("png", "svg")
    ]
    assert "memory-recall" in (tmp_path / "figures" / "headline.svg").read_text("utf-8")


def test_without_a_trace_there_are_no_factors(tmp_path):
    written = save_figures("evaluation", _written(tmp_path), tmp_path / "figures", png=False)
    assert [file.name for file in written] == ["categories.svg", "headline.svg", "lanes.svg"]


def test_an_evaluation_in_memory_will_do(tmp_path):
    measured = evaluation({"ndcg@10": [0.2, 0.4, 0.6, 0.8]})
    written = save_figures("evaluation", measured, tmp_path, png=False)
    assert [file.name for file in written] == ["categories.svg", "headline.svg", "lanes.svg"]


def test_a_study_has_a_file_a_figure_and_the_same_bytes_again(tmp_path):
    folder = study(tmp_path / "study")
    one, two = (save_figures("study", folder, tmp_path / name) for name in ("one", "two"))
    names = ["flat", "gains", "history", "importance", "pareto-1"]
    assert [file.name for file in one] == [f"{n}.{kind}" for n in names for kind in ("png", "svg")]
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


def test_a_study_that_measured_nothing_has_no_figures(tmp_path):
    bare = dict.fromkeys(("flat", "per_category", "importances", "pareto", "floor"))
    folder = study(tmp_path / "study", trials=None, **bare)
    assert save_figures("study", folder, tmp_path / "figures") == []


@pytest.mark.parametrize(
    ("kind", "message"), [("study", "need a study"), ("evaluation", "need an")]
)
def test_the_other_kind_of_source_is_refused(kind, message, tmp_path):
    with pytest.raises(EvaluationError, match=message):
        save_figures(kind, object(), tmp_path)


def test_figures_hold_no_text_of_memories(dataset_folder, tmp_path):
    from comis_eval.datasets import load_dataset
    from comis_eval.pipelines.retrieval import Retriever
    from tests.report.conftest import FTS

    labelled = load_dataset(dataset_folder)
    measured = evaluate(labelled, FTS, retriever=Retriever(labelled, cache=None))
    write_evaluation(measured, tmp_path / "a.json")
    for file in save_figures("evaluation", tmp_path / "a.json", tmp_path / "figures", png=False):
        assert "kiln" not in file.read_text("utf-8")
