"""The public names: all there, all documented, and nothing heavy imported for asking."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import comis_eval

SOURCE = ast.parse(Path(comis_eval.__file__).read_text(encoding="utf-8"))
HEAVY = {
    "numpy", "pydantic", "yaml", "click", "rich", "regex", "faiss", "onnxruntime", "tokenizers",
    "pandas", "pyarrow", "scipy", "optuna", "mlflow", "matplotlib", "sqlite3", "rank_bm25",
}  # fmt: skip
EDGE = HEAVY - {"numpy", "pydantic", "yaml", "click", "rich", "regex", "sqlite3"}
"""What even a command may import only when it is used."""


@pytest.mark.parametrize("name", comis_eval.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(comis_eval, name)
    home = importlib.import_module(comis_eval._HOMES[name])
    assert value is getattr(home, name)
    assert len(inspect.getdoc(value) or "") > 20


def test_the_names_their_homes_and_what_type_checkers_see_agree() -> None:
    assert list(comis_eval._HOMES) == comis_eval.__all__ == sorted(comis_eval.__all__)
    checked = next(node for node in SOURCE.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == comis_eval._HOMES


def test_no_public_name_is_a_submodules() -> None:
    modules = {module.name for module in pkgutil.iter_modules(comis_eval.__path__)}
    assert not modules & set(comis_eval.__all__), "importing the module would replace the name"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'comis_eval' has no attribute 'evaluat'"):
        _ = comis_eval.evaluat  # type: ignore[attr-defined]


def test_the_example_of_the_docstring_uses_public_names() -> None:
    example = "\n".join(
        line.strip() for line in (comis_eval.__doc__ or "").splitlines() if line.startswith("    ")
    )
    imported = next(n for n in ast.walk(ast.parse(example)) if isinstance(n, ast.ImportFrom))
    assert imported.module == "comis_eval"
    assert {alias.name for alias in imported.names} <= set(comis_eval.__all__)


def loaded(statement: str) -> set[str]:
    """Which packages a fresh Python has in memory after a statement."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert not loaded("import comis_eval") & HEAVY


@pytest.mark.parametrize("name", ["evaluate", "MemoryRecall", "load_dataset", "load_config"])
def test_using_a_name_imports_no_library_of_the_edge(name: str) -> None:
    assert not loaded(f"from comis_eval import {name}") & EDGE


def test_the_command_line_imports_no_library_of_the_edge() -> None:
    assert not loaded("import comis_eval.cli") & EDGE
