"""Replacing what identifies people or opens doors by stable placeholders.

A secret becomes ``[kind:xxxxxxxxxx]``, ten hex digits of its HMAC-SHA256 under a key: the
same secret becomes the same placeholder wherever it stands, so that keyword search, entities
and duplicates keep working, and nobody without the key can find the secret by trying (phone
numbers are few). The key is drawn anew for each import and kept nowhere, unless a key file is
named, with which the placeholders of several imports agree.

Redaction is by pattern. It finds what has a form - addresses, numbers with a check sum, keys
with a prefix or a name - and no names of people, postal addresses or secrets without a form.
Placeholders hold no white space, so that an id may become one.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.errors import DatasetError

KEY_BYTES = 32

_DIGITS = 10
_KEYED = ("key", "password", "passwd", "passphrase", "pwd", "secret", "token", "credential")
_VALUE = r"[^\s\"'`,;<>\[\]]"


def _luhn(text: str) -> bool:
    """Whether the digits end in the check digit of a payment card."""
    digits = [int(character) for character in text if character.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(odd) + sum(sum(divmod(2 * digit, 10)) for digit in even)) % 10 == 0


def _iban(text: str) -> bool:
    """Whether the letters and digits leave 1 modulo 97, as an IBAN's do (ISO 13616)."""
    plain = "".join(character for character in text if character.isalnum()).upper()
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


_DATE = re.compile(
    r"(?:19|20)\d{2}[-./ ]\d{1,2}[-./ ]\d{1,2}|\d{1,2}[-./ ]\d{1,2}[-./ ](?:19|20)\d{2}"
)


def _phone(text: str) -> bool:
    """Whether it is written as people write numbers to call, not as dates, ids or times."""
    digits = sum(character.isdigit() for character in text)
    if text.startswith(("+", "00")):
        return 8 <= digits <= 15 and (text[0] == "+" or not text.isdigit())
    if _DATE.search(text) or not 9 <= digits <= 15:
        return False
    groups = re.findall(r"\d+", text)
    # A local number: an area code in brackets or with a leading 0, or 3-3-4 as in America.
    bracketed = text.startswith("(")
    american = [len(group) for group in groups] in ([3, 3, 4], [1, 3, 3, 4]) and "." not in text[:1]
    return len(groups) > 1 and (bracketed or american or groups[0].startswith("0"))


def _mixed(text: str) -> bool:
    """Whether a value looks drawn, not worded: letters and digits, or signs, in one piece."""
    core = text.rstrip(".!?)")
    lettered = any(c.isdigit() for c in core) and any(c.isalpha() for c in core)
    return lettered or any(c in "!@#$%^&*+=~?" for c in core)


class Rule(NamedTuple):
    """One kind of secret.

    Attributes:
        kind: Its name in the placeholder.
        pattern: Where it may stand; group ``secret`` is what is replaced, else all of it.
        holds: Whether what was found is one.
    """

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = lambda _: True


_PLACED = r"(?P<placed>\[[a-z-]{4,12}:[0-9a-f]{10}\])"
"""A placeholder: it is passed over, so that no rule takes it for a secret."""


def _rule(
    kind: str, pattern: str, holds: Callable[[str], bool] = lambda _: True, *, case: bool = True
) -> Rule:
    return Rule(kind, re.compile(f"{_PLACED}|(?:{pattern})", 0 if case else re.IGNORECASE), holds)


