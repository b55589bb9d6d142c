"""How long the packaged late interaction takes on this machine: see README.md.

The figures of results.json take the cost model's milliseconds, which are the same
everywhere; these are not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from comis_eval.config import Config
from comis_eval.datasets import load_dataset
from comis_eval.models.load import load_embedder, load_reranker
from experiments.common.experiment import marked, replace_file
from experiments.common.tables import lined

HERE = Path(__file__).parent

SIZES = (5, 10, 20, 40, 70)
BY = "clock.py"


def timed(folder: Path, queries: int) -> dict[str, Any]:
    """Median milliseconds of a rerank by pool size: cold, and with every memory seen before."""
    dataset, settings = load_dataset(folder), Config().harness
    texts = [memory.content for memory in dataset.memories]
    told: dict[str, Any] = {"cold_ms": {}, "warm_ms": {}}
    embedder = load_embedder(settings.embedder, pooling=settings.pooling)
    embedder.embed(texts[:1])
    for size in SIZES:
        taken: dict[str, list[float]] = {"cold_ms": [], "warm_ms": []}
        for number, query in enumerate(dataset.queries[:queries]):
            # A new one remembers no token vectors; the second question finds the memories'.
            model = load_reranker(settings.reranker.kind, None, embedder=embedder, cache=None)
            pool = [texts[(number + place) % len(texts)] for place in range(size)]
            for temperature, asked in (("cold_ms", query.text), ("warm_ms", f"{query.text} And?")):
                began = time.perf_counter()
                model.score(asked, pool)
                taken[temperature].append((time.perf_counter() - began) * 1e3)
        for temperature, milliseconds in taken.items():
            told[temperature][str(size)] = round(float(np.median(milliseconds)), 1)
    return told


def table(told: dict[str, Any]) -> str:
    """The milliseconds beside those of the cost model."""
    cost = Config().harness.reranker
    body = [
        [
            str(size),
            f"{cost.fixed_ms + cost.ms_per_candidate * size:.0f}",
            f"{told['cold_ms'][str(size)]:.1f}",
            f"{told['warm_ms'][str(size)]:.1f}",
        ]
        for size in SIZES
    ]
    head = ["maxCandidates", "modelled ms", "measured, memories new", "measured, memories seen"]
    where = f"Measured on {told['machine']}, medians of {told['queries']} queries."
    return f"{lined(head, body)}\n\n{where}"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python experiments/rerank/clock.py", description=__doc__)
    parser.add_argument("dataset", type=Path, help="whose texts are scored")
    parser.add_argument("--queries", type=int, default=20, help="how many rerankings are timed")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    return parser


def main() -> None:
    """Time, and write down."""
    given = parser().parse_args()
    told = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, load average {os.getloadavg()[0]:.1f}",
        "queries": given.queries,
        **timed(given.dataset, given.queries),
    }
    replace_file(given.out / "clock.json", json.dumps(told, indent=1) + "\n")
    readme = given.out / "README.md"
    if readme.exists():
        replace_file(readme, marked(readme.read_text(encoding="utf-8"), table(told), by=BY))
    print(table(told))  # noqa: T201


if __name__ == "__main__":
    main()
