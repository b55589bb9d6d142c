"""Whether a floor can keep recall silent when there is no answer: see README.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Rankings
from comis_eval.config import Config
from comis_eval.report.drawing import Drawing
from experiments.abstention.elsewhere import with_unanswerable
from experiments.abstention.gate import GATE, gate_arms, gated
from experiments.common.claims import Claim
from experiments.common.drawings import curves
from experiments.common.experiment import Arms, Experiment, Options, Results
from experiments.common.halves import halves
from experiments.common.pairs import Pair, figures, finite, paired
from experiments.common.scene import Scene, Scored, among
from experiments.common.tables import interval, lined, number

HERE = Path(__file__).parent

Floats = NDArray[np.float64]

FUSED, FINAL, SIMILARITY, RERANKER = "fused", "final", "similarity", "reranker"
PAIRS = (
    Pair(FINAL, FUSED), Pair(SIMILARITY, FUSED), Pair(RERANKER, FUSED),
    Pair(SIMILARITY, FINAL), Pair(RERANKER, FINAL), Pair(RERANKER, SIMILARITY),
)  # fmt: skip
PRICE = 0.05
"""Share of the answers that a floor may cost on the half it is chosen on."""

ABSTAINED, LOST, KEPT = "unanswerable: silent", "answers lost", "relevant kept"
FIGURES = (ABSTAINED, LOST, KEPT)
LEVELS = (0.1, 0.19, 0.5, 0.7, 0.9)
"""Values of minScore that are tried as they are; 0.1 is the default."""

OPEN = Config().evolve(**{"rag.min_score": 0.0})
RERANKED = OPEN.evolve(**{"rag.rerank.enabled": True})


class Signal(NamedTuple):
    """A score that a floor can look at.

    Attributes:
        scores: Of each candidate, NaN where it has none, shape (q, c).
        rankings: Those candidates, ranked without a floor.
    """

    scores: Floats
    rankings: Rankings

    @property
    def best(self) -> Floats:
        """The highest score of each query among memories that the trust filter lets in.

        The context is empty exactly when it is below the floor.
        """
        allowed = self.rankings.presence["trust"] & ~np.isnan(self.scores)
        best: Floats = np.where(allowed, self.scores, -np.inf).max(axis=1, initial=-np.inf)
        return best

    def kept(self, scene: Scene, floors: Floats) -> Floats:
        """Share of the relevant memories of each context that reach the query's floor.

        NaN where the context holds none.
        """
        grades = scene.judge.grades(self.rankings.table.rows)
        relevant = self.rankings.included & (grades >= 1)
        reach = relevant & (np.nan_to_num(self.scores, nan=-np.inf) >= floors[:, None])
        with np.errstate(invalid="ignore"):
            share: Floats = reach.sum(axis=1) / relevant.sum(axis=1)
        return share


def _fused(scene: Scene) -> Signal:
    rankings = scene.rankings(OPEN)
    return Signal(rankings.fused, rankings)


def _final(scene: Scene) -> Signal:
    rankings = scene.rankings(OPEN)
    return Signal(rankings.final, rankings)


def _similarity(scene: Scene) -> Signal:
    rankings = scene.rankings(OPEN)
    lane = rankings.table.lanes["vector"]
    scores = np.where(lane.ranks > 0, lane.scores, np.nan)
    missing = rankings.order.shape[1] - scores.shape[1]
    return Signal(np.pad(scores, ((0, 0), (0, missing)), constant_values=np.nan), rankings)


def _reranker(scene: Scene) -> Signal:
    rankings = scene.rankings(RERANKED)
    return Signal(rankings.reranker, rankings)


def arms(_: Sequence[Scene], __: Options) -> Arms:
    """What a floor can look at, and the recall tool with and without its gate."""
    signals: dict[str, Callable[[Scene], Signal]] = {
        FUSED: _fused, FINAL: _final, SIMILARITY: _similarity, RERANKER: _reranker
    }  # fmt: skip
    return {**signals, **gate_arms()}


def measure(scene: Scene, compared: Arms, options: Options) -> Results:
    """Floors chosen on one half and applied to the other, both ways round; then the gate."""
    sizes = {"seed": options.seed, "resamples": options.resamples}
    own = with_unanswerable(scene) is scene
    scene = with_unanswerable(scene)
    answerable = np.array([query.answerable for query in scene.dataset.queries])
    answered = answerable & _answered(scene)
    found: dict[str, dict[str, Scored]] = {}
    curve: dict[str, list[list[float | None]]] = {}
    for arm in (FUSED, FINAL, SIMILARITY, RERANKER):
        signal: Signal = compared[arm](scene)
        floors = _floors(signal.best, answered, scene, options.seed)
        silent = (signal.best < floors).astype(np.float64)
        found[arm] = {
            ABSTAINED: among(silent, ~answerable),
            LOST: among(silent, answered),
            KEPT: among(signal.kept(scene, floors), answered),
        }
        curve[arm] = _curve(signal.best, answered, ~answerable)
    told: dict[str, Any] = {
        "unanswerable": int((~answerable).sum()),
        "unanswerable_are_its_own": own,
        "answered": int(answered.sum()),
        "arms": figures(found),
        "pairs": paired(scene, found, PAIRS, **sizes),
        "curve": curve,
        "bound": _bound(scene, answerable),
    }
    gate = gated(scene, compared)
    told["arms"] |= figures(gate.scored)
    told["no_shared_word"] = gate.unshared
    told["pairs"] |= paired(scene, gate.scored, [GATE], **sizes)
    return told


def _answered(scene: Scene) -> NDArray[np.bool_]:
    """Queries whose context holds a relevant memory while there is no floor."""
    rankings = scene.rankings(OPEN)
    grades = scene.judge.grades(rankings.context_rows())
    held: NDArray[np.bool_] = grades.max(axis=1, initial=-1) >= 1
    return held


def _floors(best: Floats, answered: NDArray[np.bool_], scene: Scene, seed: int) -> Floats:
    """Each query's floor: the highest that costs no more than the price on the other half."""
    floors = np.full(len(best), -np.inf)
    parts = halves(scene, seed)
    for chosen_on, applied_to in (parts, parts[::-1]):
        known = np.sort(best[chosen_on][answered[chosen_on]])
        if len(known):
            floors[applied_to] = known[int(PRICE * len(known))]
    return floors


