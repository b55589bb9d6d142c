"""The package's names are imported when they are first used."""

import pkgutil
import subprocess
import sys

import pytest

from comis_eval import datasets
from comis_eval.datasets import importers


@pytest.mark.parametrize("package", [datasets, importers])
def test_every_name_is_there_and_no_submodule_hides_it(package):
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert set(package._HOMES) <= set(package.__all__)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert not modules & set(package.__all__), "importing the module would replace the name"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_reading_rows_needs_neither_numpy_nor_pydantic():
    program = (
        "import sys, comis_eval.datasets.importers;"
        "print(sorted({'numpy', 'pydantic', 'rich', 'click'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert told.stdout.strip() == b"[]"
