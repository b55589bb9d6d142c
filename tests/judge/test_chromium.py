"""The labelling page in a real browser, driven as a judge drives it and attacked as texts do.

Skipped without playwright and Debian's ``chromium``.
"""

from dataclasses import replace

import pytest

from comis_eval.judge import agreement as agreements
from comis_eval.judge.journal import Act, read_all, read_journal
from comis_eval.judge.page import document
from comis_eval.judge.server import JudgeServer, running
from comis_eval.judge.shown import GUIDELINE
from comis_eval.types import Source, Tenancy, TrustLevel, Turn
from tests.builders import DAY, NOW, memory, query
from tests.judge.small import Pair, dataset, session
from tests.report.test_chromium import ATTRIBUTES, CHROMIUM, PAYLOADS, PHONE, SWITCHES, playwright

HOSTILE_MEMORIES = [
    memory(
        f"m{number}",
        f"kiln {payload}\n{payload}",
        source=Source(payload, payload),
        status=payload.replace("\x00", "") or "x",
        tenancy=Tenancy(f"t{number}", f"a {payload}"),
    )
    for number, payload in enumerate(PAYLOADS)
]
HOSTILE_QUERIES = [
    query(f"ask {payload}", f"q{number}", turns=(Turn(payload, payload),), category=payload)
    for number, payload in enumerate(PAYLOADS)
]
HOSTILE_PAIRS = [Pair(f"q{number}", f"m{number}") for number in range(len(PAYLOADS))]
DATED = dataset(
    memories=[
        memory("m0-poison", "an external one", trust_level=TrustLevel.EXTERNAL),
        memory("m1", "an expired one", expires_at=NOW - DAY, occurred_at=NOW - 90 * DAY),
        memory("m2", "of another tenant", tenancy=Tenancy("t2", "a2")),
    ]
)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=str(CHROMIUM), args=list(SWITCHES))
        yield made
        made.close()


class Seat:
    """A judge before the page: a server, a tab, and what the tab tried besides."""

    def __init__(self, browser, server, **context):
        self.server = server
        self.tried = []
        self.requests = []
        self.context = browser.new_context(**context)
        self.context.route("**/*", self._route)
        self.page = self.open(server.url)
        playwright.expect(self.page.locator("#count")).not_to_be_empty()

    def open(self, url):
        page = self.context.new_page()
        page.set_default_timeout(8_000)
        page.on("dialog", self._dialog)
        page.on("console", lambda told: self.tried.append(f"console {told.text}"))
        page.on("pageerror", lambda error: self.tried.append(f"error {error}"))
        page.on("popup", lambda _: self.tried.append("popup"))
        page.on("request", self._request)
        page.goto(url)
        return page

    def _request(self, request):
        self.requests.append(request)

    def _route(self, route):
        if route.request.url.startswith(f"http://{self.server.host}/"):
            route.continue_()
        else:
            self.tried.append(f"request {route.request.url}")
            route.abort()

    def _dialog(self, dialog):
        self.tried.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def press(self, key, said):
        """Press a key and wait until the page says what came of it."""
        self.page.keyboard.press(key)
        self.says(said)

    def says(self, text):
        playwright.expect(self.page.locator("#said")).to_contain_text(text)

    def counts(self, text):
        playwright.expect(self.page.locator("#count")).to_have_text(text)

    @property
    def entries(self):
        return read_journal(self.server.session.journal.path).entries


@pytest.fixture
def sit(browser, tmp_path):
    """Seats judges; at the end nobody may have tried anything that was not expected."""
    closing = []

    def seated(judge="ada", *, guideline=GUIDELINE, of=None, context=None, **fields):
        opened = session(tmp_path, judge, of=of, **fields)
        entered = opened.__enter__()
        compare = agreements.compared

        def agreement():
            found = compare(agreements.given(entered.dataset, read_all(tmp_path)).grades)
            return {"head": list(agreements.TABLE), "rows": agreements.rows(found)}

        server = JudgeServer(
            entered, document(judge=judge, guideline=guideline), agreement=agreement
        )
        serving = running(server)
        serving.__enter__()
        seat = Seat(browser, server, **(context or {}))
        closing.append((seat, serving, opened))
        return seat

    yield seated
    for seat, serving, opened in reversed(closing):
        seat.context.close()
        serving.__exit__(None, None, None)
        opened.__exit__(None, None, None)
        assert seat.tried == []