def _curve(
    best: Floats, answered: NDArray[np.bool_], unanswerable: NDArray[np.bool_]
) -> list[list[float | None]]:
    """Answers lost and silence gained, by rising floor: what choosing another price would give."""
    if not (answered.any() and unanswerable.any()):
        return []
    floors = np.quantile(best[answered], np.linspace(0, 0.5, 26), method="lower")
    return [
        [finite(float((best[who] < floor).mean())) for who in (answered, unanswerable)]
        for floor in np.unique(floors)
    ]


def _bound(scene: Scene, answerable: NDArray[np.bool_]) -> dict[str, Any]:
    """What minScore as it is does: the lowest scores there are, and contexts left empty."""
    rankings = scene.rankings(OPEN)
    alive = rankings.presence["fuse"]
    asked = alive.any(axis=1)
    told: dict[str, Any] = {
        "lowest": finite(float(rankings.fused[alive].min())),
        "lowest_best": finite(float(np.where(alive, rankings.fused, 0.0).max(axis=1)[asked].min())),
        "levels": [],
    }
    for level in LEVELS:
        floored = scene.rankings(Config().evolve(**{"rag.min_score": level}))
        dropped = alive & ~floored.presence["fuse"]
        empty: Floats = (floored.included.sum(axis=1) == 0).astype(np.float64)
        told["levels"].append(
            {
                "minScore": level,
                "dropped": finite(float(dropped.sum() / alive.sum())),
                "abstained": finite(among(empty, ~answerable).figure),
                "silenced": finite(among(empty, answerable).figure),
            }
        )
    return told


