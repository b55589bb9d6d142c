import csv
import html as stdlib_html
import io
import unicodedata
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.text import (
    close_matches,
    closest,
    csv_cell,
    hamming,
    html,
    is_secret_name,
    markdown,
    mask_credentials,
    printable,
    sha256_text,
    simhash,
    xml,
)
from tests.golden_data import cases

ANY_TEXT = st.text(st.characters(codec=None)) | st.text(
    alphabet="\x00\x1b\x7f\x85\x9b\n\r\t\u200b\u202e\u2028\ufeff\U000e0041\ud800=+-@'\"<>&|`[](){}#:/.a1"
)
quick = settings(max_examples=200, derandomize=True, deadline=None)


# --- terminals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain é 日本 🔥 ✔️", "plain é 日本 🔥 ✔️"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\nb\r\tc\x00\x07\x7f", "a␤b␍␉c␀␇␡"),
        ("\x9b1m\x85", "\\u{9b}1m\\u{85}"),
        ("\u202eevil\u2066", "\\u{202e}evil\\u{2066}"),
        ("ze\u200bro\u200d\ufeff\xad", "ze\\u{200b}ro\\u{200d}\\u{feff}\\u{ad}"),
        ("\ud800", "\\u{d800}"),
        ("\U000e0041\ufe00\U000e0100", "\\u{e0041}\\u{fe00}\\u{e0100}"),
        ("\u2028\u2029", "\\u{2028}\\u{2029}"),
    ],
)
def test_hidden_characters_are_shown(text, expected):
    assert printable(text) == expected


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("abc", 1, "…"),
        ("", 1, ""),
        ("ab\u202e", 8, "ab…"),
        ("ab\u202e", 10, "ab\\u{202e}"),
        ("\n\n\n", 2, "␤…"),
    ],
)
def test_a_cut_text_says_so_and_holds_no_half_symbol(text, limit, expected):
    assert printable(text, limit=limit) == expected


def test_a_limit_has_room_for_the_mark():
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        printable("a", limit=0)


# Format characters that are seen: Arabic, Syriac and Kaithi signs that stand before numbers.
SEEN = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")


def test_no_hidden_character_of_unicode_is_left():
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in hidden and character not in SEEN:
            assert printable(character) != character


@given(text=ANY_TEXT, limit=st.none() | st.integers(1, 30))
@quick
def test_what_is_printed_has_no_controls_and_can_be_encoded(text, limit):
    shown = printable(text, limit=limit)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
    assert limit is None or len(shown) <= limit
    shown.encode()


# --- markup ----------------------------------------------------------------------------


class Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.text += data


@given(ANY_TEXT)
@quick
def test_html_holds_text_and_nothing_else(text):
    reader = Reader()
    reader.feed(f"<p title='{html(text)}'>{html(text)}</p>")
    reader.close()
    ((tag, [(name, value)]),) = reader.tags
    assert (tag, name) == ("p", "title")
    assert value == reader.text == stdlib_html.unescape(html(text))
    assert all(c in "\n\t" or unicodedata.category(c) != "Cc" for c in reader.text)


def test_html_by_hand():
    assert html("<b a=\"1\" c='2'>&amp;`\n\x1b\ud800") == (
        "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&#96;\n␛\\u{d800}"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, text; (1)", "plain, text; \\(1\\)"),
        ("@team a@b.c", "\uff20team a\uff20b\\.c"),
        ("#12 org/x#3 # title C#", "\uff0312 org/x\uff033 \\# title C\\#"),
        ("GH-12 gh-1 GH-x", "GH\u201112 gh\u20111 GH\\-x"),
        ("![i](http://e.com/p)", "\\!\\[i\\]\\(http\\://e\\.com/p\\)"),
        ("www.e.com", "www\\.e\\.com"),
        ("`a` | b\nc", "\\`a\\` \\| b␤c"),
        ("<img src=x> &lt;", "&lt;img src\\=x&gt; &amp;lt;"),
        ("1. *x* __y__ ~~z~~ $m$ ^", "1\\. \\*x\\* \\_\\_y\\_\\_ \\~\\~z\\~\\~ \\$m\\$ \\^"),
        ("\\|", "\\\\\\|"),
    ],
)
def test_markdown_by_hand(text, expected):
    assert markdown(text) == expected


