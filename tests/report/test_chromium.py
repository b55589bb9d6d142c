"""The page in a real browser: it works, it fits, and nothing in its data can do anything.

Skipped without playwright and Debian's ``chromium``.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from comis_eval.report import write_report
from comis_eval.types import Source, Turn
from tests.builders import memory
from tests.cli.world import EXTERNAL, MEMORIES, QUERIES, asked, world
from tests.report.build import RESULT, SPACE, TRIALS, study
from tests.report.conftest import measure

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = Path("/usr/bin/chromium")
if not CHROMIUM.is_file():
    pytest.skip("Debian's chromium is not installed", allow_module_level=True)

SWITCHES = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PHONE = {"width": 360, "height": 740}

PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    '<img src="http://evil.example/a.png">',
    "<svg onload=alert(4)><script>alert(5)</script><animate onbegin=alert(6) attributeName=x>",
    "<style>*{background:url(http://evil.example/a.css)}</style>",
    "x{background:url(//evil.example/b)}@import 'http://evil.example/c.css';",
    '" onmouseover="alert(7)" autofocus onfocus="alert(8)" style="position:fixed',
    "' onclick='alert(9)",
    "{{constructor.constructor('alert(10)')()}} {% include 'x' %} <%= 7*7 %> #{7*7}",
    "${alert(11)} `${alert(12)}`",
    "<!-- <script> --!> ]]> <![CDATA[ <?xml",
    "\u2028alert(13)\u2029\x85",
    "\x1b[2J\x1b]8;;http://evil.example\x07 \x9b31m \x00 \x7f",
    "\u202egnp.exe\u202c \u2066 \u200b \ufeff \U000e0041",
    "<a href='javascript:alert(14)'>go</a> javascript:alert(15)",
    "<iframe srcdoc='<script>alert(16)</script>'></iframe><object data=http://evil.example>",
    "<link rel=stylesheet href=http://evil.example/d.css><base href=http://evil.example/>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<math><mtext></table><mglyph><style><!--</style><img title='--&gt;&lt;img onerror=alert(17)'>",
    "&lt;script&gt;alert(18)&lt;/script&gt; &#60;script&#62; \\u003cscript\\u003e",
    "<template><form action=http://evil.example><input name=innerHTML></form></template>",
    "__proto__ constructor hasOwnProperty toString",
    "W" * 400,
)
ALLOWED = {
    "H3", "P", "DIV", "SPAN", "DETAILS", "SUMMARY", "OL", "LI", "TABLE", "THEAD", "TBODY", "TR",
    "TH", "TD", "BUTTON",
}  # fmt: skip


def _id(stem, payload):
    """An attack as an id, which holds no white space and no control characters."""
    return "".join(c if c.isprintable() and not c.isspace() else "/" for c in f"{stem}{payload}")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=str(CHROMIUM), args=list(SWITCHES))
        yield started
        started.close()


class Watched:
    """A page that may load itself and nothing else; what it tried is written down."""

    def __init__(self, browser, path, **context):
        self.tried = []
        self.context = browser.new_context(**context)
        self.context.route("**/*", self._route)
        self.page = self.context.new_page()
        self.page.set_default_timeout(5_000)
        self.page.on("dialog", self._dialog)
        self.page.on("console", lambda told: self.tried.append(f"console {told.text}"))
        self.page.on("pageerror", lambda error: self.tried.append(f"error {error}"))
        self.page.on("popup", lambda _: self.tried.append("popup"))
        self.url = path.as_uri()
        self.page.goto(self.url)

    def _route(self, route):
        if route.request.url == self.url:
            route.continue_()
        else:
            self.tried.append(f"request {route.request.url}")
            route.abort()

    def _dialog(self, dialog):
        self.tried.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def overflows(self):
        """How many pixels the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")

    def read(self, selector):
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]


@pytest.fixture
def watch(browser):
    opened = []

    def watched(path, **context):
        opened.append(Watched(browser, path, **context))
        return opened[-1]

    yield watched
    for one in opened:
        one.context.close()
        assert one.tried == []


