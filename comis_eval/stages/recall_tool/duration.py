"""Durations as Go writes them: ``72h``, ``1h30m``, ``1.5h``.

Source: specification of the recall tool, section 2.4; the grammar is that of Go's
``time.ParseDuration``.
"""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {
    "ns": Fraction(1, 1_000_000),
    "us": Fraction(1, 1_000),
    "\u00b5s": Fraction(1, 1_000),  # micro sign
    "\u03bcs": Fraction(1, 1_000),  # Greek mu
    "ms": Fraction(1),
    "s": Fraction(1_000),
    "m": Fraction(60_000),
    "h": Fraction(3_600_000),
}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
_WHOLE = re.compile(rf"[+-]?(?:{_PART})+", re.ASCII)
_PARTS = re.compile(_PART, re.ASCII)
_LONGEST = 200
"""Characters; nobody writes a longer one, and long ones cost."""

_MAX_MS = Fraction(2**63 - 1, 1_000_000)
"""Go counts nanoseconds in 64 bits."""


def milliseconds(text: str) -> Fraction | None:
    """Return how long a duration is; None: it is none, or longer than Go can count."""
    if text in ("0", "+0", "-0"):
        return Fraction(0)
    if len(text) > _LONGEST or _WHOLE.fullmatch(text) is None:
        return None
    total = sum(
        (Fraction(f"0{number}") * _UNITS[unit] for number, unit in _PARTS.findall(text)),
        Fraction(0),
    )
    if total > _MAX_MS:
        return None
    return -total if text.startswith("-") else total
