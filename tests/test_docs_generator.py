"""What writes the reference: nothing of a docstring is lost, and no text becomes markup."""

import importlib
import re

import pytest

from tests.test_docs import ROOT


@pytest.fixture
def generator(monkeypatch):
    """A module of docs/generator by name."""
    monkeypatch.syspath_prepend(str(ROOT / "docs/generator"))
    return importlib.import_module


HOSTILE = "<script>alert(1)</script> [x](javascript:1) **b** `<i>` ``a & b`` &lt; {{ config }}"


def test_texts_are_escaped_wherever_they_stand(generator):
    markup = generator("markup")
    made = (
        markup.inline(HOSTILE)
        + markup.block(HOSTILE)
        + markup.prose(HOSTILE)
        + markup.table([HOSTILE], [[markup.code(HOSTILE)]])
    )
    assert not re.search(r"<(script|i|b|strong|a)\b", made)
    assert "<code>a &amp; b</code>" in made
    assert "&amp;lt;" in made


def test_a_heading_takes_names_only(generator):
    markup = generator("markup")
    assert markup.heading(2, "a_b c", "a_b") == "## a\\_b c { #a_b }"
    with pytest.raises(ValueError, match="names only"):
        markup.heading(2, "[x](y)", "x")


DOCSTRING = """Do a thing.

    More of it, in ``code``.

    Args:
        one, two: What they are,
            on two lines.
        three: Another: with a colon.

    Returns:
        A thing.

    Raises:
        ConfigError: When not.
    """


def test_a_docstring_is_taken_apart(generator):
    parsed = generator("docstring").parse(DOCSTRING)
    assert parsed.text == "Do a thing.\n\nMore of it, in ``code``."
    assert [section.title for section in parsed.sections] == ["Args", "Returns", "Raises"]
    assert parsed.sections[0].entries == (
        ("one, two", "What they are, on two lines."),
        ("three", "Another: with a colon."),
    )
    assert parsed.sections[1].text == "A thing."


def test_a_docstring_loses_nothing(generator):
    with pytest.raises(ValueError, match="no entry of the form 'name: text'"):
        generator("docstring").parse("Do.\n\nArgs:\n    not an entry\n")


def test_a_long_signature_has_a_line_a_parameter(generator):
    def short(a: int, *, b: str = "x") -> bool: ...

    def long(first: "list[int]", *rest: int, flag: bool = False, **more: str) -> "list[str]": ...

    signature = generator("python_page").signature
    assert signature("short", short) == "short(a: int, *, b: str = 'x') -> bool"
    assert signature("a_rather_long_name_it_has", long) == (
        "a_rather_long_name_it_has(\n    first: list[int],\n    *rest: int,\n"
        "    flag: bool = False,\n    **more: str,\n) -> list[str]"
    )