@pytest.fixture(scope="module")
def plain(first, second, dataset_folder, tmp_path_factory):
    """A report of two evaluations with texts."""
    out = tmp_path_factory.mktemp("plain") / "two.html"
    write_report(first, second, dataset=dataset_folder, out=out)
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A report of a dataset in which every text that somebody else writes is an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    memories = [
        memory(
            _id(f"m{number}", payload),
            f"kiln {payload} glaze\n{payload}",
            source=Source(payload, payload),
        )
        for number, payload in enumerate(PAYLOADS)
    ]
    memories.append(memory("leak", "kiln web", trust_level=EXTERNAL))
    queries = [
        replace(
            asked(f"kiln {payload}", _id(f"q{number}", payload), answerable=False),
            category=payload,
            group=f"g {payload}",
            turns=(Turn("user", payload),),
        )
        for number, payload in enumerate(PAYLOADS)
    ]
    held = world(folder, [*MEMORIES, *memories], [*QUERIES, *queries])
    loose = {"rag.include_trust_levels": ("learned", "external"), "rag.lanes.causal.enabled": True}
    name = "'><img src=x onerror=alert(19)>"
    paths = [
        measure(held, folder / f"{name}.json", **loose),
        measure(held, folder / "b.json", **loose, **{"rag.scoring.recency_alpha": 1.0}),
    ]
    for path in paths:
        told = json.loads(path.read_text("utf-8"))
        told["dataset"] |= {"name": PAYLOADS[1], "version": PAYLOADS[2]}
        told["pipeline"] = told["config_hash"] = PAYLOADS[4]
        told["notes"] += [*PAYLOADS]
        told["versions"] |= {PAYLOADS[0]: PAYLOADS[1]}
        told["references"] = dict.fromkeys(PAYLOADS, told["references"]["fts"])
        told["config"]["rag"] |= {PAYLOADS[2]: PAYLOADS[3]}
        told["leaks"][0]["memory_id"] = told["leaks"][0]["stage"] = PAYLOADS[1]
        path.write_text(json.dumps(told), "utf-8")
    write_report(*paths, dataset=held, out=folder / "report.html")
    return folder / "report.html"


def test_choosing_a_query_shows_its_candidates(plain, watch):
    seen = watch(plain)
    page = seen.page
    assert len(seen.read(".chooser li")) == len(QUERIES)
    page.get_by_role("button", name="q-hot").click()
    assert seen.read(".chosen h3") == ["q-hot"]
    assert seen.read(".chosen .asked") == ["how hot is the kiln?"]
    rows = seen.read(".candidates tbody tr")
    assert any("the kiln runs at 1240 degrees for glaze" in row for row in rows)
    assert any("trust filtered" in row for row in rows)
    assert any("deduped by kiln" in row for row in rows)
    heads = seen.read(".candidates th")
    assert heads[:6] == ["place", "memory", "grade", "trust", "fts", "fused"]
    assert heads[-2:] == ["final", "fate"]
    assert "× recency" in heads
    assert page.url.endswith("#query=0")


def test_every_stage_says_how_many_it_left_and_where_the_two_part(plain, watch):
    seen = watch(plain)
    seen.page.get_by_role("button", name="q-hot").click()
    stages = seen.read(".steps li")
    assert [stage.split()[0] for stage in stages] == [
        "search", "fuse", "rerank", "score", "trust", "dedup", "budget",
    ]  # fmt: skip
    assert stages[-1] == "budget 1"
    seen.page.get_by_role("button", name="first", exact=True).click()
    assert seen.read(".steps li")[-1] != "budget 1"
    assert seen.page.locator(".steps .apart").count() == 1


def test_finding_ordering_and_links(plain, watch):
    seen = watch(plain)
    page = seen.page
    page.fill("#find", "TAX letter")
    assert [entry.split("\n")[0] for entry in seen.read(".chooser li")] == ["q-tax"]
    page.fill("#find", "no such thing")
    assert seen.read(".count") == ["0 of 4 queries"]
    page.fill("#find", "")
    page.select_option("#order", "file")
    order = [entry.split("\n")[0] for entry in seen.read(".chooser li")]
    assert order == [query.id for query in QUERIES]
    for way in ("lost", "gained", "worst"):
        page.select_option("#order", way)
        assert len(seen.read(".chooser li")) == len(QUERIES)
    link = page.locator("#changes a").first
    wanted = link.inner_text()
    link.click()
    assert seen.read(".chosen h3") == [wanted]


