"""The site read from a disk in a real browser: its search answers, and nothing else is loaded.

Skipped without playwright and Debian's ``chromium``.
"""

import pytest

from tests.report.test_chromium import CHROMIUM, SWITCHES, playwright
from tests.test_docs import site  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=str(CHROMIUM), args=list(SWITCHES))
        yield made
        made.close()


@pytest.mark.parametrize("start", ["index.html", "reference/python.html"])
def test_the_search_answers_from_a_disk_and_nothing_comes_from_elsewhere(browser, site, start):  # noqa: F811
    asked, errors = [], []
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / start).as_uri())
    page.fill(".md-search__input", "trust_inversion")
    page.wait_for_selector(".md-search-result__item a", timeout=20_000)
    links = page.eval_on_selector_all(".md-search-result__item a", "all => all.map(a => a.href)")
    page.close()
    assert any("reference/metrics.html" in link for link in links)
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert errors == []