def test_keys_grade_put_off_and_take_back(sit):
    seat = sit()
    seat.counts("0 of 6 judged")
    first = seat.page.locator("#memory .text").inner_text()
    for key in "0123":
        seat.press(key, f"graded {key}")
    seat.counts("4 of 6 judged")
    seat.press("u", "taken back")
    seat.counts("3 of 6 judged")
    seat.press("s", "put off")
    seat.counts("3 of 6 judged, 1 put off")
    assert [(e.act, e.grade) for e in seat.entries] == [
        *((Act.GRADE, grade) for grade in range(4)), (Act.UNDO, None), (Act.SKIP, None),
    ]  # fmt: skip
    shown = seat.server.session.pairs[0]
    assert seat.entries[0].pair == shown
    assert first == f"what memory {shown.memory_id[1]} says"


def test_to_the_end_and_back(sit):
    seat = sit()
    for number in range(6):
        seat.press("2", "graded 2")
        seat.counts(f"{number + 1} of 6 judged")
    assert seat.page.locator("#done").is_visible()
    assert not seat.page.locator("#work").is_visible()
    assert seat.page.get_by_role("button", name="the answer", exact=False).first.is_disabled()
    seat.page.keyboard.press("1")
    seat.press("u", "taken back")
    assert seat.page.locator("#work").is_visible()
    assert len(seat.entries) == 7


def test_buttons_do_the_same(sit):
    seat = sit()
    for label, said in (
        ("3", "graded 3"),
        ("s", "put off"),
        ("u", "taken back"),
        ("u", "taken back"),
    ):
        seat.page.locator("#acts button", has=seat.page.locator(f"kbd:text-is('{label}')")).click()
        seat.says(said)
    seat.counts("0 of 6 judged")
    assert seat.page.locator("#acts button", has_text="undo").is_disabled()


def test_keys_that_are_not_meant_do_nothing(sit):
    seat = sit()
    seat.counts("0 of 6 judged")
    for key in ("4", "9", "Control+0", "Alt+1", "Meta+2", "U", "Enter", "x"):
        seat.page.keyboard.press(key)
    seat.page.keyboard.down("1")
    for _ in range(5):
        seat.page.keyboard.down("1")  # held
    seat.page.keyboard.up("1")
    seat.counts("1 of 6 judged")
    assert len(seat.entries) == 1


def test_loaded_again_it_goes_on(sit):
    seat = sit()
    seat.press("3", "graded 3")
    seat.press("s", "put off")
    shown = seat.page.locator("#memory .text").inner_text()
    seat.page.reload()
    seat.counts("1 of 6 judged, 1 put off")
    assert seat.page.locator("#memory .text").inner_text() == shown
    seat.press("u", "taken back")
    seat.press("u", "taken back")
    seat.counts("0 of 6 judged")


def test_a_new_run_goes_on_where_the_last_was_killed(sit, tmp_path):
    with session(tmp_path) as before:
        before.act(Act.GRADE, turn=0, grade=1)
    with (tmp_path / "ada.jsonl").open("a") as file:
        file.write('{"at":1,"act":"gra')
    seat = sit()
    seat.counts("1 of 6 judged")
    assert seat.server.session.journal.healed == '{"at":1,"act":"gra'


def test_the_token_leaves_the_address_and_goes_in_a_header_alone(sit):
    seat = sit()
    seat.press("1", "graded 1")
    assert seat.page.url == f"http://{seat.server.host}/"
    token = seat.server.token
    assert len(seat.requests) >= 3
    for request in seat.requests:
        sent = request.all_headers()
        assert token not in request.url.partition("#")[0]
        assert "referer" not in sent
        assert "cookie" not in sent
        has_it = [name for name, value in sent.items() if token in value]
        assert has_it == (["x-comis-token"] if "/api/" in request.url else [])
    assert seat.page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"


