"""dataset.yaml: the dataset's name, its policy, and what holds for all its queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comis_eval.datasets.faults import Complaints, shown
from comis_eval.datasets.fields import (
    Field,
    Fields,
    UnusableError,
    any_text,
    choice,
    flag,
    listing,
    name,
    nested,
    read_fields,
    text,
    time,
)
from comis_eval.datasets.labels import DEFAULT_POLICY, Policy, ScopeRule
from comis_eval.datasets.split import SPLITS
from comis_eval.errors import ConfigError
from comis_eval.text import printable
from comis_eval.types import TrustLevel

FILE = "dataset.yaml"


@dataclass(frozen=True, kw_only=True)
class Header:
    """What dataset.yaml says; the attributes are those of a Dataset, and ``now``."""

    name: str
    version: str = ""
    licence: str = ""
    description: str = ""
    judged_by: str = ""
    now: int | None = None
    policy: Policy = DEFAULT_POLICY
    categories: Mapping[str, bool] = field(default_factory=dict)
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labelled: bool = True


def read_header(path: Path, complaints: Complaints) -> Header | None:
    """Read dataset.yaml.

    Returns:
        The header, or None when something is wrong with it, which is then noted.
    """
    from comis_eval.config_file import read_yaml  # here, because importers only write

    try:
        values, wrong = _checked(read_yaml(path))
    except ConfigError as error:
        place = re.match(r":([0-9]+)?:? ?", told := str(error).removeprefix(printable(str(path))))
        line = int(place[1]) if place and place[1] else None
        complaints.fault(FILE, line, told[place.end() :] if place else told)
        return None
    source = path.read_text(encoding="utf-8").splitlines() if wrong else []
    for message in wrong:
        complaints.fault(FILE, _line_of(message, source), message)
    if wrong:
        return None
    header = Header(**values)
    for key, value in {"licence": header.licence, "judgedBy": header.judged_by}.items():
        if not value:
            complaints.warn(FILE, None, f"{key} is not stated; say it plainly")
    return header


def _checked(content: object) -> tuple[dict[str, Any], list[str]]:
    if isinstance(content, dict):
        return read_fields(content, _HEADER)
    return {}, [f"must hold keys ({', '.join(_HEADER)}), found {shown(content)}"]


def _line_of(message: str, source: Iterable[str]) -> int | None:
    """Find the top-level key a message begins with; a parsed document knows no lines."""
    key = re.match(r"(?:unknown key ')?([\w-]+)", message)
    starts = (number for number, line in enumerate(source, 1) if key and _opens(line, key[1]))
    return next(starts, None)


def _opens(line: str, key: str) -> bool:
    return re.match(rf"""['"]?{re.escape(key)}['"]?\s*:""", line) is not None


def _version(value: object) -> str:
    if isinstance(value, int | float):
        raise UnusableError(f' is {value} (a number); it must be text: write "{value}"')
    return text(value)


def _trust_levels(value: object) -> frozenset[TrustLevel]:
    return frozenset(listing(choice(TrustLevel))(value))


def _categories(value: object) -> dict[str, bool]:
    if not isinstance(value, dict):
        raise UnusableError(
            f" is {shown(value)}; it must map each category to {{headline: true or false}}"
        )
    headline: dict[str, bool] = {}
    wrong: list[str] = []
    for category, settings in value.items():
        try:
            headline[text(category)] = settings is None or _CATEGORY(settings)
        except UnusableError as error:
            wrong += [f".{category}{message}" for message in error.args]
    if "all" in headline:
        wrong.append(".all is taken: it names the mean over the headline categories")
    if wrong:
        raise UnusableError(*wrong)
    return headline


def _splits(value: object) -> dict[str, tuple[str, ...]]:
    splits = _SPLITS(value)
    seen: set[str] = set()
    for split, groups in splits.items():
        for group in groups:
            if group in seen:
                raise UnusableError(f".{split} names group {shown(group)} a second time")
            seen.add(group)
    return splits


_CATEGORY = nested({"headline": Field("headline", flag)}, lambda headline=True: bool(headline))
_SPLITS: Callable[[object], dict[str, tuple[str, ...]]] = nested(
    {split: Field(split, listing(text)) for split in SPLITS}, dict
)
_POLICY: Fields = {
    "trustLevels": Field("trust_levels", _trust_levels),
    "scope": Field("scope", choice(ScopeRule)),
}
_HEADER: Fields = {
    "name": Field("name", name, required=True),
    "version": Field("version", _version),
    "licence": Field("licence", text),
    "description": Field("description", any_text),
    "judgedBy": Field("judged_by", text),
    "now": Field("now", time),
    "policy": Field("policy", nested(_POLICY, Policy)),
    "categories": Field("categories", _categories),
    "splits": Field("splits", _splits),
    "labelled": Field("labelled", flag),
}
