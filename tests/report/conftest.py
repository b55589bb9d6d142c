"""Evaluations of a small dataset on disk, written as the command line writes them."""

from pathlib import Path

import pytest

from comis_eval.config import Config
from comis_eval.datasets import load_dataset
from comis_eval.evaluation import evaluate, write_evaluation
from comis_eval.pipelines.retrieval import Retriever
from tests.cli.world import world

FTS = Config().evolve(**{"harness.lanes": ("fts",)})


def measure(folder: str | Path, out: Path, **changes: object) -> Path:
    """Evaluate a dataset by keywords alone and write the file."""
    labelled = load_dataset(folder)
    retriever = Retriever(labelled, cache=None)
    write_evaluation(evaluate(labelled, FTS.evolve(**changes), retriever=retriever), out)
    return out


@pytest.fixture(scope="session")
def dataset_folder(tmp_path_factory) -> str:
    """The dataset that the command line is tested on."""
    return world(tmp_path_factory.mktemp("dataset"))


@pytest.fixture(scope="session")
def first(dataset_folder, tmp_path_factory) -> Path:
    """An evaluation of it."""
    return measure(dataset_folder, tmp_path_factory.mktemp("first") / "first.json")


@pytest.fixture(scope="session")
def second(dataset_folder, tmp_path_factory) -> Path:
    """Another one, in which one memory is enough, and what is configured may not pass."""
    changes = {"rag.include_trust_levels": ("learned",), "rag.max_results": 1}
    changes |= {"harness.utility.k0": 5, "harness.utility.c0": 4000}
    return measure(dataset_folder, tmp_path_factory.mktemp("second") / "second.json", **changes)