def test_a_link_to_a_query_opens_it(plain, watch):
    seen = watch(plain)
    seen.page.goto(f"{plain.as_uri()}#query=2")
    playwright.expect(seen.page.locator(".chosen h3")).to_have_text("q-turns")
    for nonsense in ("#query=99", "#query=-1", "#query=1e3", "#<img>"):
        seen.page.goto(f"{plain.as_uri()}{nonsense}")
    assert seen.read(".chosen h3") == ["q-turns"]


def test_without_texts_only_ids_are_shown(first, tmp_path, watch):
    write_report(first, out=tmp_path / "ids.html")
    seen = watch(tmp_path / "ids.html")
    seen.page.get_by_role("button", name="q-hot").click()
    assert seen.page.locator(".candidates .id").count() > 3
    assert seen.page.locator(".content, .asked").count() == 0
    assert seen.page.locator("#order option").count() == 2


def test_one_missing_trace_is_said_and_the_other_shown(first, second, tmp_path, watch):
    shutil.copy(first, tmp_path / "first.json")
    write_report(tmp_path / "first.json", second, out=tmp_path / "a.html")
    seen = watch(tmp_path / "a.html")
    assert seen.page.locator(".candidates tbody tr").count() > 0
    assert "not known, one has no trace" in seen.read(".chosen")[0]
    seen.page.get_by_role("button", name="first", exact=True).click()
    assert "This evaluation has no trace" in seen.read(".chosen")[0]


EVERY_QUERY = """() => {
  const tags = new Set();
  let rows = 0;
  for (const button of [...document.querySelectorAll(".chooser li button")]) {
    button.click();
    for (const side of [...document.querySelectorAll(".switch button")].reverse()) {
      side.click();
      document.querySelector(".chosen .more")?.click();
      for (const made of document.querySelectorAll(".chosen *")) tags.add(made.tagName);
      rows += document.querySelectorAll(".candidates tbody tr").length;
    }
  }
  return [[...tags], rows];
}"""
ATTRIBUTES = """() => [...document.querySelectorAll("*")].flatMap(e => [...e.attributes])
  .filter(a => a.name.startsWith("on") || a.name === "style" || a.name === "src"
    || (a.name === "href" && !a.value.startsWith("#"))).map(a => a.name)"""


def test_nothing_in_hostile_data_does_anything(hostile, watch):
    seen = watch(hostile)
    page = seen.page
    scripts = page.evaluate("document.scripts.length")
    page.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true")
    tags, rows = page.evaluate(EVERY_QUERY)
    assert set(tags) <= ALLOWED
    assert rows > 2 * len(PAYLOADS) * len(PAYLOADS)
    forbidden = (
        "img, iframe, object, embed, link, base, form, math, template, animate, foreignObject"
    )
    assert page.locator(forbidden).count() == 0
    assert page.evaluate("document.scripts.length") == scripts
    assert page.evaluate(ATTRIBUTES) == []
    for target in (".chosen h3", ".chosen .asked", ".candidates .memory", ".chooser li", "svg"):
        page.locator(target).first.hover()
        page.locator(target).first.click()


def test_hostile_text_is_shown_as_it_is(hostile, watch):
    seen = watch(hostile)
    seen.page.goto(f"{hostile.as_uri()}#query={len(QUERIES) + 2}")
    title = seen.page.locator(".chosen h3")
    playwright.expect(title).to_have_text("q2<img/src=x/onerror=alert(3)>")
    assert seen.read(".chosen .asked") == [f"kiln {PAYLOADS[2]}"]
    shown = seen.page.locator("body").evaluate("body => body.textContent")
    for symbol in ("\x1b", "\u202e", "\u2028", "\x9b", "\x00", "\ufeff", "\U000e0041"):
        assert symbol not in shown
    assert "\\u{202e}gnp.exe" in shown


