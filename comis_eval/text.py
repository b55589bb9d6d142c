"""Text that others wrote, made safe for each place it is shown in; and text compared.

Whatever comes from a memory, a dataset, a database or a live system may attack whoever
displays or parses it. Each function here knows one such place: a terminal, HTML, Markdown,
CSV, XML. They take any ``str``, lone surrogates included, and never raise for its content.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote_plus

_HIDDEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls, ANSI's escape and C1 among them
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"  # without width
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"  # line ends, bidi, fillers
    "\ufe00-\ufe0d"  # selectors of variants; the two that make emoji are left
    "\ud800-\udfff\ufffe\uffff"  # no characters at all
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # layout of old scripts
    "\U000e0000-\U000e0fff"  # tags and more selectors: they smuggle whole texts
    "]"
)


def printable(text: str, *, limit: int | None = None) -> str:
    r"""Show text on one line of a terminal: nothing in it moves, colours, hides or reorders.

    Controls become their symbols (a line end ``␤``, the escape of ANSI ``␛``), other hidden
    characters their number: ``\u{202e}``.

    Args:
        text: Anything.
        limit: Most characters of the result, >= 1; a longer one ends in ``…``.
    """
    if limit is None:
        return _HIDDEN.sub(_symbol, text)
    if limit < 1:
        raise ValueError(f"limit must be >= 1, got {limit}")
    shown: list[str] = []
    room = limit
    for character in text[: limit + 1]:
        symbol = _HIDDEN.sub(_symbol, character)
        shown.append(symbol)
        room -= len(symbol)
        if room < 0:
            break
    else:
        return "".join(shown)
    while room < 1:  # one place for the mark, and no half symbol before it
        room += len(shown.pop())
    return "".join(shown) + "…"


def _symbol(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code == 0x0A:
        return "␤"
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{{{code:x}}}"


def printable_lines(text: str) -> str:
    """Show text on several lines: as :func:`printable`, but line ends and tabs stay."""
    return _HIDDEN.sub(lambda m: m.group() if m.group() in "\n\t" else _symbol(m), text)


_HTML = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "`": "&#96;"}
)


def html(text: str) -> str:
    """Show text inside an HTML element or a quoted attribute; line ends and tabs stay."""
    return printable_lines(text).translate(_HTML)


_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|~:$^=]")
_LINKING = re.compile(r"@|#(?=\w)|(?<=\bGH)-(?=\d)", re.IGNORECASE)
_LOOK_ALIKES = {"@": "\uff20", "#": "\uff03", "-": "\u2011"}


def markdown(text: str) -> str:
    """Show text inside a line or table cell of Markdown, as GitHub and GitLab read it.

    Markup is escaped. Mentions and references are found after the escapes are gone, so
    ``@`` and ``#`` are replaced by their full-width look-alikes.
    """
    shown = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\g<0>", _LINKING.sub(lambda m: _LOOK_ALIKES[m.group()], shown))


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def csv_cell(value: object) -> str:
    """A value as the text of a CSV cell that no spreadsheet takes for a formula.

    Text that would start one is preceded by ``'``; numbers, also as text, stay themselves.
    ``None`` is an empty cell. Quoting is left to :mod:`csv`.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    shown = printable_lines(str(value))
    if isinstance(value, int | float) or _NUMBER.fullmatch(shown):
        return shown
    return f"'{shown}" if shown[:1] in ("\t", "\n") or _FORMULA.match(shown) else shown


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


def xml(text: str) -> str:
    """Show text in XML 1.0, which cannot hold every character: those are removed."""
    return _NOT_XML.sub("", text).translate(_XML)


def sha256_text(text: str) -> str:
    """SHA-256, in hex, of the UTF-8 of a text; lone surrogates are encoded as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_AFTER_SCHEME = re.compile(r"(?<=://)(?:(?!://)\S)+")
_WORD = re.compile(r"\S+")
_ASSIGNMENT = re.compile(r"(?P<before>^|[?&;#\s])(?P<name>[^=&;#?\s]+)=[^&;#\s]+")
_SECRET_WORD = re.compile(
    r"token|secret|passw(or)?d|passphrase|pwd|credential|signature|api.?key|(access|private).?key"
)
_SECRET_NAMES = frozenset(("auth", "authorization", "key", "pass", "sig", "bearer"))


def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name usually holds something that must not be shown."""
    lower = unquote_plus(name).lower()
    return lower in _SECRET_NAMES or _SECRET_WORD.search(lower) is not None