@given(ANY_TEXT)
@quick
def test_markdown_is_one_line_without_live_markup(text):
    shown = markdown(text)
    assert "\n" not in shown
    assert not set("@<>") & set(shown)
    bare = shown.replace("\\\\", "")
    assert all(bare[i - 1] == "\\" for i, c in enumerate(bare) if c in "`|[]!*_")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (True, "true"),
        (-0.5, "-0.5"),
        (3, "3"),
        ("007", "007"),
        ("-5", "-5"),
        ("+1.5e-3", "+1.5e-3"),
        ("=1+1", "'=1+1"),
        ("-2+3|cmd", "'-2+3|cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1", "'  =1"),
        ("\t=1", "'\t=1"),
        ("\nx", "'\nx"),
        ("\r=1", "␍=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-x", "'-x"),
        ("a=1", "a=1"),
        ("\x00\ud800", "␀\\u{d800}"),
    ],
)
def test_csv_by_hand(value, expected):
    assert csv_cell(value) == expected


@given(st.lists(ANY_TEXT, min_size=2, max_size=3))
@quick
def test_csv_reads_back_and_no_cell_is_a_formula(texts):
    file = io.StringIO(newline="")
    csv.writer(file).writerow(map(csv_cell, texts))
    ((*cells,),) = csv.reader(io.StringIO(file.getvalue(), newline=""))
    assert cells == list(map(csv_cell, texts))
    for cell in cells:
        assert cell.strip()[:1] not in tuple("=+-@") or cell[1:].replace(".", "").isalnum()
    file.getvalue().encode()


@given(ANY_TEXT)
@quick
def test_xml_is_well_formed(text):
    element = ET.fromstring(f'<t a="{xml(text)}">{xml(text)}</t>'.encode())  # noqa: S314
    kept = "".join(c for c in text if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))
    kept = "".join(c for c in kept if not 0xD800 <= ord(c) < 0xE000)
    assert (element.text or "") == kept.replace("\r\n", "\n").replace("\r", "\n")


def test_xml_by_hand():
    assert xml("a\x00\x1b\ufffe<b>&\"'\n\t") == "a&lt;b&gt;&amp;&quot;&apos;\n\t"


# --- hashes, credentials, names ----------------------------------------------------------


def test_sha256_of_known_texts():
    # FIPS 180-2, appendix B.1
    assert sha256_text("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_text("\ud800") != sha256_text("\ud801")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://u:p@h/?token=t&k=5", "http://***@h/?token=***&k=5"),
        ("https://ghp_abc@github.com/a", "https://***@github.com/a"),
        ("postgresql+psycopg://u:p@w@h:5/db", "postgresql+psycopg://***@h:5/db"),
        ("postgresql://u:pa/ss@h/db", "postgresql://***@h/db"),
        ("mysql://u:p#w@h", "mysql://***@h"),
        ("jdbc:mysql://u:p@h/x?user=a&password=b", "jdbc:mysql://***@h/x?user=a&password=***"),
        ("u:p@host:5432/db", "***@host:5432/db"),
        ("see (u:p@h) 'a:b@c' x=d:e@f", "see (***@h) '***@c' x=***@f"),
        ("host=h password=x port=5", "host=h password=*** port=5"),
        ("http://a@h/x,http://c:d@g/", "http://***@h/x,http://***@g/"),
        ("http://h?X-Amz-Signature=a&apiKey=b;%74oken=c#access_token=d",
         "http://h?X-Amz-Signature=***&apiKey=***;%74oken=***#access_token=***"),
        ("http://h:80/p@x?q=a@b.c", "http://h:80/p@x?q=a@b.c"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("sqlite:///runs.db", "sqlite:///runs.db"),
        ("me@example.org", "me@example.org"),
        ("git@github.com:a/b", "git@github.com:a/b"),
        ("http://h?tokens_per_s=", "http://h?tokens_per_s="),
    ],
)  # fmt: skip
def test_credentials_are_masked_and_the_rest_is_kept(url, expected):
    assert mask_credentials(url) == expected


