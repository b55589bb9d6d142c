"""What the doctor looks at, and that it comes when something is missing."""

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest

from comis_eval.cli import doctor
from comis_eval.errors import ModelError
from tests.cli.world import run

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9_-]", requirement, maxsplit=1)[0] for requirement in requirements}


def examined(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = run("doctor", "--json", *arguments)
    told = json.loads(result.stdout)
    assert told["ok"] == (result.exit_code == 0)
    return result.exit_code, {check["name"]: check for check in told["checks"]}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(folder))
    return folder


def test_the_packages_are_those_of_the_project():
    assert set(doctor.NEEDED) == names(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    assert {extra: set(given) for extra, given in doctor.EXTRAS.items()} == {
        extra: names(extras[extra]) for extra in doctor.EXTRAS
    }


def test_a_sound_machine():
    status, checks = examined()
    assert status == 0
    for name in ("python", "sqlite", "faiss", "minilm", "cache"):
        assert checks[name]["state"] == "ok", checks[name]
    printed = run("doctor")
    assert printed.exit_code == 0
    assert "with FTS5" in printed.stdout
    assert "sha256" in printed.stdout


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(doctor, "NEEDED", ("no-such-package",))
    status, checks = examined()
    assert status == 2
    assert checks["no-such-package"]["found"] == "not installed"
    assert "pip install no-such-package" in checks["no-such-package"]["remedy"]


def test_a_missing_extra_is_no_fault(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", {"mcp": ("no-such-package",)})
    status, checks = examined()
    assert status == 0
    assert checks["extra mcp"]["state"] == "optional"


def test_a_damaged_model_is_missing(monkeypatch):
    models = importlib.import_module("comis_eval.models.onnx_embedder")

    def damaged():
        raise ModelError("model.onnx is not the file it should be; pip install it again")

    monkeypatch.setattr(models, "packaged_minilm", damaged)
    status, checks = examined()
    assert status == 2
    assert "not the file it should be" in checks["minilm"]["found"]


def test_a_library_that_does_not_load_is_missing(monkeypatch):
    def load(name):
        raise ImportError(f"{name}: wrong ELF class")

    monkeypatch.setattr(doctor.importlib, "import_module", load)
    checks = {check.name: check for check in doctor._loaded()}
    assert checks["faiss"].state == "missing"
    assert "wrong ELF class" in checks["faiss"].found


def test_the_cache_folder_belongs_to_its_owner_alone(cache):
    cache.mkdir(mode=0o755)
    cache.chmod(0o755)
    assert doctor._cache().state == "warning"
    assert doctor._cache().remedy == f"chmod 700 {cache}"
    cache.chmod(0o700)
    assert doctor._cache().state == "ok"


def test_a_cache_that_is_a_file_is_a_warning(cache):
    cache.write_text("x")
    assert doctor._cache().state == "warning"
    assert "--no-cache" in doctor._cache().remedy