def mask_credentials(url: str) -> str:
    """Replace what gives access by ``***`` in a URL, a connection string or a text with them.

    Masked are ``user:password@`` before a host, and the values of parameters whose names
    say token, key, password and the like.

    Example: ``http://u:p@h/?token=t&k=5`` becomes ``http://***@h/?token=***&k=5``.
    """
    masked = _WORD.sub(_masked_bare_user, _AFTER_SCHEME.sub(_masked_user, url))
    return _ASSIGNMENT.sub(_masked_assignment, masked)


def _masked_user(match: re.Match[str]) -> str:
    rest = match.group()
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    port = authority.partition(":")[2]
    # a "port" that is none is the start of a password with an unescaped / ? or #
    in_password = ":" in authority and authority[0] != "[" and not port.isdecimal()
    end = (rest if in_password else authority).rfind("@")
    return rest if end < 0 else f"***{rest[end:]}"


def _masked_bare_user(match: re.Match[str]) -> str:
    user, at, host = match.group().rpartition("@")
    name, colon, _ = user.partition(":")
    if not (at and colon) or "://" in user:
        return match.group()
    start = 1 + max(name.rfind(mark) for mark in "=\"'(")
    return f"{name[:start]}***@{host}"


def _masked_assignment(match: re.Match[str]) -> str:
    if not is_secret_name(match["name"]):
        return match.group()
    return f"{match['before']}{match['name']}=***"


def closest(name: str, allowed: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """Up to three of the allowed names that a misspelled one may have meant, best first.

    Upper and lower case, ``_`` and ``-`` do not tell names apart.

    Args:
        name: What was given.
        allowed: What would have been right.
        cutoff: Least likeness, in [0, 1]; 1.0: the same but for case, ``_`` and ``-``.
    """
    spelled = {_plain(candidate): candidate for candidate in allowed}
    near = difflib.get_close_matches(_plain(name[:100]), spelled, n=3, cutoff=cutoff)
    return [spelled[plain] for plain in near]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def close_matches(name: str, allowed: Iterable[str]) -> str:
    """A phrase for the end of a message: ``did you mean a or b?``, or nothing, ``""``."""
    near = closest(name, allowed)
    listed = " or ".join(printable(candidate, limit=80) for candidate in near)
    return f"did you mean {listed}?" if near else ""


_SPACES = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)


def simhash(text: str) -> int:
    """A 64-bit fingerprint that is alike for texts that share most three-letter pieces.

    Letters and decimal digits count, in lower case, and runs of spaces as one. Every window
    of three code points votes, by its FNV-1a hash, on each bit; a bit is 1 when more than
    half say so. Fewer than three code points: 0.

    Returns:
        A signed integer of 64 bits, as databases store it.

    Source:
        Specification of the recall tool, 2.5.
    """
    plain = _letters_and_digits(text)
    windows = len(plain) - 2
    if windows < 1:
        return 0
    votes = sum(_votes(plain[start : start + 3]) for start in range(windows))
    value = sum(
        1 << bit for bit in range(64) if 2 * (votes >> (_LANE * bit) & _LANE_MASK) > windows
    )
    return value - 2**64 if value >= 2**63 else value


def _letters_and_digits(text: str) -> str:
    """Lower-case letters and decimal digits, with one space for each run of spaces between."""
    kept: list[str] = []
    for character in text:
        if character in _SPACES:
            if kept and kept[-1] != " ":
                kept.append(" ")
        else:
            # one by one: a whole text's lower() turns a word's last sigma into another letter
            kept.extend(c for c in character.lower() if _is_letter_or_digit(c))
    return "".join(kept).rstrip(" ")


def _is_letter_or_digit(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "L" or category == "Nd"


_LANE = 32
_LANE_MASK = 2**_LANE - 1


@lru_cache(maxsize=2**14)
def _votes(window: str) -> int:
    """The bits of a window's hash, each in a lane of its own, so that sums count them."""
    value = 0xCBF29CE484222325
    for byte in window.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return sum(1 << (_LANE * bit) for bit in range(64) if value >> bit & 1)


def hamming(a: int, b: int) -> int:
    """In how many of 64 bits two fingerprints differ, signed or not."""
    return ((a ^ b) & (2**64 - 1)).bit_count()