@pytest.mark.parametrize("which", ["plain", "hostile", "study", "hostile study"])
def test_no_page_is_wider_than_a_phone(which, plain, hostile, tmp_path, watch):
    pages = {"plain": plain, "hostile": hostile}
    if which not in pages:
        folder = study(tmp_path / "study", **(HOSTILE_STUDY if "hostile" in which else {}))
        write_report(folder, out=tmp_path / "study.html")
        pages[which] = tmp_path / "study.html"
    seen = watch(pages[which], viewport=PHONE)
    assert seen.overflows() <= 0
    seen.page.evaluate(
        "for (const closed of document.querySelectorAll('details')) closed.open = true"
    )
    assert seen.overflows() <= 0
    wide = seen.page.evaluate(
        "[...document.querySelectorAll('figure svg')].filter(e => e.checkVisibility())"
        ".map(e => e.getBoundingClientRect()).filter(r => r.right > innerWidth).length"
    )
    assert wide == 0
    for number in (0, len(QUERIES) + len(PAYLOADS) - 1) if "study" not in which else ():
        seen.page.evaluate(f"location.hash = '#query={number}'")
        assert seen.overflows() <= 0


HOSTILE_STUDY = {
    "study": PAYLOADS[1],
    "sampler": PAYLOADS[2],
    "dataset": {"name": PAYLOADS[0], "version": PAYLOADS[3], "fingerprint": PAYLOADS[4]},
    "counts": {PAYLOADS[2]: 4},
    "decision": {"outcome": PAYLOADS[1], "reasons": list(PAYLOADS)},
    "space": [*SPACE, *({"path": p, "kind": p, "choices": [p]} for p in PAYLOADS)],
    "winner": {**RESULT["winner"], "rag": "\n".join(PAYLOADS),
               "values": dict.fromkeys(PAYLOADS, PAYLOADS[1])},
    "per_category": dict.fromkeys(PAYLOADS, RESULT["per_category"]["x"]),
    "importances": dict.fromkeys(PAYLOADS, 0.1),
    "flat": {**RESULT["flat"], **{p: [p] for p in PAYLOADS}},
    "references": {p: {PAYLOADS[2]: 0.5} for p in PAYLOADS},
    "notes": list(PAYLOADS),
}  # fmt: skip


def test_a_hostile_study_does_nothing_either(tmp_path, watch):
    names = [f"of {PAYLOADS[2]}", f"of {PAYLOADS[1]}"]
    trials = {**TRIALS, **dict.fromkeys(names, TRIALS["utility"])}
    told = study(tmp_path / "s", trials=trials, **{**HOSTILE_STUDY, "objectives": names})
    write_report(told, out=tmp_path / "s.html")
    seen = watch(tmp_path / "s.html")
    assert seen.page.locator("img, iframe, object, link, base, form").count() == 0
    assert seen.read("h1") == [f"Sweep {PAYLOADS[1]}"]
    assert seen.page.locator("svg").count() >= 10


def test_print_shows_everything_and_nothing_to_click(plain, watch):
    seen = watch(plain, viewport=PHONE, color_scheme="dark")
    page = seen.page
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator(".chooser").is_visible()
    assert page.locator("#standing-w-t").count() == 1
    assert page.locator("figure .wide").first.is_visible()
    assert not page.locator("figure .narrow").first.is_visible()
    assert page.locator(".candidates").is_visible()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_the_page_follows_the_scheme_of_its_reader(plain, watch):
    papers = {
        scheme: watch(plain, color_scheme=scheme).page.evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    }
    assert papers["light"] == "rgb(255, 255, 255)"
    assert papers["dark"] != papers["light"]


def test_everything_can_be_reached_by_keyboard_and_is_named(plain, watch):
    page = watch(plain).page
    assert page.get_by_label("Find").count() == 1
    assert page.get_by_label("Order").count() == 1
    assert page.get_by_role("navigation", name="Sections").count() == 1
    pictures = page.get_by_role("img")
    assert pictures.count() >= 6
    unnamed = page.evaluate(
        "[...document.querySelectorAll('svg')].filter(e => !e.getAttribute('aria-labelledby')"
        ".split(' ').every(id => document.getElementById(id).textContent)).length"
    )
    assert unnamed == 0
    page.locator("#find").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(".chooser [aria-current]").count() == 1


def test_the_page_says_what_it_needs_without_javascript(plain, watch):
    seen = watch(plain, java_script_enabled=False)
    assert seen.page.locator("noscript").inner_text() == "The query browser needs JavaScript."
    assert not seen.page.locator("#browser").is_visible()
    assert seen.page.locator("#figures .tile").count() >= 5
