"""One question from its command line to what is written beside it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comis_eval.files import replacing
from comis_eval.report.drawing import Drawing
from comis_eval.report.svg import svg
from experiments.common.claims import Claim
from experiments.common.pairs import RESAMPLES
from experiments.common.scene import LOCOMO, Scene
from experiments.common.tables import interval, lined, probability

Arms = Mapping[str, Any]
Results = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What a run is told besides its sets.

    Attributes:
        seed: Of everything random.
        limit: About how many queries of each set; None: all.
        resamples: Of bootstraps and permutation tests.
        trials: Of a search, where there is one.
        rate: Share of the answerable queries that attacks are planted against.
    """

    seed: int = 0
    limit: int | None = None
    resamples: int = RESAMPLES
    trials: int = 200
    rate: float = 0.25


@dataclass(frozen=True)
class Experiment:
    """A question, and how it is answered.

    Attributes:
        folder: Where README.md, results.json and figure.svg stand.
        arms: What is compared, by name.
        measure: One set's figures: ``pairs`` by pair and metric, and whatever else is told.
        claims: What the answer rests on.
        table: The figures as Markdown.
        figure: The figures as a drawing.
    """

    folder: Path
    arms: Callable[[Sequence[Scene], Options], Arms]
    measure: Callable[[Scene, Arms, Options], Results]
    claims: tuple[Claim, ...]
    table: Callable[[Results], str]
    figure: Callable[[Results], Drawing]

    def parser(self) -> argparse.ArgumentParser:
        """The command line."""
        parser = argparse.ArgumentParser(
            prog=f"python experiments/{self.folder.name}/run.py",
            description=f"See experiments/{self.folder.name}/README.md.",
        )
        parser.add_argument("sets", nargs="+", type=Path, help=f"dataset folders, or {LOCOMO}")
        parser.add_argument("--seed", type=int, default=0, help="of everything random")
        parser.add_argument("--limit", type=int, help="about so many queries of each set")
        parser.add_argument("--trials", type=int, default=200, help="of a search, if there is one")
        parser.add_argument("--rate", type=float, default=0.25, help="of planted attacks, if any")
        parser.add_argument("--resamples", type=int, default=RESAMPLES, help="of every test")
        parser.add_argument("--out", type=Path, default=self.folder, help="folder to write to")
        return parser

    def run(self, scenes: Sequence[Scene], options: Options, arms: Arms | None = None) -> Results:
        """Measure every set; nothing is written.

        Args:
            scenes: The sets.
            options: Seed and sizes.
            arms: Instead of the experiment's own.
        """
        compared = self.arms(scenes, options) if arms is None else arms
        results: Results = {
            "experiment": self.folder.name,
            "seed": options.seed,
            "limit": options.limit,
            "resamples": options.resamples,
            "trials": options.trials,
            "rate": options.rate,
            "sets": {},
        }
        for scene in scenes:
            results["sets"][scene.name] = {
                "fingerprint": scene.dataset.fingerprint,
                "queries": len(scene.dataset.queries),
                "groups": len(set(scene.groups)),
                **self.measure(scene, compared, options),
            }
        return results

    def main(self) -> None:
        """Run as a command."""
        given = self.parser().parse_args()
        options = Options(given.seed, given.limit, given.resamples, given.trials, given.rate)
        scenes = [Scene.opened(path, limit=given.limit, seed=given.seed) for path in given.sets]
        results = self.run(scenes, options)
        replace_file(
            given.out / "results.json", json.dumps(results, indent=1, allow_nan=False) + "\n"
        )
        drawn = svg(self.figure(results), ident=self.folder.name, standalone=True)
        replace_file(given.out / "figure.svg", drawn + "\n")
        text = self.text(results)
        readme = given.out / "README.md"
        if readme.exists():
            replace_file(readme, marked(readme.read_text(encoding="utf-8"), text))
        print(text)  # noqa: T201

    def text(self, results: Results) -> str:
        """Everything in the README that a run decides: the claims, then the figures."""
        return f"{told(self.claims, results)}\n\n{self.table(results)}"


def told(claims: Sequence[Claim], results: Results) -> str:
    """The claims as a table, each with the figures that bear it out or do not."""
    body = []
    for claim in claims:
        for name in claim.sets:
            found = claim.found(results, name)
            if found is None:
                continue
            body.append(
                [
                    claim.says,
                    name,
                    claim.metric,
                    interval(found),
                    probability(found["p_adjusted"]),
                    f"{found['queries']} ({found['groups']})",
                    "holds" if claim.holds(results, name) else "**does not hold**",
                ]
            )
    return lined(
        ["claim", "set", "metric", "difference, 95%", "p (MaxT)", "queries (groups)", ""], body
    )


def marked(readme: str, text: str, *, by: str = "run.py") -> str:
    """Put text between a README's two marks.

    Args:
        readme: With a line ``<!-- by run.py -->`` and, below it, ``<!-- end run.py -->``.
        text: What shall stand between them.
        by: Which program writes there.

    Raises:
        ValueError: If the marks are not there.
    """
    begin, end = f"<!-- by {by} -->", f"<!-- end {by} -->"
    before, found, rest = readme.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"README.md needs a line {begin!r} and, below it, a line {end!r}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")
