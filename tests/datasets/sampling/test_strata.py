"""What a query's text tells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.datasets.sampling.strata import frequency_of, kind_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tax", ("short", "latin", False, False)),
        ("where is the tax letter", ("medium", "latin", False, True)),
        ("the tax letter, where did it go?", ("medium", "latin", False, True)),
        ("x" * 19, ("short", "latin", False, False)),
        ("x" * 20, ("medium", "latin", False, False)),
        ("x" * 79, ("medium", "latin", False, False)),
        ("x" * 80, ("long", "latin", False, False)),
        ("HX-2209-51", ("short", "latin", True, False)),
        ("config.yaml broke", ("short", "latin", True, False)),
        ("max_results", ("short", "latin", True, False)),
        ("maxResults", ("short", "latin", True, False)),
        ("e-mail, then tea", ("short", "latin", False, False)),
        ("где ключ?", ("short", "cyrillic", False, True)),
        ("仓库在哪里\uff1f", ("short", "cjk", False, True)),
        ("أين المفتاح\u061f", ("short", "arabic", False, True)),
        ("ключ key ключ", ("short", "cyrillic", False, False)),
        ("café", ("short", "latin", False, False)),
        ("123 !?", ("short", "none", True, True)),
        ("…", ("short", "none", False, False)),
        ("island weather", ("short", "latin", False, False)),
    ],
)
def test_kinds(text, expected):
    assert kind_of(text) == expected


def test_tags_say_the_same():
    assert kind_of("where is HX-2?").tags == (
        "length:short", "script:latin", "identifiers", "question",
    )  # fmt: skip


@given(st.text())
def test_any_text_has_a_kind(text):
    kind = kind_of(text)
    assert kind.script
    assert kind.script == kind.script.lower()


def test_frequencies():
    assert [frequency_of(n) for n in (1, 2, 9, 10)] == ["once", "sometimes", "sometimes", "often"]