@given(st.text(alphabet="ab:/@?&=#[] '\"\ud800", max_size=60) | ANY_TEXT)
@quick
def test_masking_never_raises_and_masks_nothing_more_the_second_time(text):
    once = mask_credentials(text)
    assert "***" in once or once == text


@given(
    user=st.text(alphabet="abc", min_size=1),
    password=st.text(alphabet="X5:/#?=&@!$", min_size=3).filter(lambda p: "://" not in p),
)
@quick
def test_no_password_of_a_url_is_left(user, password):
    # a password that begins like a port and a path cannot be told from them
    masked = mask_credentials(f"postgresql://{user}:X{password}@host/db")
    assert masked == "postgresql://***@host/db"


@pytest.mark.parametrize("evil", ["'a:", "://", "a:", '"', "=@", "?a=", " a:b", "://:"])
def test_masking_long_hostile_text_is_linear(evil):
    # a quadratic rule would take minutes here; nothing is timed
    mask_credentials(evil * 40_000)


@pytest.mark.parametrize("name", ["token", "apiKey", "api_key", "X-Api-Key", "PASSWORD", "sig"])
def test_secret_names(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["k", "keyword", "author", "limit", "passage", "design"])
def test_names_that_are_not_secret(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("max_results", "did you mean maxResults?"),
        ("MAXRESULT", "did you mean maxResults?"),
        ("minscore", "did you mean minScore?"),
        ("max", "did you mean max?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_close_matches(name, phrase):
    assert close_matches(name, ["maxResults", "minScore", "max", "rerank"]) == phrase


def test_close_matches_are_few_and_best_first():
    assert closest("ab", ["abcd", "abc", "ab", "abx"]) == ["ab", "abx", "abc"]
    assert closest("a-B", ["ab", "abc"], cutoff=1.0) == ["ab"]
    assert close_matches("a", ["a\x1b"]) == "did you mean a␛?"


# --- simhash -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("recall-tool", "simhash"), ids=lambda case: case["name"])
def test_golden_simhash(case):
    given, expected = case["input"], case["expected"]
    if given["fn"] == "simhash":
        value = simhash(given["text"])
        assert value == int(expected["int64"])
        assert f"{value % 2**64:016x}" == expected["hex"]
        return
    first, second = simhash(given["a"]), simhash(given["b"])
    distance = hamming(first, second)
    near = first != 0 and second != 0 and distance <= given["max_hamming"]
    assert (distance, near) == (expected["distance"], expected["near_dup"])


def fnv1a(data: bytes) -> int:
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return value


@given(st.text(alphabet="abcdéß日1", min_size=3, max_size=40))
@quick
def test_simhash_is_the_majority_of_its_windows_bit_by_bit(text):
    hashes = [fnv1a(text[i : i + 3].encode()) for i in range(len(text) - 2)]
    bits = "".join(
        "1" if sum(1 if h >> bit & 1 else -1 for h in hashes) > 0 else "0"
        for bit in reversed(range(64))
    )
    assert simhash(text) % 2**64 == int(bits, 2)


def test_simhash_sees_letters_digits_and_single_spaces_only():
    assert simhash("A,b -  c!") == simhash("ab c")
    assert simhash("ΣΑΣ") == simhash("σασ")
    assert simhash("a\x1cb c") == simhash("ab c")  # a separator that Python alone calls space
    assert simhash("ab") == simhash("") == simhash("\ud800\u0300!") == 0


@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-(2**63), 2**63 - 1))
@quick
def test_hamming_counts_bits_signed_or_not(a, b):
    expected = bin((a % 2**64) ^ (b % 2**64)).count("1")
    assert hamming(a, b) == hamming(a % 2**64, b) == hamming(b, a) == expected
