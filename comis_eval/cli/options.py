"""The options that evaluate, recall and diff share: they say what the configuration is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from comis_eval.candidates import SEARCH_LANES
from comis_eval.cli.terminal import Tell
from comis_eval.config import LANES, Config, config_hash
from comis_eval.config_file import load_config
from comis_eval.datasets import SPLITS, Dataset, load_dataset
from comis_eval.errors import ConfigError
from comis_eval.evaluation import LOCAL, PIPELINES
from comis_eval.models.cache import cache_dir
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.text import printable

_SPREAD_SWITCHES = {
    "entity": "rag.entity_lane.enabled",
    "temporal": "rag.lanes.temporal.enabled",
    "causal": "rag.lanes.causal.enabled",
}
_Command = TypeVar("_Command", bound=Callable[..., Any])

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_CONFIG = click.option(
    "--config", type=FILE, help="Configuration: ours, a whole Comis config.yaml, or a rag fragment."
)
_AGENT = click.option(
    "--agent", metavar="NAME", help="Whose rag section, in a file of several agents."
)
_CHANGES_OF_ANY = (
    click.option(
        "--set",
        "overrides",
        metavar="PATH=VALUE",
        multiple=True,
        help="Change one value, such as rag.minScore=0; may be repeated, later ones win.",
    ),
    click.option(
        "--lanes",
        metavar="NAME,...",
        help=f"Run exactly these of {', '.join(LANES)}, whatever the file and --set say.",
    ),
    click.option(
        "--embedder",
        metavar="PATH",
        help="minilm, or a folder with model.onnx and tokenizer.json.",
    ),
)
_SEMANTICS = click.option(
    "--semantics",
    type=click.Choice(["documented", "production"]),
    help="Preset of the switches in which the documented and the shipped system differ.",
)
_CHANGES = (_AGENT, _CHANGES_OF_ANY[0], _SEMANTICS, *_CHANGES_OF_ANY[1:])
_NO_CACHE = click.option(
    "--no-cache", is_flag=True, help="Neither read nor keep embeddings on disk."
)


def _pipeline(names: Sequence[str]) -> Callable[[_Command], _Command]:
    return click.option(
        "--pipeline",
        type=click.Choice(names),
        default="memory-recall",
        show_default=True,
        help="What answers the queries.",
    )


_RUN = (
    click.option(
        "--split",
        type=click.Choice([*SPLITS, "all"]),
        default="all",
        show_default=True,
        help="Which of the dataset's queries.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Of the split and of random order.",
    ),
    _NO_CACHE,
)
NEW_FOLDER = click.option(
    "--out",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    required=True,
    help="The folder to make; it must not exist, or be empty.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def configured(command: _Command) -> _Command:
    """Add --config and what changes it; see :class:`Options`."""
    return _with((_CONFIG, *_CHANGES), command)


def changed(command: _Command) -> _Command:
    """Add what changes a configuration that is an argument of the command."""
    return _with(_CHANGES, command)


def served(command: _Command) -> _Command:
    """Add what configures the recall tool when agents call it: their names are its own."""
    return _with((_CONFIG, *_CHANGES_OF_ANY, _NO_CACHE), command)


def run(command: _Command) -> _Command:
    """Add what says which pipeline of this process, which queries and which cache."""
    return _with((_pipeline(LOCAL), *_RUN), command)


def run_any(command: _Command) -> _Command:
    """Add the same, with a live system among the pipelines."""
    return _with((_pipeline(PIPELINES), *_RUN), command)


def any_pipeline(command: _Command) -> _Command:
    """Add what says which pipeline of this process alone."""
    return _with((_pipeline(LOCAL),), command)


def _with(options: tuple[Callable[[_Command], _Command], ...], command: _Command) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the shared options say; a command takes those it has as ``Options(**given)``.

    Attributes:
        config: The configuration file; None: the defaults.
        agent, overrides, semantics, lanes, embedder: What changes it.
        pipeline: What answers the queries.
        split, seed: Which queries.
        no_cache: Whether embeddings on disk are left alone.
    """

    config: Path | None = None
    agent: str | None = None
    overrides: tuple[str, ...] = ()
    semantics: str | None = None
    lanes: str | None = None
    embedder: str | None = None
    pipeline: str = "memory-recall"
    split: str = "all"
    seed: int = 0
    no_cache: bool = False

    def configuration(self, path: Path | None = None) -> Config:
        """The configuration that is meant.

        Args:
            path: Another file, to which the same changes are made.

        Raises:
            ConfigError: If the file, a change or a lane cannot be used.
        """
        config = load_config(
            path or self.config,
            agent=self.agent,
            overrides=self.overrides,
            preset=self.semantics,
        )
        if self.lanes is not None:
            config = config.evolve(**lane_settings(self.lanes))
        if self.embedder is not None:
            config = config.evolve(**{"harness.embedder": self.embedder})
        return config

    def dataset(self, path_or_name: str) -> Dataset:
        """The dataset with the split's queries and every memory."""
        return load_dataset(path_or_name).select(self.split, seed=self.seed)

    def head(self, dataset: Dataset, config: Config) -> dict[str, Any]:
        """What a JSON document says first: what was asked, of which queries, with what."""
        return {
            "dataset": {
                "name": dataset.name,
                "version": dataset.version,
                "fingerprint": dataset.fingerprint,
                "split": self.split,
            },
            "pipeline": self.pipeline,
            "config_hash": config_hash(config),
            "seed": self.seed,
        }

    def retriever(self, dataset: Dataset, tell: Tell | None) -> Retriever:
        """The dataset made searchable."""
        return Retriever(dataset, cache=None if self.no_cache else cache_dir(), progress=tell)


def lane_settings(names: str) -> dict[str, Any]:
    """What ``--lanes`` sets: the search lanes named, and each spread lane on or off.

    Example: ``lane_settings("fts,entity")`` has ``harness.lanes`` at ``("fts",)`` and only
    ``rag.entity_lane.enabled`` at True.

    Raises:
        ConfigError: If a name is unknown or stands twice, or no search lane is named.
    """
    asked = [name.strip() for name in names.split(",")]
    for name in asked:
        if name not in LANES:
            raise ConfigError(
                f"--lanes: there is no lane '{printable(name, limit=40)}'; there are "
                f"{', '.join(LANES)}"
            )
    if len(set(asked)) < len(asked):
        raise ConfigError(f"--lanes: {names} names a lane twice")
    search = tuple(name for name in SEARCH_LANES if name in asked)
    if not search:
        raise ConfigError(
            f"--lanes: {', '.join(asked)} starts from the hits of fts or vector; name one too"
        )
    spread = {path: lane in asked for lane, path in _SPREAD_SWITCHES.items()}
    return {"harness.lanes": search, **spread}
