"""What the code may not do anywhere, read from the code itself.

The layers are import-linter's work, bare excepts and pieced-together SQL are ruff's
(pyproject.toml); here is what they cannot see.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "comis_eval"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}

STAGES_MAY_IMPORT = {
    "__future__", "collections.abc", "dataclasses", "enum", "functools", "itertools", "math", "re",
    "typing", "unicodedata", "datetime", "fractions", "numpy", "numpy.typing", "regex",
    "comis_eval.errors", "comis_eval.text", "comis_eval.types", "comis_eval.config",
}  # fmt: skip
"""Nothing that opens a file, asks a clock, draws a number or starts anything."""

NEVER_IMPORTED = {
    "pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve",  # run what they read
    "telnetlib", "ftplib", "smtplib", "imp",
}  # fmt: skip

EDGES = {
    "faiss": ("comis_eval.lanes",),
    "onnxruntime": ("comis_eval.models",),
    "tokenizers": ("comis_eval.models",),
    "rank_bm25": ("comis_eval.lanes",),
    "optuna": ("comis_eval.tuning",),
    "mlflow": ("comis_eval.tracking",),
    "matplotlib": ("comis_eval.report",),
    "mcp": ("comis_eval.serve", "comis_eval.pipelines.remote"),
    "starlette": ("comis_eval.serve",),
    "uvicorn": ("comis_eval.serve",),
}
"""Where each heavy library lives, and nowhere else."""

LAZY = {*EDGES, "pandas", "pyarrow", "scipy"}
LOADED_AS_A_WHOLE = ("comis_eval.tuning",)
"""Packages that a command imports only when it needs them; optuna may stand at their top."""


def imports(tree: ast.AST, *, top_only: bool = False) -> Iterator[tuple[str, int]]:
    """Names of imported modules with their lines; with ``top_only`` those run at import."""
    for node in _at_import(tree) if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _at_import(node)


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def everywhere(kind: str, found: Iterator[tuple[str, str, int]]) -> None:
    listed = [f"{module}:{line}: {what}" for module, what, line in found]
    assert not listed, f"{kind}:\n" + "\n".join(listed)


def test_there_is_something_to_look_at() -> None:
    assert len(MODULES) > 50
    assert "comis_eval.stages.fuse" in MODULES


def test_stages_import_nothing_that_touches_the_world() -> None:
    everywhere(
        "a stage is a pure function",
        (
            (name, imported, line)
            for name, tree in MODULES.items()
            if name.startswith("comis_eval.stages.")
            for imported, line in imports(tree)
            if imported not in STAGES_MAY_IMPORT and not imported.startswith("comis_eval.stages.")
        ),
    )
    everywhere(
        "a stage asks no clock",
        (
            (name, what, call.lineno)
            for name, tree in MODULES.items()
            if name.startswith("comis_eval.stages.")
            for what, call in calls(tree)
            if what.endswith((".now", ".utcnow", ".today"))
        ),
    )


def test_nothing_that_runs_what_it_reads_is_imported() -> None:
    everywhere(
        "forbidden import",
        (
            (name, imported, line)
            for name, tree in MODULES.items()
            for imported, line in imports(tree)
            if imported.partition(".")[0] in NEVER_IMPORTED
        ),
    )


def test_heavy_libraries_stay_at_the_edge() -> None:
    everywhere(
        "imported outside its place",
        (
            (name, imported, line)
            for name, tree in MODULES.items()
            for imported, line in imports(tree)
            if (homes := EDGES.get(imported.partition(".")[0])) and not name.startswith(homes)
        ),
    )


def test_heavy_libraries_are_imported_when_they_are_used() -> None:
    everywhere(
        "imported at the top of a module",
        (
            (name, imported, line)
            for name, tree in MODULES.items()
            for imported, line in imports(tree, top_only=True)
            if imported.partition(".")[0] in LAZY and not name.startswith(LOADED_AS_A_WHOLE)
        ),
    )


FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "breakpoint", "os.system", "os.popen", "yaml.load",
    "yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "tempfile.mktemp", "np.random.seed",
    "random.seed", "subprocess.getoutput", "subprocess.getstatusoutput",
}  # fmt: skip


def test_nothing_evaluates_text_or_starts_a_shell() -> None:
    everywhere(
        "forbidden call",
        (
            (name, called, node.lineno)
            for name, tree in MODULES.items()
            for called, node in calls(tree)
            if called in FORBIDDEN_CALLS
            or any(
                keyword.arg in ("shell", "allow_pickle")
                and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
                for keyword in node.keywords
            )
        ),
    )


def test_what_numpy_reads_from_a_file_is_never_pickled() -> None:
    everywhere(
        "np.load without allow_pickle=False",
        (
            (name, called, node.lineno)
            for name, tree in MODULES.items()
            for called, node in calls(tree)
            if called in ("np.load", "numpy.load")
            and "allow_pickle" not in {keyword.arg for keyword in node.keywords}
        ),
    )


def test_nothing_is_validated_by_assert() -> None:
    everywhere(
        "assert (gone under python -O)",
        (
            (name, ast.unparse(node.test)[:60], node.lineno)
            for name, tree in MODULES.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Assert)
        ),
    )


def test_randomness_always_takes_a_seed() -> None:
    everywhere(
        "a generator without a seed, or the global one",
        (
            (name, ast.unparse(node)[:60], node.lineno)
            for name, tree in MODULES.items()
            for called, node in calls(tree)
            if (called.endswith(("default_rng", "random.Random")) and not node.args)
            or (GLOBAL_GENERATOR.fullmatch(called) and not called.endswith("default_rng"))
        ),
    )


GLOBAL_GENERATOR = re.compile(r"((np|numpy)\.)?random\.[a-z_]+")


@pytest.mark.parametrize("word", ["/work/", "/root/", "/home/", "C:\\Users"])
def test_no_machines_paths_are_in_the_package(word: str) -> None:
    files = (
        path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".sql", ".yaml", ".html"}
    )
    assert [str(path) for path in files if word in path.read_text("utf-8")] == []


def test_every_part_of_the_package_has_its_layer() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    layered = {part.strip(" ()") for layer in contract["layers"] for part in layer.split(":")}
    parts = {".".join(name.split(".")[:2]) for name in MODULES} - {
        "comis_eval.__init__", "comis_eval.__main__",
    }  # fmt: skip
    assert parts <= layered
