"""Where runs are tracked: a checked, explicit address, and the command that shows it."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from comis_eval.errors import ConfigError
from comis_eval.models.cache import cache_dir
from comis_eval.text import mask_credentials, printable, sha256_text

ALLOWED = (
    "allowed are sqlite:///FILE, http://HOST:PORT or https://HOST of an MLflow server, and "
    "postgresql://USER@HOST/DATABASE"
)
_FOLDER = Path("experiments")
_SQLITE = re.compile(r"sqlite:///(?P<file>[^?#]+)")
_POSTGRES = re.compile(r"postgresql(\+\w+)?://")


@dataclass(frozen=True)
class Place:
    """Where runs go.

    Attributes:
        uri: The tracking URI as MLflow is told it; may hold a password.
        artifact_root: Folder of new experiments' artifacts, absolute; None where a server
            decides.
        database: The file behind a ``sqlite:`` URI, absolute.
    """

    uri: str = field(repr=False)
    artifact_root: Path | None
    database: Path | None

    @property
    def shown(self) -> str:
        """The URI without its credentials."""
        return printable(mask_credentials(self.uri))

    def lock_file(self, name: str) -> Path:
        """A file whose lock stands for something of this place.

        Beside the database, so that whoever shares the one shares the other; for a server
        in the user's cache folder.
        """
        known = sha256_text(f"{self.uri}\n{name}")[:16]
        if self.database is not None:
            return self.database.with_name(f"{self.database.name}.{known}.lock")
        return cache_dir() / "locks" / f"mlflow-{known}.lock"


def place_of(uri: str | None, *, artifact_root: Path | None = None) -> Place:
    """Check a tracking URI and say where its artifacts go.

    Args:
        uri: None is ``sqlite:///experiments/mlflow.db`` with ``experiments/mlartifacts``.
        artifact_root: None is ``mlartifacts`` beside an SQLite file, or below
            ``experiments`` for PostgreSQL. A server has its own.

    Raises:
        ConfigError: If MLflow cannot be reached that way; says why and what is allowed.
    """
    uri = f"sqlite:///{_FOLDER}/mlflow.db" if uri is None else uri
    sqlite = _SQLITE.fullmatch(uri)
    if sqlite and sqlite["file"].split("/")[-1] not in ("", ":memory:"):
        database = Path(sqlite["file"]).absolute()
        if "%" in str(database):
            raise ConfigError(
                f"{database}: MLflow reads % in a path as the start of a code in one place and "
                "as itself in another; name a file without % in its path"
            )
        root = artifact_root or database.parent / "mlartifacts"
        return Place(f"sqlite:///{database}", root.absolute(), database)
    if _POSTGRES.match(uri):
        # psycopg 3 is what comis_eval[postgres] installs; MLflow alone would want psycopg2
        driven = uri.replace("postgresql://", "postgresql+psycopg://", 1)
        return Place(driven, (artifact_root or _FOLDER / "mlartifacts").absolute(), None)
    if _is_server(uri):
        if artifact_root is not None:
            raise ConfigError(
                f"{_masked(uri)} keeps artifacts where its server was told to; "
                f"leave the artifact root {artifact_root} away"
            )
        return Place(uri, None, None)
    raise ConfigError(f"tracking URI {_masked(uri)!r}: {_reason(uri)}; {ALLOWED}")


def dashboard_command(uri: str | None) -> str:
    """The one command that opens MLflow's own pages on these runs, on loopback.

    Args:
        uri: As for :func:`place_of`. A server's pages are already there: its address is
            returned. A password is shown as ``***``.

    Raises:
        ConfigError: As :func:`place_of`.
    """
    place = place_of(uri)
    if place.database is None and not _POSTGRES.match(place.uri):
        return place.shown
    words = [
        sys.executable, "-m", "mlflow", "server", "--backend-store-uri", place.shown,
        "--default-artifact-root", str(place.artifact_root), "--host", "127.0.0.1",
        "--port", "5000",
    ]  # fmt: skip
    # the server's workers for jobs, four processes, serve nothing that is shown here
    settings = "MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false"
    return f"{settings} {shlex.join(words)}"


def _is_server(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        return False


def _reason(uri: str) -> str:
    scheme = uri.partition(":")[0].lower() if ":" in uri else ""
    if scheme in ("", "file"):
        return "MLflow gave up its store of plain files in 3.13"
    if scheme == "sqlite":
        return "it names no database file that would remain"
    if scheme in ("http", "https"):
        return "it names no server"
    return f"{printable(scheme, limit=40)!r} is no kind of store this package was tested with"


def _masked(uri: str) -> str:
    return printable(mask_credentials(uri), limit=200)
