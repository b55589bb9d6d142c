"""What redaction finds, what it leaves alone, and that placeholders are stable."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.datasets.importers.redact import KEY_BYTES, Redactor, read_key
from comis_eval.errors import DatasetError

KEY = Redactor(b"k" * KEY_BYTES)


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        ("write to ada.l+x@mail.example.org.", "ada.l+x@mail.example.org", "email"),
        ("<Ada@Example.ORG>", "Ada@Example.ORG", "email"),
        ("почта иван@пример.рф тут", "иван@пример.рф", "email"),
        ("call +49 30 901820 or not", "+49 30 901820", "phone"),
        ("call +1 (415) 555-0132 now", "+1 (415) 555-0132", "phone"),
        ("call (415) 555-0132", "(415) 555-0132", "phone"),
        ("call 415-555-0132", "415-555-0132", "phone"),
        ("Tel. 030 / 901 820 33", "030 / 901 820 33", "phone"),
        ("0049 30 90182033", "0049 30 90182033", "phone"),
        ("IBAN DE89 3704 0044 0532 0130 00, bitte", "DE89 3704 0044 0532 0130 00", "iban"),
        ("GB82WEST12345698765432", "GB82WEST12345698765432", "iban"),
        ("card 4111 1111 1111 1111 exp", "4111 1111 1111 1111", "card"),
        ("5500-0000-0000-0004", "5500-0000-0000-0004", "card"),
        ("key sk-proj-abcdefghij0123456789ABCD ok", "sk-proj-abcdefghij0123456789ABCD", "token"),
        ("ghp_" + "a1" * 18, "ghp_" + "a1" * 18, "token"),
        ("github_pat_" + "a1_" * 14, "github_pat_" + "a1_" * 14, "token"),
        ("xoxb-123456789012-abcdefghijkl", "xoxb-123456789012-abcdefghijkl", "token"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", "token"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM", "token"),
        ("Authorization: Bearer abc123.def-456/ghi789", "abc123.def-456/ghi789", "token"),
        ("API_KEY=9f8e7d6c5b4a", "9f8e7d6c5b4a", "secret"),
        ('"clientSecret": "q9w8-e7r6"', "q9w8-e7r6", "secret"),
        ("password: hunter", "hunter", "secret"),
        ("the password is Tr0ub4dor&3 ok", "Tr0ub4dor&3", "secret"),
        ("postgres://ada:pw@db.example/x", "ada:pw", "credentials"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
            "MIIabc", "private-key",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIabc cut off", "MIIabc", "private-key"),
    ],
)  # fmt: skip
def test_a_secret_is_replaced_by_its_kind(text, secret, kind):
    redacted, count = KEY.text(text)
    assert secret not in redacted
    assert f"[{kind}:" in redacted
    assert count == 1
    assert KEY.text(redacted) == (redacted, 0)


@pytest.mark.parametrize(
    "text",
    [
        "met on 2024-03-15 at 14:30, again 15.03.2024 and 03/15/2024",
        "from 2024-03-15 to 2024-04-01; 20240315",
        "at 1700000000000 ms, or 1700000000 s, id 1234567890123",
        "2026-05-28T12:00:00.000Z and 2026-05-28 12:00:00",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "commit 4b760013ad5c0a1b2c3d4e5f60718293a4b5c6d7, v1.22.333.4444",
        "192.168.100.200:8080 and 10.0.0.1",
        "order 4111 1111 1111 1112, isbn 978-3-16-148410-0",
        "ask-for-the-moon-and-more-than-twenty, task-1234567890123456789012",
        "the token is missing; the key is under the mat; keys: three",
        "the secret is patience! password? no",
        "@ada and #tag, a@b, 3 @ 4.50 each",
        "https://example.org/a@b?x=1#y and user@host",
        "3.141592653589793 and 1,234,567,890.12 and 100 200 300 400",
        "pages 100-200, 1990-1999, 12 345 678 EUR",
        "monkey=1 turkey: two keyboard is fine",
    ],
)
def test_what_only_looks_like_a_secret_stays(text):
    assert KEY.text(text) == (text, 0)


def test_the_same_secret_has_the_same_placeholder_under_one_key_only():
    one, _ = KEY.text("a@b.example, A@B.example and c@d.example")
    marks = [word.rstrip(",") for word in one.split() if word.startswith("[")]
    assert marks[0] == marks[1] != marks[2]
    assert KEY.text("+49 30 901820")[0] == KEY.text("+49-30-901820")[0]
    assert Redactor().text("a@b.example") != Redactor().text("a@b.example")


def test_ids_lose_addresses_and_nothing_else():
    assert KEY.identifier("4111111111111111") == ("4111111111111111", 0)
    row = {"id": "a@b.example", "content": "a@b.example", "sourceIds": ["a@b.example", "m1"]}
    redacted, count = KEY.memory(row)
    mark = KEY.placeholder("email", "a@b.example")
    assert redacted == {"id": mark, "content": mark, "sourceIds": [mark, "m1"]}
    assert count == 3
    assert " " not in mark


@pytest.mark.parametrize(
    "part",
    [
        "-----BEGIN PRIVATE KEY-----",
        "-",
        "a-",
        "a@",
        "key",
        "password=",
        "1 ",
        "+1",
        "eyJ",
        "sk-",
        "a.b@c.",
        "://",
        "AB12 ",
    ],
)
def test_hostile_text_takes_linear_time(part):
    start = time.process_time()
    KEY.text(part * (200_000 // len(part)))
    assert time.process_time() - start < 1.5


def test_a_name_of_any_length_may_end_in_the_word_that_tells():
    text, count = KEY.text("A_" * 30 + "TOKEN=ab12cd34")
    assert count == 1
    assert "ab12cd34" not in text


@given(st.text(max_size=200))
def test_any_text_is_redacted_without_error_and_only_once(text):
    redacted, count = KEY.text(text)
    assert count or redacted == text


def test_a_key_file_is_made_once_and_kept_private(tmp_path):
    path = tmp_path / "key"
    key = read_key(path)
    assert read_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"short")
    with pytest.raises(DatasetError, match="holds 5 bytes"):
        read_key(path)