_EMAIL = _rule(
    "email",
    r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])(?!\.\w)",
)
RULES = (
    _rule(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]|-(?!----)){0,20000}(?:-----END [A-Z0-9 ]{0,60}-----)?",
    ),
    _rule("credentials", r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://(?P<secret>[^\s/@\"'<>\[\]]{1,256})@"),
    _rule("token", r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*"),
    _rule("token", r"(?<!\w)(?:sk|pk|rk)[-_](?:[A-Za-z0-9]{1,20}[-_]){0,4}[A-Za-z0-9_]{16,}"),
    _rule("token", r"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{22,})"),
    _rule("token", r"(?<!\w)(?:glpat-|hf_|npm_|dop_v1_|shpat_)[\w-]{16,}"),
    _rule("token", r"(?<!\w)xox[a-z]-[A-Za-z0-9-]{10,}"),
    _rule("token", r"(?<!\w)(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)"),
    _rule("token", r"(?<!\w)AIza[\w-]{35}(?!\w)"),
    _rule("token", r"(?<!\w)\d{8,10}:AA[\w-]{33}(?!\w)"),
    _rule(
        "token",
        r"(?<!\w)(?:bearer|basic)\s{1,4}(?P<secret>[\w.~+/-]{16,512}={0,2})",
        _mixed,
        case=False,
    ),
    _rule(
        "secret",
        # Whatever the word begins with: to look for its start would try 40 places a character.
        rf"(?:{'|'.join(_KEYED)})s?[\"']?\s{{0,2}}(?:[:=]|\bis\b)\s{{0,2}}"
        rf"[\"'`]?(?P<secret>{_VALUE}{{6,512}})",
        _mixed,
        case=False,
    ),
    _rule(
        "secret",
        r"(?<![^\W_])(?:password|passwd|passphrase|pwd|passcode|pin)[\"']?\s{0,2}[:=]\s{0,2}"
        rf"[\"'`]?(?P<secret>{_VALUE}{{4,512}})",
        case=False,
    ),
    _EMAIL,
    _rule("iban", r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)", _iban),
    _rule("card", r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])(?!\.\d)", _luhn),
    _rule(
        "phone",
        r"(?<![\w.+/:#-])(?:\+|\(|00)?\d(?:[ ()./-]{0,3}\d){7,14}(?![\w-])(?!\.\d)",
        _phone,
    ),
)
"""In the order in which they are tried."""


@dataclass(frozen=True)
class Redactor:
    """Replaces secrets under one key.

    Attributes:
        key: Of the HMAC; whoever has it can test guesses.
    """

    key: bytes = field(default_factory=lambda: os.urandom(KEY_BYTES), repr=False)

    def text(self, text: str) -> tuple[str, int]:
        """Return the text without its secrets, and how many there were."""
        return self._apply(RULES, text)

    def identifier(self, text: str) -> tuple[str, int]:
        """The same for an id, where only an e-mail address can be told from an id."""
        return self._apply((_EMAIL,), text) if "@" in text else (text, 0)

    def memory(self, memory: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        """Redact the object of a memory's line: every text and every id in it."""
        return self._object(memory, ids=_IDS)

    def query(self, query: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        """Redact the object of a query's line."""
        return self._object(query, ids=_IDS)

    def _object(self, row: Mapping[str, Any], ids: frozenset[str]) -> tuple[dict[str, Any], int]:
        redacted: dict[str, Any] = {}
        total = 0
        for key, value in row.items():
            redacted[key], count = self._value(value, self.identifier if key in ids else self.text)
            total += count
        return redacted, total

    def _value(self, value: Any, redact: Callable[[str], tuple[str, int]]) -> tuple[Any, int]:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, list):
            pairs = [self._value(member, redact) for member in value]
            return [member for member, _ in pairs], sum(count for _, count in pairs)
        if isinstance(value, dict):
            return self._object(value, frozenset(_IDS))
        return value, 0

    def _apply(self, rules: tuple[Rule, ...], text: str) -> tuple[str, int]:
        count = 0
        for rule in rules:

            def replaced(found: re.Match[str], rule: Rule = rule) -> str:
                nonlocal count
                group = "secret" if "secret" in rule.pattern.groupindex else 0
                secret, (start, end) = found[group], found.span(group)
                if found["placed"] or not rule.holds(secret):
                    return found[0]
                count += 1
                mark = self.placeholder(rule.kind, secret)
                return found.string[found.start() : start] + mark + found.string[end : found.end()]

            text = rule.pattern.sub(replaced, text)
        return text, count

    def placeholder(self, kind: str, secret: str) -> str:
        """What stands for a secret; spaces and hyphens of a number make no difference."""
        plain = re.sub(r"[ ()./-]", "", secret) if kind in _NUMBERS else secret
        if kind == "email":
            plain = plain.casefold()
        digest = hmac.new(self.key, f"{kind} {plain}".encode(), sha256).hexdigest()
        return f"[{kind}:{digest[:_DIGITS]}]"


_NUMBERS = {"phone", "card", "iban"}
_IDS = frozenset(
    {"id", "tenantId", "agentId", "sourceIds", "trustLevel", "memoryType", "superseded", "group"}
)


def read_key(path: Path) -> bytes:
    """Read a key file; one that is not there is made, readable by its owner alone.

    Raises:
        DatasetError: If it holds fewer than KEY_BYTES bytes.
    """
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(KEY_BYTES))
    except FileExistsError:
        pass
    key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise DatasetError(
            f"{path}: holds {len(key)} bytes, a key has at least {KEY_BYTES}; name a file that "
            "does not exist and one is made"
        )
    return key
