"""TREC's SGML: what is written is read back to the character, what others wrote as it stands."""

import pytest
from hypothesis import given, settings

from comis_eval.datasets.importers import sgml
from comis_eval.datasets.importers.sgml import escape, fields, plain, read_elements
from comis_eval.errors import DatasetError
from tests.datasets.strategies import MARKED


@settings(deadline=None, derandomize=True, max_examples=300)
@given(MARKED)
def test_a_text_is_read_back_to_the_character_and_holds_no_markup(text):
    written = escape(text)
    assert plain(f"\n{written}\n") == text
    assert not set("<>\r\x00\x1b") & set(written)
    written.encode()


def test_only_the_five_named_and_sound_numeric_references_are_decoded():
    assert plain("&lt;b&gt; &amp;amp; &quot;&apos; &#233;&#xE9;") == "<b> &amp; \"' éé"
    assert plain("&hyph; &eacute; &amp &#xD800; &#99999999; R&D") == (
        "&hyph; &eacute; &amp &#xD800; &#99999999; R&D"
    )


def test_markup_goes_and_bare_signs_stay():
    assert plain("<P>a < b\n<!-- c --><F P=105>d</F> 1<2>0") == "a < b\n  d  1<2>0"


def test_fields_closed_or_not():
    closed = "<num> 4</num>\n<title>\nx\n</title>"
    assert fields(closed) == [("num", " 4"), ("title", "\nx\n")]
    classic = "<NUM> Number: 301\n<title> a b\n\n<desc> Description:\nc\n"
    assert fields(classic) == [
        ("num", " Number: 301\n"),
        ("title", " a b\n\n"),
        ("desc", " Description:\nc\n"),
    ]
    assert fields("<TEXT>a <HL>b</HL> c</TEXT>") == [("text", "a <HL>b</HL> c")]


def read(tmp_path, text, name="DOC"):
    path = tmp_path / "f"
    path.write_bytes(text)
    return [(e.line, e.text, e.why) for e in read_elements(path, name)]


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
def test_elements_are_found_in_every_cut_in_any_case(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(sgml, "_CHUNK_BYTES", chunk)
    text = "<?xml version='1.0'?>\n<xml>\n<DOC>é\n</DOC>\n\n<doc>b</doc ></xml>\n".encode()
    assert read(tmp_path, text) == [(3, "é\n", ""), (6, "b", "")]


def test_what_is_wrong_has_its_line_and_does_not_end_the_reading(tmp_path):
    text = b"<DOC>open\n<DOC>a</DOC>\nstray \x1b\n<DOC>\xff</DOC>\n</DOC>\n<DOC>b</DOC>\n<DOC>cut"
    found = read(tmp_path, text)
    assert [(line, text) for line, text, _ in found if text is not None] == [(2, "a"), (6, "b")]
    told = [(line, why) for line, _, why in found if why]
    assert told[0] == (1, "no </DOC> closes it")
    assert "stands outside of any <DOC>" in told[1][1]
    assert "not UTF-8" in told[2][1]
    assert "iconv" in told[2][1]
    assert told[3][1] == "</DOC> closes nothing"
    assert told[4][1] == "no </DOC> closes what is last"


def test_an_element_without_end_or_too_long_is_not_held_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(sgml, "MAX_ELEMENT_BYTES", 50)
    monkeypatch.setattr(sgml, "_CHUNK_BYTES", 64)
    assert "longer than 50 bytes" in read(tmp_path, b"<DOC>" + b"x" * 60 + b"</DOC>")[0][2]
    with pytest.raises(DatasetError, match=r"f:1: no </DOC> within 100 bytes"):
        read(tmp_path, b"<DOC>" + b"x" * 1000)


@pytest.mark.parametrize("text", ["<a" * 200_000, "<a" + "a" * 400_000, "<!--" * 100_000])
def test_no_text_makes_the_reader_slow(text):
    fields(text)
    plain(text)
    fields("".join(f"<a{n}>" for n in range(50_000)))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(DatasetError, match="No such file"):
        list(read_elements(tmp_path / "no", "DOC"))
