import pytest

from tests.cli.world import world


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the small dataset; tests only read it."""
    return world(tmp_path_factory.mktemp("data"))
