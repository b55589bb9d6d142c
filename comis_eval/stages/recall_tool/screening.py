"""Content that is refused before it becomes a memory.

Partial by design: a bare secret without a name or a prefix passes. Every rule takes time
linear in the text. Source: specification of the recall tool, section 2.6.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple


class Refusal(NamedTuple):
    """Why content is refused.

    Attributes:
        label: The rule.
        detail: What it found: a code point, a tag's name, the kind of token, the name that
            is assigned; may be empty. Never the secret.
    """

    label: str
    detail: str

    def __str__(self) -> str:
        return f"{self.label}: {_WHY[self.label].format(self.detail)}"


_WHY = {
    "invisible-character": "the text holds {}, which nobody sees",
    "role-tag": "the text holds a <{}> tag, which could pass for another speaker",
    "instruction-override": "the text tells its reader to drop earlier instructions",
    "private-key": "the text holds a private key",
    "api-token": "the text holds what looks like a token ({})",
    "secret-assignment": "the text assigns a value to {}",
}


def screen(content: str) -> Refusal | None:
    """Return the first rule that content breaks; None when it may be written."""
    for label, rule in _RULES.items():
        detail = rule(content)
        if detail is not None:
            return Refusal(label, detail)
    return None


_SEEN = frozenset("\u200d\ufe0e\ufe0f")
"""Joiner and the two selectors that emoji are made with."""
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180e]")


def _invisible(content: str) -> str | None:
    if content.isascii():
        return None
    for character in content:
        if character in _SEEN:
            continue
        if unicodedata.category(character) == "Cf" or _SELECTORS.match(character):
            return f"U+{ord(character):04X}"
    return None


_ROLE = re.compile(r"(?<![A-Za-z0-9_./-])</?(system|developer|assistant|tool)>", re.IGNORECASE)
_WORD = "[A-Za-z0-9_]"
_OVERRIDE = re.compile(
    rf"(?<!{_WORD})(?:ignore|disregard|override|forget)(?!{_WORD})"
    rf".{{0,50}}(?<!{_WORD})(?:previous|prior|system|developer)(?!{_WORD})",
    re.IGNORECASE | re.DOTALL,
)
_KEY_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")
_CHAIN = re.compile(r"[A-Za-z0-9_-]+")
_CHAIN_SECRET = re.compile(rf"(?<!{_WORD})sk-")
_UNBROKEN = re.compile(r"[A-Za-z0-9]{20}")
_TOKENS = {
    "GitHub": re.compile(
        rf"(?<!{_WORD})(?:gh[pousr]_[A-Za-z0-9]{{32}}|github_pat_[A-Za-z0-9_]{{40}})"
    ),
    "Slack": re.compile(rf"(?<!{_WORD})xox[abposr]-[A-Za-z0-9-]{{20}}"),
    "AWS": re.compile(rf"(?<!{_WORD})AKIA[A-Z0-9]{{16}}(?!{_WORD})"),
}
_ASSIGNED = re.compile(
    rf"(?<!{_WORD})([A-Za-z]{_WORD}*)=[\"']?[A-Za-z0-9+/_.~-]{{12}}",
)
_SECRET_NAME = re.compile(
    r".*_(?:PASSWORD|PASSWD|SECRET|TOKEN|API_KEY|APIKEY|ACCESS_KEY|PRIVATE_KEY)", re.IGNORECASE
)


def _role(content: str) -> str | None:
    found = _ROLE.search(content)
    return found[1].lower() if found else None


def _override(content: str) -> str | None:
    return "" if _OVERRIDE.search(content) else None


def _key(content: str) -> str | None:
    return "" if _KEY_BLOCK.search(content) else None


def _token(content: str) -> str | None:
    for chain in _CHAIN.finditer(content):
        start = _CHAIN_SECRET.search(chain[0])
        if start and _UNBROKEN.search(chain[0], start.end()):
            return "sk-"
    return next((name for name, token in _TOKENS.items() if token.search(content)), None)


def _assignment(content: str) -> str | None:
    names = (found[1] for found in _ASSIGNED.finditer(content))
    return next((name for name in names if _SECRET_NAME.fullmatch(name)), None)


_RULES = {
    "invisible-character": _invisible,
    "role-tag": _role,
    "instruction-override": _override,
    "private-key": _key,
    "api-token": _token,
    "secret-assignment": _assignment,
}
"""In the order in which they are tried."""