def test_another_tab_without_the_token_sees_nothing(sit):
    seat = sit()
    other = seat.open(f"http://{seat.server.host}/")
    playwright.expect(other.locator("#said")).to_contain_text("Open the address")
    assert "what memory" not in other.content()
    other.keyboard.press("1")
    assert seat.entries == []


def test_a_second_tab_is_told_that_a_turn_is_over(sit):
    seat = sit()
    seat.counts("0 of 6 judged")
    other = seat.open(seat.server.url)
    playwright.expect(other.locator("#count")).to_have_text("0 of 6 judged")
    seat.press("3", "graded 3")
    other.keyboard.press("0")
    playwright.expect(other.locator("#said")).to_contain_text("judged in another tab")
    playwright.expect(other.locator("#count")).to_have_text("1 of 6 judged")
    assert [e.grade for e in seat.entries] == [3]
    seat.tried.remove(next(t for t in seat.tried if "409" in t))  # chromium logs the refusal


def test_what_is_not_saved_is_said(sit, monkeypatch):
    seat = sit()
    seat.counts("0 of 6 judged")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    seat.press("3", "NOT saved: the file cannot be written: No space left on device")
    seat.counts("0 of 6 judged")
    monkeypatch.undo()
    seat.press("3", "graded 3")
    seat.page.route("**/api/act", lambda route: route.abort())
    seat.press("2", "NOT saved: comis-eval judge does not answer")
    seat.counts("1 of 6 judged")
    seat.tried[:] = [t for t in seat.tried if "507" not in t and "ERR_FAILED" not in t]


def test_the_judging_is_blind_and_has_what_the_guideline_asks(sit):
    seat = sit(of=DATED, pairs=[Pair("q1", m.id) for m in DATED.memories])
    told = ""
    for number in range(len(DATED.memories)):
        seat.counts(f"{number} of 3 judged")
        told += seat.page.locator("#work").inner_text()
        facts = seat.page.locator("#memory dl").inner_text()
        assert "2026-05-27" in facts
        assert "days before the question" in facts or "24 hours" in facts
        seat.press("0", "graded 0")
    assert "external: not allowed as an answer" in told
    assert "expired: 2026-05-27" in told
    assert "3 months before" in told
    assert "a2 of t2: not allowed as an answer" in told
    content = seat.page.content() + told
    for secret in ("m0-poison", "q1", "keyword", "recall-tool", "rank", "score"):
        assert secret not in content.replace(seat.page.locator("script").inner_text(), "")
    assert "0  Of no use" in seat.page.locator("details pre").inner_text()


def test_nothing_in_hostile_texts_does_anything(sit):
    of = dataset(memories=HOSTILE_MEMORIES, queries=HOSTILE_QUERIES)
    seat = sit(of=of, pairs=HOSTILE_PAIRS, guideline="\n".join(PAYLOADS))
    page = seat.page
    playwright.expect(page.locator("#count")).to_have_text(f"0 of {len(PAYLOADS)} judged")
    scripts = page.evaluate("document.scripts.length")
    forbidden = "img, iframe, object, embed, base, form, math, svg, template, style ~ style"
    for number in range(len(PAYLOADS)):
        shown = seat.server.session.progress().pair
        payload = PAYLOADS[int(shown.query_id[1:])]
        tags = page.evaluate(
            "[...new Set([...document.querySelectorAll('#work *')].map(e => e.tagName))].sort()"
        )
        assert tags == ["DD", "DIV", "DL", "DT", "H2", "P"]
        assert page.locator(f"{forbidden}, meta[http-equiv]").count() == 0
        assert page.evaluate("document.scripts.length") == scripts
        assert set(page.evaluate(ATTRIBUTES)) <= {"href"}  # the empty icon
        asked = page.locator("#query .asked").evaluate("e => e.textContent")
        if payload.isprintable():
            assert asked == f"ask {payload}"
        for symbol in ("\x1b", "\u202e", "\u2028", "\x9b", "\x00", "\ufeff", "\U000e0041"):
            assert symbol not in page.locator("body").evaluate("e => e.textContent")
        page.locator("#memory .text").hover()
        page.locator("#memory .text").click()
        page.keyboard.press("0")
        playwright.expect(page.locator("#count")).to_have_text(
            f"{number + 1} of {len(PAYLOADS)} judged"
        )
    assert {e.grade for e in seat.entries} == {0}