CLAIMS = (
    Claim(
        "a floor on similarity knows a question asked elsewhere, one on fused ranks hardly does",
        Pair(SIMILARITY, FUSED), ABSTAINED, "more", ("locomo",),
    ),
    Claim(
        "so does one on the reranker's score",
        Pair(RERANKER, FUSED), ABSTAINED, "more", ("locomo",),
    ),
    Claim(
        "a floor on the reranker's score silences more than one on final scores",
        Pair(RERANKER, FINAL), ABSTAINED, "more", ("locomo",),
    ),
    Claim(
        "a floor on similarity leaves more of the relevant memories than one on fused ranks",
        Pair(SIMILARITY, FUSED), KEPT, "more", ("core",),
    ),
    Claim(
        "a floor on the reranker's score leaves more than one on fused ranks",
        Pair(RERANKER, FUSED), KEPT, "more", ("core",),
    ),
    Claim(
        "the gate silences answerable queries",
        GATE, "answerable: silent", "more", ("core",),
    ),
    Claim(
        "above all those that share no word with their answer",
        GATE, "no shared word: silent", "more", ("core",),
    ),
    Claim("the gate costs answers", GATE, "hit@5", "less", ("core",)),
)  # fmt: skip


def table(results: Results) -> str:
    """The floor as it is, then floors on four scores, then the gate."""
    levels = [
        [
            name,
            f"{level['minScore']:g}",
            *(number(level[key]) for key in ("dropped", "abstained", "silenced")),
            number(told["bound"]["lowest"]),
            number(told["bound"]["lowest_best"]),
        ]
        for name, told in results["sets"].items()
        for level in told["bound"]["levels"]
    ]
    floors = [
        [
            name,
            arm,
            number(row[ABSTAINED]),
            number(row[LOST]),
            number(row[KEPT]),
            str(told["unanswerable"]),
        ]
        for name, told in results["sets"].items()
        for arm, row in told["arms"].items()
        if LOST in row
    ]
    compared = [
        [
            name,
            pair.first,
            pair.second,
            *(interval(told["pairs"][pair.name][m]) for m in (ABSTAINED, LOST, KEPT)),
        ]
        for name, told in results["sets"].items()
        for pair in PAIRS
    ]
    gate = [
        [name, metric, *(number(told["arms"][arm][metric]) for arm in (GATE.second, GATE.first)),
         interval(found), str(found["queries"])]
        for name, told in results["sets"].items()
        for metric, found in told["pairs"][GATE.name].items()
    ]  # fmt: skip
    return "\n\n".join(
        [
            lined(
                ["set", "minScore on fused", "candidates dropped", "unanswerable: silent",
                 "answerable: silent", "lowest fused score", "lowest best of a query"],
                levels,
            ),
            lined(["set", "floor on", *FIGURES, "unanswerable, answered"], floors),
            lined(["set", "floor on", "less", *FIGURES], compared),
            lined(["set", "recall tool", *GATE[::-1], "difference, 95%", "queries"], gate),
        ]
    )  # fmt: skip


def figure(results: Results) -> Drawing:
    """Silence against lost answers on the set with most unanswerable queries of its own."""
    sets = results["sets"].items()
    name, told = max(
        sets, key=lambda item: (item[1]["unanswerable_are_its_own"], item[1]["unanswerable"])
    )
    return curves(
        f"Silence on unanswerable queries against answers lost, {name}",
        "Each point is a floor. A floor that knows nothing lies on the diagonal.",
        {arm: [(lost, kept) for lost, kept in line] for arm, line in told["curve"].items() if line},
        x_title=LOST,
        y_title=ABSTAINED,
    )


EXPERIMENT = Experiment(HERE, arms, measure, CLAIMS, table, figure)

if __name__ == "__main__":
    EXPERIMENT.main()
