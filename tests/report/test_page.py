"""The page as a file: one file, no network, safe as it stands, and refusals."""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from comis_eval.cli.report import command
from comis_eval.errors import DatasetError, EvaluationError
from comis_eval.report import write_report
from comis_eval.report.markup import Html, element, table
from tests.cli.world import MEMORIES, QUERIES, asked, world
from tests.report.build import study
from tests.report.conftest import measure

ROOT = Path(__file__).parents[2]
VOID = {"meta", "input", "br", "link", "img", "hr"}


class Reader(HTMLParser):
    """Reads strictly: every tag is closed where it must be, and attributes are kept."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def report(out, *sources, **options):
    write_report(*sources, out=out, **options)
    return out.read_text("utf-8")


@pytest.fixture(scope="module")
def pages(first, second, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "one": report(folder / "one.html", first),
        "two": report(folder / "two.html", first, second),
        "texts": report(folder / "texts.html", first, second, dataset=dataset_folder),
        "study": report(folder / "study.html", study(folder / "study")),
    }


@pytest.mark.parametrize("name", ["one", "two", "texts", "study"])
def test_a_page_is_whole_and_asks_for_nothing(name, pages):
    page = read(pages[name])
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    for tag, attribute, value in page.attributes:
        assert attribute not in ("src", "srcset", "style", "action", "xlink:href")
        assert not attribute.startswith("on"), (tag, attribute)
        if attribute == "href":
            assert value.startswith("#")
    ours = re.sub(r'<script type="application/json".*?</script>', "", pages[name])
    for way in ("http:", "https:", "//www", "url(", "@import"):
        assert way not in ours
    assert page.tags.count("h1") == 1


@pytest.mark.parametrize("name", ["one", "study"])
def test_the_policy_lets_in_what_was_written_and_nothing_else(name, pages):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', pages[name])[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    for tag in ("style", "script"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", pages[name], re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in policy


def test_ids_are_unique(pages):
    for page in pages.values():
        ids = [value for _, attribute, value in read(page).attributes if attribute == "id"]
        assert len(ids) == len(set(ids))


def test_the_script_never_parses_data_as_markup():
    script = (ROOT / "comis_eval" / "report" / "page.js").read_text("utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(",
                "DOMParser", "createContextualFragment", "srcdoc", "setTimeout"):  # fmt: skip
        assert way not in script


def test_texts_are_there_only_when_the_dataset_is_given(pages):
    words = [m.content.split()[-1] for m in MEMORIES] + [q.text.split()[-1] for q in QUERIES]
    assert "glaze" in words
    for word in ("glaze", "regatta", "folder?"):
        assert word in pages["texts"]
        assert word not in pages["two"]
        assert word not in pages["one"]


def test_every_section_is_there(pages):
    headings = re.findall(r"<h2>(.*?)</h2>", pages["two"])
    assert headings == [
        "Figures", "Changes", "Categories", "Score factors", "Trust", "Lanes", "Queries",
        "Settings",
    ]  # fmt: skip
    assert "Changes" not in re.findall(r"<h2>(.*?)</h2>", pages["one"])
    assert re.findall(r"<h2>(.*?)</h2>", pages["study"]) == [
        "Recommendation", "Gain by category", "Search", "Knobs", "Quality and cost",
        "Reference rows",
    ]  # fmt: skip


def test_the_head_says_on_what_and_with_what(pages):
    told = " ".join(read(pages["one"]).text)
    assert "world 7, split all (seed 0)" in told
    assert "4 queries: 3 scored, 1 unanswerable, 0 failed; memory-recall" in told
    assert "gain linear, relevant from grade 1, k 5, 10; utility at k0 5, c0 4000" in told


def test_the_study_says_what_to_do(pages):
    told = " ".join(" ".join(read(pages["study"]).text).split())
    for words in ("Adopt", "+0.080", "95%: +0.020 to +0.140", "0.004", "paired t: 0.006",
                  "40 queries, 20 groups", "maxResults: 3", "Note: a note",
                  "1 trials failed"):  # fmt: skip
        assert words in told


def test_an_unfinished_study_says_what_was_not_measured(tmp_path):
    gone = ("floor", "confirmation", "decision", "per_category", "importances", "flat", "winner")
    folder = study(tmp_path / "s", trials=None, references=None, pareto=None, **dict.fromkeys(gone))
    told = " ".join(read(report(tmp_path / "s.html", folder)).text)
    for what in ("a recommendation", "the gain on queries", "the gain by category", "the trials",
                 "the importance of the knobs", "the flat region", "the Pareto front",
                 "reference rows"):  # fmt: skip
        assert f"Not measured: {what}" in told


def test_dead_lanes_and_leaks_stand_at_the_top(dataset_folder, tmp_path):
    changes = {
        "rag.include_trust_levels": ("learned", "external"),
        "rag.lanes.causal.enabled": True,
    }
    page = report(tmp_path / "a.html", measure(dataset_folder, tmp_path / "a.json", **changes))
    head = page.partition("<main>")[0]
    assert "Dead lane: causal" in head
    assert "1 leaks" in head
    assert "1 of a kind that the pipeline promises to stop" in head
    assert "kiln-web" in page.partition('id="trust"')[2].partition('id="lanes"')[0]


def test_failed_queries_stand_at_the_top(first, tmp_path):
    told = json.loads(first.read_text("utf-8"))
    told["counts"]["failed"] = 2
    (tmp_path / "a.json").write_text(json.dumps({**told, "trace": None}), "utf-8")
    assert "2 queries failed" in report(tmp_path / "a.html", tmp_path / "a.json")


def test_without_a_trace_the_browser_says_so(first, second, tmp_path):
    shutil.copy(first, tmp_path / "first.json")
    one = report(tmp_path / "one.html", tmp_path / "first.json")
    assert "There is no trace beside the evaluation file" in one
    assert "Not measured: there is no trace" in one
    assert 'id="overview"' not in one
    two = report(tmp_path / "two.html", tmp_path / "first.json", second)
    assert "At which stage the two part is not known" in two
    assert 'id="overview"' in two


def test_figures_with_other_constants_are_not_set_side_by_side(first, dataset_folder, tmp_path):
    other = measure(dataset_folder, tmp_path / "b.json", **{"rag.max_results": 1})
    page = report(tmp_path / "a.html", first, other)
    assert "left out: utility rests on k0 (5 | 1)" in page
    assert "context_ndcg" not in page.partition('id="settings"')[0].replace(
        "context_ndcg rests", ""
    )


def test_a_trace_that_is_not_the_evaluations_is_refused(first, second, tmp_path):
    shutil.copy(first, tmp_path / "first.json")
    shutil.copy(second.with_name("second.trace.parquet"), tmp_path / "first.trace.parquet")
    with pytest.raises(EvaluationError, match=r"is not the trace that first\.json was written"):
        report(tmp_path / "a.html", tmp_path / "first.json")
    assert not (tmp_path / "a.html").exists()


def test_another_dataset_is_refused_by_fingerprint(first, tmp_path):
    other = world(tmp_path, queries=[*QUERIES, asked("more?", "q-more", answerable=False)])
    with pytest.raises(
        EvaluationError, match=r"'world' has fingerprint [0-9a-f]{12}, the evaluation"
    ):
        report(tmp_path / "a.html", first, dataset=other)
    with pytest.raises(DatasetError):
        report(tmp_path / "a.html", first, dataset=tmp_path / "nowhere")


def test_evaluations_of_other_queries_are_refused(first, tmp_path):
    folder = world(
        tmp_path, queries=QUERIES[:2], judged={("q-hot", "kiln-hot"): 3, ("q-tax", "tax"): 3}
    )
    other = measure(folder, tmp_path / "b.json")
    with pytest.raises(EvaluationError, match="different datasets"):
        report(tmp_path / "a.html", first, other)


def test_rows_in_another_order_are_paired_by_query(first, second, tmp_path):
    told = json.loads(second.read_text("utf-8"))
    told["rows"] = {name: column[::-1] for name, column in told["rows"].items()}
    (tmp_path / "second.json").write_text(json.dumps(told), "utf-8")
    shutil.copy(second.with_name("second.trace.parquet"), tmp_path)
    turned = report(tmp_path / "turned.html", first, tmp_path / "second.json")
    assert turned == report(tmp_path / "as-is.html", first, second)


def test_the_same_files_give_the_same_page(pages, first, second, tmp_path):
    assert report(tmp_path / "again.html", first, second) == pages["two"]


@pytest.mark.parametrize("options", [{"other": "first"}, {"dataset": "dataset_folder"}])
def test_a_study_is_reported_alone(options, request, tmp_path):
    given = {key: request.getfixturevalue(name) for key, name in options.items()}
    with pytest.raises(EvaluationError, match="reported alone"):
        write_report(study(tmp_path / "s"), out=tmp_path / "a.html", **given)


def test_two_files_of_one_name_are_told_apart(first, tmp_path):
    for name in (first.name, "first.trace.parquet"):
        shutil.copy(first.with_name(name), tmp_path / name)
    page = report(tmp_path / "a.html", first, tmp_path / first.name)
    assert "from first 1 to first 2" in page


def test_a_baseline_can_be_reported(first, tmp_path):
    from comis_eval.evaluation import read_evaluation
    from comis_eval.gating import write_baseline

    blessed = write_baseline(read_evaluation(first), "main", folder=tmp_path, accept_faults=True)
    page = report(tmp_path / "a.html", blessed, first)
    assert "from main to first" in page


def test_a_place_that_cannot_be_written_is_an_error(first, tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(EvaluationError, match="cannot be written"):
        report(tmp_path / "a.html", first)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.html"]


def test_the_starter_set_stays_small(tmp_path):
    page = report(tmp_path / "a.html", measure(ROOT / "datasets" / "starter", tmp_path / "a.json"),
                  dataset=ROOT / "datasets" / "starter")  # fmt: skip
    assert 100_000 < len(page) < 3_000_000
    read(page)


def test_the_command_writes_the_page_and_says_so(first, second, dataset_folder, tmp_path):
    out = str(tmp_path / "a.html")
    told = CliRunner().invoke(
        command, [str(first), str(second), "--dataset", dataset_folder, "--out", out]
    )
    assert told.exit_code == 0, told.output
    assert told.output == f"written: {out}\n"
    assert "from first to second" in Path(out).read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nothing.json"], "neither a file nor a baseline"), (["--out", "no/a.html"], "no folder")],
)
def test_the_command_refuses_before_the_work(arguments, message, tmp_path):
    given = [*arguments, *([] if "--out" in arguments else ["--out", str(tmp_path / "a.html")])]
    told = CliRunner().invoke(command, given if given[0] != "--out" else ["x.json", *given])
    assert isinstance(told.exception, EvaluationError)
    assert message in str(told.exception)


def test_markup_escapes_what_it_did_not_make():
    made = element("p", "<b>&'\"`", Html("<i></i>"), class_='"x', aria_label="<")
    assert made == (
        '<p class="&quot;x" aria-label="&lt;">&lt;b&gt;&amp;&#39;&quot;&#96;<i></i></p>'
    )
    laid = table(["<h>"], [("<c>",)], caption="<k>", rows=["<r>"])
    for word in ("<h>", "<c>", "<k>", "<r>"):
        assert word not in laid
