"""The page of settings: every value of a configuration, its default and what it may be."""

from __future__ import annotations

import json
from collections.abc import Iterable

import markup

from comis_eval.config import Config
from comis_eval.config_file import SettingRow, describe

INTRODUCTION = """\
A configuration file has three parts: `rag` (what the product has, exportable), `semantics` \
(where the documented and the shipped system differ) and `harness` (how it is run here). Every \
setting may also be given on the command line as `--set PATH=VALUE`. `comis-eval config show` \
prints this table for your own file, `comis-eval config check FILE` tells every fault of one.

Where the preset `production` (`--semantics production`) has another value, it stands beside the \
default. [The pipeline](../pipeline.md) says what the switches do.
"""


def page() -> str:
    """Every setting, a table for each part of the file."""
    shipped = Config.model_validate({"semantics": {"preset": "production"}})
    production = {row.path: row.value for row in describe(shipped)}
    parts = []
    for part, rows in by_part(describe(Config())).items():
        cells = [_cells(row, production[row.path]) for row in rows]
        parts += [
            markup.heading(2 if "." not in part else 3, part, part.replace(".", "-")),
            markup.table(["Setting", "Default", "Allowed", "What it does"], cells),
        ]
    return markup.page("# Settings", INTRODUCTION, *parts)


def by_part(rows: Iterable[SettingRow]) -> dict[str, list[SettingRow]]:
    """Settings by the path above them, parts in the order in which they first come."""
    parts: dict[str, list[SettingRow]] = {}
    for row in rows:
        parts.setdefault(row.path.rpartition(".")[0], []).append(row)
    return parts


def _cells(row: SettingRow, production: object) -> tuple[str, ...]:
    default = markup.code(json.dumps(row.value))
    if production != row.value and row.path != "semantics.preset":
        default += f"; production {markup.code(json.dumps(production))}"
    name = markup.code(row.path.rpartition(".")[2])
    return name, default, markup.inline(row.allowed), markup.inline(row.description)