def test_a_long_and_hostile_text_fits_a_phone(sit):
    of = dataset(memories=HOSTILE_MEMORIES, queries=HOSTILE_QUERIES)
    long = replace(HOSTILE_MEMORIES[0], content="W" * 20_000)
    of = replace(of, memories=(long, *HOSTILE_MEMORIES[1:]))
    seat = sit(of=of, pairs=HOSTILE_PAIRS, context={"viewport": PHONE})
    for number in range(len(PAYLOADS)):
        playwright.expect(seat.page.locator("#count")).to_have_text(
            f"{number} of {len(PAYLOADS)} judged"
        )
        assert seat.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        seat.page.keyboard.press("1")
    playwright.expect(seat.page.locator("#done")).to_be_visible()


EVIL = """<!doctype html><title>evil</title><body><script>
const at = "http://HOST";
const body = JSON.stringify({act: "grade", turn: 0, grade: 3});
const tries = [
  fetch(at + "/api/act", {method: "POST", mode: "no-cors", body}),
  fetch(at + "/api/act", {method: "POST", body, headers: {"Content-Type": "application/json"}}),
  fetch(at + "/api/act", {method: "POST", body, headers: {"X-Comis-Token": "x"}}),
  fetch(at + "/api/state"), fetch(at + "/"),
];
const frame = document.createElement("iframe");
frame.src = at + "/";
document.body.append(frame);
Promise.allSettled(tries).then(async (all) => {
  const open = (one) => one.status === "fulfilled" && one.value.type !== "opaque";
  window.readable = all.filter(open).length;
  const form = document.createElement("form");
  Object.assign(form, {action: at + "/api/act", method: "POST", enctype: "text/plain"});
  form.target = "_blank";
  const field = document.createElement("input");
  Object.assign(field, {name: '{"act":"grade","turn":0,"grade":3,"x":"', value: '"}'});
  form.append(field);
  document.body.append(form);
  form.submit();
  window.done = true;
});
</script>"""


def test_another_site_can_neither_act_nor_read(sit, browser):
    seat = sit()
    seat.counts("0 of 6 judged")
    context = browser.new_context()
    try:
        context.route(
            "http://evil.example/**",
            lambda route: route.fulfill(
                body=EVIL.replace("HOST", seat.server.host), content_type="text/html"
            ),
        )
        page = context.new_page()
        page.goto("http://evil.example/")
        page.wait_for_function("window.done === true")
        page.wait_for_timeout(300)
        assert page.evaluate("window.readable") == 0
        framed = [frame for frame in page.frames if frame != page.main_frame]
        assert all("Judging" not in frame.content() for frame in framed)
    finally:
        context.close()
    assert seat.entries == []
    seat.press("1", "graded 1")


def test_two_judges_see_how_far_they_agree(sit):
    ada = sit("ada")
    for number, grade in enumerate("012300"):
        ada.press(grade, f"graded {grade}")
        ada.counts(f"{number + 1} of 6 judged")
    ada.page.locator("#agreement summary").click()
    playwright.expect(ada.page.locator("#agreed")).to_have_text("No pair was judged twice yet.")
    theirs = {entry.pair: entry.grade for entry in ada.entries}
    bob = sit("bob")
    for number in range(6):
        pair = bob.server.session.progress().pair
        grade = theirs[pair] if theirs[pair] != 3 else 2
        bob.page.keyboard.press(str(grade))
        bob.counts(f"{number + 1} of 6 judged")
    bob.page.locator("#agreement summary").click()
    cells = bob.page.locator("#agreed td")
    # (0, 1, 2, 3, 0, 0) and (0, 1, 2, 2, 0, 0): cost 1/6; by chance 14/6 + 9/6 - 2 * 1 * 5/6
    playwright.expect(cells.nth(2)).to_have_text("0.92")
    assert cells.all_inner_texts()[4:] == ["6", "5"]
